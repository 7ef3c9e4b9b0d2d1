/** Functions and tasks that a job's workflow runs under a lease of its own. */
import {
  type EcsTaskTargetOptions,
  type JobTarget,
  type LockedFunctionTargetOptions,
  type SingletonJobProps,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { LeaseClient } from "@leasehold/client";
import { takeOverCalls } from "@leasehold/client/internal";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock, type MemoryLeaseStore } from "@leasehold/client/testing";
import { Duration, type Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { beforeEach, describe, expect, it } from "vitest";
import { StatesError } from "../../tools/local/src/state-machines/errors.ts";
import { adminOf } from "../support/admin.ts";
import { functionIn, newStack } from "../support/constructs.ts";
import { ecsTask as ecsTaskIn, jobIn, taskTargets } from "../support/jobs.ts";
import { StepFunctions } from "../support/step-functions.ts";

const key = "report";
const second = 1_000;
const minute = 60 * second;
const startTime = Date.parse("2026-03-01T12:00:00Z");

/** One start of the work. */
interface Start {
  readonly at: number;
  // biome-ignore lint/suspicious/noExplicitAny: what a service is sent differs by target.
  readonly args: any;
  stopped: boolean;
}

let clock: ManualClock;
let steps: StepFunctions;
let other: LeaseClient;
let starts: Start[];
/** Work under way, also such as has been told to stop. */
let atWork: number;
/** For how long the work runs, by the number of its start; throws where it fails or cannot be started. */
let runsFor: (start: number) => number;
/** For how long a task works on after it was told to stop. */
let stopsIn: number;

/** Does the work as a service does it; never twice at the same time. */
async function run(args: unknown, stop?: AbortSignal): Promise<unknown> {
  const start: Start = { at: clock.now() - startTime, args, stopped: false };
  starts.push(start);
  const number = starts.length;
  const forMs = runsFor(number);
  atWork += 1;
  return await new Promise((resolve) => {
    const end = (): void => {
      atWork -= 1;
      resolve({ number });
    };
    const cancel = clock.schedule(end, forMs);
    stop?.addEventListener("abort", () => {
      cancel();
      start.stopped = true;
      clock.schedule(end, stopsIn);
    });
  });
}

beforeEach(() => {
  clock = new ManualClock(startTime);
  steps = new StepFunctions(clock);
  other = new LeaseClient({ store: steps.store, clock, owner: "other" });
  starts = [];
  atWork = 0;
  runsFor = () => 20 * second;
  stopsIn = 30 * second;
  // Nothing stops a call of a function.
  steps.resources.set("lambda:invoke", async ({ Payload }: never) => ({ Payload: await run(Payload) }));
  for (const action of ["ecs:runTask.sync", "batch:submitJob.sync", "glue:startJobRun.sync"]) {
    steps.resources.set(action, run);
  }
  steps.resources.set("states:startExecution.sync:2", async (args, signal) => ({
    Output: await run(args, signal),
  }));
});

type MakeTarget = (stack: Stack) => JobTarget;

const lockedFunction =
  (options?: LockedFunctionTargetOptions): MakeTarget =>
  (stack) =>
    SingletonJobTarget.lockedLambda(functionIn(stack, "Report"), options);

const ecsTask =
  (options: Partial<EcsTaskTargetOptions> = {}): MakeTarget =>
  (stack) =>
    ecsTaskIn(stack, options);

/** The templates of jobs, by their targets and props: many tests have the same job. */
const templates = new Map<MakeTarget, Map<string, Template>>();

function templateOf(props: Partial<SingletonJobProps>, target: MakeTarget): Template {
  const ofTarget = templates.get(target) ?? new Map<string, Template>();
  templates.set(target, ofTarget);
  const known = ofTarget.get(JSON.stringify(props));
  if (known !== undefined) return known;
  const stack = newStack({});
  jobIn(stack, target(stack), { key, jobName: "report", ...props });
  const template = Template.fromStack(stack);
  ofTarget.set(JSON.stringify(props), template);
  return template;
}

const aFunction = lockedFunction();

/** Makes each start of the work fail. */
function failWith(error: string, cause?: string): void {
  runsFor = () => {
    throw new StatesError(error, cause);
  };
}

/** Defines the state machines of a job of the target as AWS would; what it gives starts a run, and lets time pass. */
function define(
  props: Partial<SingletonJobProps> = {},
  target: MakeTarget = aFunction,
): (forMs?: number, scheduledTime?: number) => Promise<string> {
  const stateMachineArn = steps.deploy(templateOf(props, target))("JobWorkflowStateMachine");
  return async (forMs = 0, scheduledTime = clock.now()) => {
    const input = { job: "report", scheduledTime: new Date(scheduledTime).toISOString(), input: { day: 1 } };
    const { executionArn } = steps.machines.start({ stateMachineArn, input });
    await clock.advance(forMs);
    return executionArn;
  };
}

const outcome = (arn: string) => steps.machines.describe(arn);
const isHeld = (): boolean => steps.lease(key)?.token !== undefined;
const breakLease = () => adminOf(other).forceRelease(key, { token: String(steps.lease(key)?.token) });

/** Lets time pass, and wakes the longest waiter of a lock that is free; gives for how many seconds it was free. */
async function pass(forMs: number): Promise<number> {
  let free = 0;
  for (let passed = 0; passed < forMs; passed += second) {
    await clock.advance(second);
    if (isHeld()) continue;
    free += 1;
    await steps.wake(key);
  }
  return free;
}

const scheduledTime = "2026-03-01T12:00:00.000Z";

/** The fencing token that a start of a function, or of a task of ECS, was given. */
function tokenOf(start: Start | undefined): number {
  return Number(/FENCING_?TOKEN\D+(\d+)/i.exec(JSON.stringify(start?.args))?.[1]);
}

describe.each<[string, MakeTarget, MakeTarget]>([
  ["a function", aFunction, lockedFunction({ retryAttempts: 3 })],
  ["a task of ECS", ecsTask(), ecsTask({ retryAttempts: 3 })],
])("%s under the lock", (kind, target, repeated) => {
  it("runs while the lease is held, knows its fencing token, and its slot is done with it", async () => {
    const start = define({}, target);
    runsFor = () => {
      expect(isHeld()).toBe(true);
      return 50 * second;
    };
    const run = await start(minute);
    expect(outcome(run)).toMatchObject({ status: "SUCCEEDED", output: { number: 1 } });
    expect(tokenOf(starts[0])).toBe(steps.lease(key)?.fence);
    const told = ["fencingToken", "input", "job", "scheduledTime"];
    if (kind === "a function") expect(Object.keys(starts[0]?.args).sort()).toEqual(told);
    expect(isHeld()).toBe(false);

    const again = await start(minute, startTime);
    expect(outcome(again)).toMatchObject({ status: "SUCCEEDED", output: { skipped: true, reason: "done" } });
    expect(starts).toHaveLength(1);
  });

  it.each(["OutOfStock", "States.TaskFailed"])(
    "is repeated under the same lease when it fails with %s; then the run fails so, and frees lock and slot",
    async (error) => {
      const start = define({}, repeated);
      failWith(error, "no luck");
      const run = await start(2 * minute);
      expect(outcome(run)).toMatchObject({ status: "FAILED", error, cause: "no luck" });
      expect(starts).toHaveLength(4);
      expect(new Set(starts.map(tokenOf)).size).toBe(1);
      expect(isHeld()).toBe(false);

      runsFor = () => second;
      const next = await start(minute, startTime);
      expect(outcome(next).output).toEqual({ number: 5 });
    },
  );

  it("is run by one of many runs at a time, each in its turn, when they queue", async () => {
    const start = define({ overlap: "queue", maxEventAge: Duration.hours(1), once: false }, target);
    runsFor = () => {
      expect(atWork).toBe(0);
      return minute;
    };
    const runs = [await start(second), await start(second), await start()];
    await pass(4 * minute);
    expect(runs.map((run) => outcome(run).output)).toEqual([{ number: 1 }, { number: 2 }, { number: 3 }]);
  });

  it("is run by the newer run once the replaced run's work must have ended, with a larger token", async () => {
    const start = define({ overlap: "replace", once: false, lockAtMostFor: Duration.seconds(30) }, target);
    stopsIn = 2 * minute;
    runsFor = (number) => {
      expect(atWork).toBe(0);
      return number === 1 ? 55 * second : second;
    };
    const replaced = await start(5 * second);
    const run = await start();
    await pass(5 * minute);
    expect(outcome(replaced).status).toBe("ABORTED");
    expect(outcome(run).output).toEqual({ number: 2 });
    expect(starts.map(({ stopped }) => stopped)).toEqual([kind === "a task of ECS", false]);
    expect(tokenOf(starts[1])).toBeGreaterThan(tokenOf(starts[0]));
  });

  it("whose answer is more than Step Functions takes fails by name, once, and lets the lock go", async () => {
    const start = define({}, target);
    let calls = 0;
    for (const action of ["lambda:invoke", "ecs:runTask.sync"])
      steps.resources.set(action, () => {
        calls += 1;
        return { Payload: "x".repeat(300_000) };
      });
    const run = await start(second);
    const error = expect.stringMatching(/^(Function|Task)AnswerTooLargeError$/);
    expect(outcome(run)).toMatchObject({ status: "FAILED", error });
    expect([calls, isHeld()]).toEqual([1, false]);
  });
});

describe.each<[string, MakeTarget, readonly string[], object]>([
  [
    "a function",
    aFunction,
    ["Lambda.TooManyRequestsException", "Lambda.TooManyRequestsException"],
    { job: "report", scheduledTime, input: { day: 1 }, fencingToken: expect.any(Number) },
  ],
  [
    "a task of ECS",
    ecsTask(),
    ["ECS.AmazonECSException", "AmazonECS.Unknown"],
    {
      Overrides: {
        ContainerOverrides: [
          {
            Name: "main",
            Environment: [
              { Name: "LEASEHOLD_JOB", Value: "report" },
              { Name: "LEASEHOLD_KEY", Value: key },
              { Name: "LEASEHOLD_SLOT", Value: scheduledTime },
              { Name: "LEASEHOLD_FENCING_TOKEN", Value: expect.stringMatching(/^\d+$/) },
              { Name: "LEASEHOLD_INPUT", Value: '{"day":1}' },
            ],
          },
        ],
      },
    },
  ],
  [
    "a job of Batch",
    taskTargets.batchJob,
    ["Batch.AWSBatchException", "Batch.TooManyRequestsException"],
    {
      ContainerOverrides: {
        Environment: expect.arrayContaining([{ Name: "LEASEHOLD_INPUT", Value: '{"day":1}' }]),
      },
      Timeout: { AttemptDurationSeconds: 3600 },
    },
  ],
  [
    "a job of Glue",
    taskTargets.glueJob,
    ["Glue.AWSGlueException", "Glue.ConcurrentRunsExceededException"],
    {
      Arguments: { "--LEASEHOLD_JOB": "report", "--LEASEHOLD_FENCING_TOKEN": expect.stringMatching(/^\d+$/) },
      Timeout: 60,
    },
  ],
  [
    "an execution of another state machine",
    taskTargets.stateMachine,
    ["StepFunctions.ExecutionLimitExceededException", "StepFunctions.AWSStepFunctionsException"],
    { Input: { job: "report", scheduledTime, input: { day: 1 }, fencingToken: expect.any(Number) } },
  ],
])("%s", (kind, target, noRoom, args) => {
  it("is started under the lease once there is room, whatever it was refused with", async () => {
    const start = define({ maxEventAge: Duration.hours(1) }, target);
    runsFor = (number) => {
      if (number <= 8) throw new StatesError(noRoom[number % 2] ?? "");
      return second;
    };
    const run = await start(0);
    await clock.advance(20 * minute);
    expect(outcome(run)).toMatchObject({ status: "SUCCEEDED", output: { number: 9 } });
    expect(starts[0]?.args).toMatchObject(args);
  });

  it("is not started any more once a run that finds no room is too old to be worth it", async () => {
    const start = define({ maxEventAge: Duration.minutes(5) }, target);
    failWith(String(noRoom[0]), "Rate exceeded");
    const run = await start(10 * minute);
    expect(outcome(run)).toMatchObject({ status: "FAILED", error: noRoom[0] });
    const last = starts.at(-1)?.at ?? 0;
    expect(last).toBeGreaterThanOrEqual(5 * minute);
    expect(last).toBeLessThan(7 * minute);
    expect(isHeld()).toBe(false);
  });

  it("has its run stopped when the lease is lost, and no other begins until it must have ended", async () => {
    const start = define({ lockAtMostFor: Duration.seconds(30), once: false }, target);
    runsFor = (number) => {
      expect(atWork).toBe(0);
      return number === 1 ? 55 * second : second;
    };
    stopsIn = 2 * minute;
    const run = await start(20 * second);
    await breakLease();
    const next = await start(25 * second);
    expect(outcome(run)).toMatchObject({ status: "ABORTED", error: "LeaseLostError" });
    expect(starts).toMatchObject([{ stopped: kind !== "a function" }]);
    await clock.advance(4 * minute);
    expect(outcome(next).output).toEqual({ number: 2 });
  });
});

describe("a task of ECS", () => {
  it("is stopped when it takes longer than its timeout, is not repeated, and no other begins until it has ended", async () => {
    const start = define({ once: false }, ecsTask({ timeout: Duration.minutes(10) }));
    runsFor = (number) => (number === 1 ? 24 * 60 * minute : second);
    stopsIn = 2 * minute;
    const run = await start(10 * minute + second);
    expect(outcome(run)).toMatchObject({ status: "FAILED", error: "States.Timeout" });
    expect(starts).toMatchObject([{ stopped: true }]);
    expect(isHeld()).toBe(false);
    const next = await start(2 * minute + 58 * second);
    expect(starts).toHaveLength(1);
    await clock.advance(minute);
    expect(outcome(next).output).toEqual({ number: 2 });
  });

  it("may run when the answer to its start is lost, so it is not repeated and the lock is held for its time", async () => {
    const start = define({}, ecsTask({ timeout: Duration.minutes(10) }));
    failWith("ECS.SdkClientException", "connection reset");
    const run = await start(13 * minute - second);
    expect(isHeld()).toBe(true);
    await clock.advance(5 * second);
    expect(isHeld()).toBe(false);
    expect(starts).toHaveLength(1);
    expect(outcome(run)).toMatchObject({ status: "FAILED", error: "ECS.SdkClientException" });
  });
});

/** Does something when the nth write to the table has taken effect; the write's answer is lost where it throws. */
function afterWrite(nth: number, happen: (write: MemoryLeaseStore["updateNow"]) => void): void {
  const write = steps.store.updateNow.bind(steps.store);
  let writes = 0;
  steps.store.updateNow = (request) => {
    const result = write(request);
    writes += 1;
    if (writes === nth) happen(write);
    return result;
  };
}

describe("a function", () => {
  it.each([
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
  ])(
    "may still run after %s: it is called again only once it must have ended, the lock being held",
    async (error) => {
      const start = define();
      failWith(error, "connection reset");
      const run = await start(0);
      // Its timeout of a minute, and a minute for a start that is late; then twice as long, and again.
      const calls = [0, 2, 6, 14].map((minutes) => minutes * minute);
      expect(await pass(16 * minute - second)).toBe(0);
      expect(starts.map(({ at }) => at)).toEqual(calls);
      await clock.advance(5 * second);
      expect(isHeld()).toBe(false);
      expect(outcome(run)).toMatchObject({ status: "FAILED", error, cause: "connection reset" });
    },
  );

  it("whose answer never comes is given up on when it must have ended", async () => {
    const start = define({}, lockedFunction({ retryAttempts: 0 }));
    runsFor = () => 24 * 60 * minute;
    const run = await start(10 * minute);
    expect(outcome(run)).toMatchObject({ status: "FAILED", error: "States.Timeout" });
    expect(isHeld()).toBe(false);
  });

  it("has done its work where its result is longer than an execution may give", async () => {
    const start = define();
    steps.resources.set("lambda:invoke", () => ({ Payload: "€".repeat(80_000) }));
    const run = await start(minute);
    expect(outcome(run)).toMatchObject({
      status: "SUCCEEDED",
      output: { omitted: "what the function returned is too long to be kept" },
    });
  });

  it.each([null, "", [], ["one"]])("may return %j", async (Payload) => {
    const start = define();
    steps.resources.set("lambda:invoke", () => ({ Payload }));
    const run = await start(second);
    expect(outcome(run).status).toBe("SUCCEEDED");
  });

  it("leaves the lock in its cooldown for lockAtLeastFor, however soon it returns; and frees it where it fails", async () => {
    const start = define(
      { lockAtLeastFor: Duration.seconds(40), once: false },
      lockedFunction({ retryAttempts: 0 }),
    );
    runsFor = (number) => {
      if (number === 3) throw new StatesError("OutOfStock");
      return 0;
    };
    await start(second);
    const late = await start(second);
    expect(outcome(late).output).toMatchObject({ skipped: true, reason: "held" });
    await clock.advance(40 * second);
    const next = await start(second);
    expect(outcome(next).output).toEqual({ number: 2 });
    await clock.advance(minute);
    const failing = await start(second);
    expect([outcome(failing).error, isHeld()]).toEqual(["OutOfStock", false]);
  });

  it("is called once a call under way must have ended, however many runs have been killed; the lock is held meanwhile", async () => {
    const start = define({ lockAtMostFor: Duration.seconds(30), once: false });
    runsFor = (number) => (number === 1 ? 50 * second : second);
    for (let times = 0; times < 3; times += 1) {
      const run = await start(5 * second);
      steps.machines.stop(run);
      // The keeper need not look at every beat.
      while (isHeld()) await clock.advance(second);
    }
    const run = await start(0);
    expect(await pass(minute)).toBe(0);
    expect(starts).toHaveLength(1);
    await clock.advance(2 * minute);
    expect(outcome(run).output).toEqual({ number: 2 });
    expect(starts[1]?.args).toMatchObject({ job: "report", input: { day: 1 } });
    const after = await start(2 * second);
    expect(outcome(after).output).toEqual({ number: 3 });
  });

  it("is not called by a run that was overtaken before its call, and that run fails", async () => {
    const start = define({ lockAtMostFor: Duration.seconds(30), once: false });
    // Between the grant and the mark another run has had the lock, and has marked its call.
    afterWrite(1, (write) => {
      const later = { key, fencingToken: Number.MAX_SAFE_INTEGER, now: clock.now(), retentionMs: 0 };
      expect(write(takeOverCalls(later).request()).applied).toBe(true);
    });
    const run = await start(3 * minute);
    expect(outcome(run)).toMatchObject({ status: "FAILED", error: "LeaseLostError" });
    expect(starts).toEqual([]);
  });

  it.each([1, 2, 3, 4])("is called once, and at once, where the answer of write %d is lost", async (nth) => {
    const start = define({ once: false });
    runsFor = () => 0;
    afterWrite(nth, () => {
      throw new StatesError("DynamoDb.SdkClientException", "the answer was lost");
    });
    for (const number of [1, 2]) {
      const run = await start(30 * second);
      expect(outcome(run)).toMatchObject({ status: "SUCCEEDED", output: { number } });
    }
  });

  it("begins no call beside the task of a stopped run that took weeks", async () => {
    const day = 24 * 60 * minute;
    const start = define(
      { lockAtMostFor: Duration.days(1), once: false },
      ecsTask({ timeout: Duration.days(30) }),
    );
    runsFor = () => 20 * day;
    const run = await start(10 * day);
    steps.store.collectGarbage(clock.now());
    steps.machines.stop(run);
    while (isHeld()) await clock.advance(60 * minute);
    await start(minute);
    expect(starts).toHaveLength(1);
    await clock.advance(3 * minute);
    expect(starts).toHaveLength(2);
  });

  it("has succeeded where the end of its call cannot be noted", async () => {
    const start = define({ once: false });
    runsFor = () => {
      steps.fail("dynamodb:updateItem", 4);
      return 0;
    };
    const run = await start(minute);
    expect(outcome(run)).toMatchObject({ status: "SUCCEEDED", output: { number: 1 } });
  });
});

describe("a function behind the permits of a job", () => {
  it("is called by as many runs at once as there are permits, each with 3 writes, and the next one skips", async () => {
    runsFor = () => 4 * second;
    const start = define({ permits: 2, once: false });
    const runs = [await start(), await start()];
    await clock.advance(second);
    const three = await start(second);
    expect(starts).toHaveLength(2);
    expect(outcome(three)).toMatchObject({ status: "SUCCEEDED", output: { skipped: true, reason: "held" } });
    const client = new Semaphore(other, key, { permits: 2 });
    expect((await client.inspect()).free).toBe(0);
    expect(isHeld()).toBe(false);
    await clock.advance(4 * second);
    expect(runs.map((run) => outcome(run).status)).toEqual(["SUCCEEDED", "SUCCEEDED"]);
    expect((await client.inspect()).free).toBe(2);
    for (const run of runs) expect(steps.machines.history(run).entered).toHaveLength(8);
    const [former, latter] = starts.map(({ args }) => Number(args.fencingToken));
    expect(latter).toBe(Number(former) + 1);
  });

  it("that may run on after Lambda's answer was lost keeps its permit until it must have ended", async () => {
    failWith("Lambda.SdkClientException", "the answer was lost");
    const run = await define({ permits: 1, once: false })();
    const taken = (): unknown => steps.store.peek({ pk: key, sk: "semaphore" })?.permits;
    for (let passed = 0; outcome(run).status === "RUNNING"; passed += 10 * second) {
      if (passed > 0) expect(taken()).toBe(1);
      await clock.advance(10 * second);
    }
    expect(clock.now() - startTime - (starts.at(-1)?.at ?? 0)).toBeGreaterThanOrEqual(2 * minute);
    expect(taken()).toBe(0);
  });
});
