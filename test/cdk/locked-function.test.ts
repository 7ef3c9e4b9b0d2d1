import {
  LeaseTable,
  LeaseWakeup,
  type LockedFunctionTargetOptions,
  SingletonJob,
  type SingletonJobProps,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { LeaseClient } from "@leasehold/client";
import { takeOverCalls } from "@leasehold/client/internal";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock, type MemoryLeaseStore } from "@leasehold/client/testing";
import { App, Duration, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { beforeEach, describe, expect, it } from "vitest";
import { StatesError } from "../../tools/local/src/state-machines/errors.ts";
import { adminOf } from "../support/admin.ts";
import { definitionsIn } from "../support/definitions.ts";
import { machineArn, StepFunctions } from "../support/step-functions.ts";

const key = "report";
const second = 1_000;
const minute = 60 * second;
const startTime = Date.parse("2026-03-01T12:00:00Z");

/** One call of the function: when, and with what. */
interface Call {
  readonly at: number;
  readonly payload: Record<string, unknown>;
}

let clock: ManualClock;
let steps: StepFunctions;
let other: LeaseClient;
let calls: Call[];
/** What the function does, by the number of the call; returns what it returns. */
let answer: (call: number) => unknown;

type Options = Partial<SingletonJobProps> & { readonly target?: never } & {
  readonly options?: LockedFunctionTargetOptions;
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => clock.schedule(resolve, ms));

beforeEach(() => {
  clock = new ManualClock(startTime);
  steps = new StepFunctions(clock);
  other = new LeaseClient({ store: steps.store, clock, owner: "other" });
  calls = [];
  answer = () => "done";
  steps.resources.set("lambda:invoke", async ({ Payload }: never) => {
    calls.push({ at: clock.now() - startTime, payload: Payload });
    return { StatusCode: 200, Payload: await answer(calls.length) };
  });
});

/** Synthesizes a job of a function that runs for a minute at most, and defines its state machines as AWS would. */
function define({ options, ...props }: Options = {}): (scheduledTime?: number) => string {
  const stack = new Stack(new App(), "Test");
  const table = new LeaseTable(stack, "Leases", { stream: true });
  const fn = (id: string): LambdaFunction => {
    const code = Code.fromInline("def handler(event, context): pass");
    const timeout = Duration.minutes(1);
    return new LambdaFunction(stack, id, {
      runtime: Runtime.PYTHON_3_13,
      handler: "index.handler",
      code,
      timeout,
    });
  };
  const waits = props.overlap === "queue" || props.overlap === "replace";
  new SingletonJob(stack, "Job", {
    table,
    key,
    schedule: ScheduleExpression.rate(Duration.minutes(5)),
    target: SingletonJobTarget.lockedLambda(fn("Report"), options),
    ...(waits ? { wakeup: new LeaseWakeup(stack, "Wakeup", { table, handler: fn("Wake") }) } : {}),
    ...props,
  });
  const definitions = definitionsIn(Template.fromStack(stack));
  for (const [name, definition] of Object.entries(definitions)) steps.define(name, definition);
  const name = Object.keys(definitions).find((id) => id.startsWith("JobWorkflowStateMachine")) ?? "";
  return (scheduledTime = clock.now()) => {
    const input = { job: "report", scheduledTime: new Date(scheduledTime).toISOString(), input: { day: 1 } };
    return steps.machines.start({ stateMachineArn: machineArn(name), input }).executionArn;
  };
}

const outcome = (arn: string) => steps.machines.describe(arn);
const isHeld = (): boolean => steps.lease(key)?.token !== undefined;

/** Lets time pass in steps, and says how many seconds the lock was found free. */
async function secondsFree(forMs: number): Promise<number> {
  let free = 0;
  for (let passed = 0; passed < forMs; passed += second) {
    await clock.advance(second);
    if (!isHeld()) free += 1;
  }
  return free;
}

/** Lets time pass until the keeper of a run that has ended has let the lock go: it need not look at every beat. */
async function released(): Promise<void> {
  for (let passed = 0; isHeld(); passed += second) {
    if (passed > 2 * minute) throw new Error("the lock was not let go");
    await clock.advance(second);
  }
}

/** What the stream and the waking function do: the longest waiter of a released lock goes on. */
async function wake(): Promise<void> {
  if (isHeld()) return;
  for (const waiter of [...(await steps.waiters())].sort((a, b) => (String(a.sk) < String(b.sk) ? -1 : 1))) {
    try {
      steps.machines.sendTaskSuccess(String(waiter.taskToken), {});
      return;
    } catch {
      // This one is not waiting any more.
    }
  }
}

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

describe("a function that is locked from outside", () => {
  it("is called under the lease, with what the job sends and a fencing token, and its slot is done with it", async () => {
    const start = define();
    answer = async () => {
      expect(isHeld()).toBe(true);
      await pause(20 * second);
      return { reports: 3 };
    };
    const run = start();
    await clock.advance(minute);
    expect(outcome(run)).toMatchObject({ status: "SUCCEEDED", output: { reports: 3 } });
    const fencingToken = steps.lease(key)?.fence;
    expect(calls.map(({ payload }) => payload)).toEqual([
      { job: "report", scheduledTime: "2026-03-01T12:00:00.000Z", input: { day: 1 }, fencingToken },
    ]);
    expect(isHeld()).toBe(false);

    const again = start(startTime);
    await clock.advance(minute);
    expect(outcome(again)).toMatchObject({ status: "SUCCEEDED", output: { skipped: true, reason: "done" } });
    expect(calls).toHaveLength(1);
  });

  it("is not called by a run that finds the lock held, and skips", async () => {
    const start = define();
    await other.acquire(key, { leaseDurationMs: 10 * minute });
    const run = start();
    await clock.advance(minute);
    expect(outcome(run)).toMatchObject({ status: "SUCCEEDED", output: { skipped: true, reason: "held" } });
    expect(calls).toEqual([]);
  });

  it("is never called where the lease cannot be confirmed, whatever fails on the way to it", async () => {
    const start = define();
    for (const action of ["dynamodb:updateItem", "sfn:startExecution"]) {
      // The keeper may be started with or without waiting for its answer.
      for (const name of [action, `${action}.waitForTaskToken`]) steps.fail(name, 4);
      const run = start();
      await clock.advance(minute);
      expect(outcome(run).status, action).toBe("FAILED");
    }
    expect(calls).toEqual([]);
    expect(isHeld()).toBe(false);
  });

  it("keeps its lease for an hour of throttling, and is called once there is room", async () => {
    const start = define({ maxEventAge: Duration.hours(2) });
    answer = (call) => {
      if (clock.now() < startTime + 60 * minute) throw new StatesError("Lambda.TooManyRequestsException");
      return call;
    };
    const run = start();
    await clock.advance(0);
    expect(await secondsFree(60 * minute - second)).toBe(0);
    await clock.advance(2 * minute);
    expect(outcome(run).status).toBe("SUCCEEDED");
    expect(isHeld()).toBe(false);
  });

  it("is not called any more once a throttled run is too old to be worth it", async () => {
    const start = define({ maxEventAge: Duration.minutes(5) });
    answer = () => {
      throw new StatesError("Lambda.TooManyRequestsException", "Rate Exceeded");
    };
    const run = start();
    await clock.advance(10 * minute);
    expect(outcome(run)).toMatchObject({ status: "FAILED", error: "Lambda.TooManyRequestsException" });
    const lastCall = calls.at(-1)?.at ?? 0;
    expect(lastCall).toBeGreaterThanOrEqual(5 * minute);
    expect(lastCall).toBeLessThan(7 * minute);
    expect(isHeld()).toBe(false);
  });

  it.each(["OutOfStock", "Sandbox.Timedout", "Runtime.ExitError", "Lambda.Unknown"])(
    "is repeated under the same lease when it fails with %s, and then ends the run with that error",
    async (error) => {
      const start = define({ options: { retryAttempts: 3 } });
      answer = () => {
        throw new StatesError(error, "no luck");
      };
      const run = start();
      await clock.advance(2 * minute);
      expect(outcome(run)).toMatchObject({ status: "FAILED", error, cause: "no luck" });
      expect(calls).toHaveLength(4);
      expect(new Set(calls.map(({ payload }) => payload.fencingToken)).size).toBe(1);
      expect(isHeld()).toBe(false);

      answer = () => "done";
      const next = start(startTime);
      await clock.advance(minute);
      expect(outcome(next).output).toBe("done");
    },
  );

  it.each([
    "Lambda.ClientExecutionTimeoutException",
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
  ])("may still run after %s, so it is called again only once it must have ended", async (error) => {
    const start = define();
    answer = (call) => {
      if (call < 3) throw new StatesError(error);
      return "done";
    };
    const run = start();
    await clock.advance(10 * minute);
    expect(outcome(run).output).toBe("done");
    // Its timeout of a minute, and a minute for a start that is late; then twice as long.
    expect(calls.map(({ at }) => at)).toEqual([0, 2 * minute, 6 * minute]);
  });

  it("may still run when all answers were lost, so the lock is held until it must have ended", async () => {
    const start = define();
    answer = () => {
      throw new StatesError("Lambda.SdkClientException", "connection reset");
    };
    const run = start();
    await clock.advance(0);
    const lastCall = (2 + 4 + 8) * minute;
    expect(await secondsFree(lastCall + 2 * minute - second)).toBe(0);
    expect(calls.at(-1)?.at).toBe(lastCall);
    await clock.advance(5 * second);
    expect(isHeld()).toBe(false);
    expect(outcome(run)).toMatchObject({
      status: "FAILED",
      error: "Lambda.SdkClientException",
      cause: "connection reset",
    });
  });

  it("whose answer never comes is given up on when it must have ended", async () => {
    const start = define({ options: { retryAttempts: 0 } });
    answer = () => new Promise(() => {});
    const run = start();
    await clock.advance(10 * minute);
    expect(outcome(run)).toMatchObject({ status: "FAILED", error: "States.Timeout" });
    expect(isHeld()).toBe(false);
  });

  it("whose result is longer than an execution may give has done its work all the same", async () => {
    const start = define();
    answer = () => "€".repeat(80_000);
    const run = start();
    await clock.advance(minute);
    expect(outcome(run)).toMatchObject({
      status: "SUCCEEDED",
      output: { omitted: "what the function returned is too long to be kept" },
    });
  });

  it("whose result is more than Step Functions takes fails by name, once, and lets the lock go", async () => {
    const start = define();
    answer = () => "x".repeat(300_000);
    const run = start();
    await clock.advance(second);
    expect(outcome(run)).toMatchObject({ status: "FAILED", error: "FunctionAnswerTooLargeError" });
    expect(calls).toHaveLength(1);
    expect(isHeld()).toBe(false);
  });

  it.each([null, "", 0, false, [], ["one"], {}])("may return %j", async (result) => {
    const start = define();
    answer = () => result;
    const run = start();
    await clock.advance(second);
    expect(outcome(run).status).toBe("SUCCEEDED");
  });

  it("is called by one of many runs at a time, each in its turn, when they queue", async () => {
    const start = define({ overlap: "queue", maxEventAge: Duration.hours(1), once: false });
    let atWork = 0;
    answer = async (call) => {
      atWork += 1;
      expect(atWork).toBe(1);
      await pause(minute);
      atWork -= 1;
      return call;
    };
    const runs = [start()];
    await clock.advance(second);
    runs.push(start());
    await clock.advance(second);
    runs.push(start());
    for (let passed = 0; passed < 4 * minute; passed += second) {
      await clock.advance(second);
      await wake();
    }
    expect(runs.map((run) => outcome(run).output)).toEqual([1, 2, 3]);
  });

  it("is called by the newer run once the replaced run's call must have ended, with a larger fencing token", async () => {
    const start = define({ overlap: "replace", once: false, lockAtMostFor: Duration.seconds(30) });
    let atWork = 0;
    answer = async (call) => {
      atWork += 1;
      expect(atWork).toBe(1);
      await pause(call === 1 ? 55 * second : second);
      atWork -= 1;
      return call;
    };
    const replaced = start();
    await clock.advance(5 * second);
    const run = start();
    for (let passed = 0; passed < 4 * minute; passed += second) {
      await clock.advance(second);
      await wake();
    }
    expect(outcome(replaced).status).toBe("ABORTED");
    expect(outcome(run).output).toBe(2);
    const [older, newer] = calls.map(({ payload }) => Number(payload.fencingToken));
    expect(newer).toBeGreaterThan(older ?? 0);
  });

  it("leaves the lock in its cooldown for lockAtLeastFor, however soon it returns", async () => {
    const start = define({ lockAtLeastFor: Duration.seconds(40), once: false });
    start();
    await clock.advance(second);
    const late = start();
    await clock.advance(second);
    expect(outcome(late).output).toMatchObject({ skipped: true, reason: "held" });
    await clock.advance(40 * second);
    const next = start();
    await clock.advance(second);
    expect(outcome(next).output).toBe("done");
  });

  it("is not called again by a run whose lease was broken, and that run is stopped", async () => {
    const start = define({ lockAtMostFor: Duration.seconds(30), options: { retryAttempts: 20 } });
    answer = () => {
      throw new StatesError("OutOfStock");
    };
    const run = start();
    await clock.advance(20 * second);
    await adminOf(other).forceRelease(key, { token: String(steps.lease(key)?.token) });
    await clock.advance(15 * second);
    expect(outcome(run)).toMatchObject({ status: "ABORTED", error: "LeaseLostError" });
    const before = calls.length;
    await clock.advance(10 * minute);
    expect(calls).toHaveLength(before);
  });

  describe("whose run was killed with a call under way", () => {
    /** Starts a run, and kills it in the middle of a call. */
    async function killed(props: Options = {}): Promise<(scheduledTime?: number) => string> {
      const start = define({ lockAtMostFor: Duration.seconds(30), once: false, ...props });
      answer = async (call) => {
        await pause(call === 1 ? 50 * second : second);
        return call;
      };
      const run = start();
      await clock.advance(5 * second);
      steps.machines.stop(run);
      await released();
      return start;
    }

    it("is called by the next run once that call must have ended; the lock is held meanwhile", async () => {
      const start = await killed();
      const run = start();
      await clock.advance(0);
      expect(await secondsFree(2 * minute - second)).toBe(0);
      expect(calls).toHaveLength(1);
      await clock.advance(10 * second);
      expect(outcome(run).output).toBe(2);
      expect(calls[1]?.payload).toMatchObject({ job: "report", input: { day: 1 } });
    });

    it("is called once it must have ended though several runs in between were killed as well", async () => {
      const start = await killed();
      for (let times = 0; times < 3; times += 1) {
        const run = start();
        await clock.advance(20 * second);
        steps.machines.stop(run);
        await released();
      }
      expect(calls).toHaveLength(1);
      const run = start();
      await clock.advance(3 * minute);
      expect(outcome(run).output).toBe(2);
    });

    it("is called at once by the run after that", async () => {
      const start = await killed();
      start();
      await clock.advance(3 * minute);
      const run = start();
      await clock.advance(2 * second);
      expect(outcome(run).output).toBe(3);
    });

    it("is waited for in the same way when the lease was broken, and the broken run calls it no more", async () => {
      const start = define({ lockAtMostFor: Duration.seconds(30), once: false });
      answer = async (call) => {
        if (call === 1) throw new StatesError("Lambda.TooManyRequestsException");
        await pause(50 * second);
        return call;
      };
      const broken = start();
      await clock.advance(second);
      await adminOf(other).forceRelease(key, { token: String(steps.lease(key)?.token) });
      const run = start();
      await clock.advance(minute);
      expect(outcome(broken)).toMatchObject({ status: "ABORTED", error: "LeaseLostError" });
      const ofBroken = calls.length;
      await clock.advance(59 * second);
      expect(calls).toHaveLength(ofBroken);
      await clock.advance(minute);
      expect(outcome(run).status).toBe("SUCCEEDED");
    });
  });

  it("is not called by a run that was overtaken before its call, and that run fails", async () => {
    const start = define({ lockAtMostFor: Duration.seconds(30), once: false });
    // Between the grant and the mark another run has had the lock, and has marked its call.
    afterWrite(1, (write) => {
      const later = { key, fencingToken: Number.MAX_SAFE_INTEGER, now: clock.now(), retentionMs: 0 };
      expect(write(takeOverCalls(later).request()).applied).toBe(true);
    });
    const run = start();
    await clock.advance(3 * minute);
    expect(outcome(run)).toMatchObject({ status: "FAILED", error: "LeaseLostError" });
    expect(calls).toEqual([]);
  });

  it.each([1, 2, 3, 4])("is called once, and at once, where the answer of write %d is lost", async (nth) => {
    const start = define({ once: false });
    afterWrite(nth, () => {
      throw new StatesError("DynamoDb.SdkClientException", "the answer was lost");
    });
    const run = start();
    await clock.advance(30 * second);
    expect(outcome(run)).toMatchObject({ status: "SUCCEEDED", output: "done" });
    expect(calls).toHaveLength(1);
    const next = start();
    await clock.advance(30 * second);
    expect(outcome(next).output).toBe("done");
  });

  it("has succeeded where the end of its call cannot be noted", async () => {
    const start = define({ once: false });
    answer = () => {
      steps.fail("dynamodb:updateItem", 4);
      return "done";
    };
    const run = start();
    await clock.advance(minute);
    expect(outcome(run)).toMatchObject({ status: "SUCCEEDED", output: "done" });
  });
});

describe("a function behind the permits of a job", () => {
  const permitsTaken = (): unknown => steps.store.peek({ pk: key, sk: "semaphore" })?.permits;

  it("is called by as many runs at once as there are permits, and the next one skips", async () => {
    answer = async () => await pause(30 * second);
    const start = define({ permits: 2, once: false });
    const [one, two] = [start(), start()];
    await clock.advance(second);
    const three = start();
    await clock.advance(second);
    expect(calls).toHaveLength(2);
    expect(outcome(three)).toMatchObject({ status: "SUCCEEDED", output: { skipped: true, reason: "held" } });
    const client = new Semaphore(other, key, { permits: 2 });
    expect((await client.inspect()).free).toBe(0);
    expect(isHeld()).toBe(false);
    await clock.advance(30 * second);
    expect([one, two].map((run) => outcome(run).status)).toEqual(["SUCCEEDED", "SUCCEEDED"]);
    expect(permitsTaken()).toBe(0);
    const [former, latter] = calls.map(({ payload }) => Number(payload.fencingToken));
    expect(latter).toBe(Number(former) + 1);
  });

  it("that may run on after Lambda's answer was lost keeps its permit until it must have ended", async () => {
    answer = () => {
      throw new StatesError("Lambda.SdkClientException", "the answer was lost");
    };
    const start = define({ permits: 1, once: false });
    const run = start();
    for (let passed = 0; passed < 10 * minute; passed += 30 * second) {
      await clock.advance(30 * second);
      if (outcome(run).status === "RUNNING") expect(permitsTaken()).toBe(1);
    }
    const last = calls.at(-1)?.at ?? 0;
    while (outcome(run).status === "RUNNING") await clock.advance(10 * second);
    expect(clock.now() - startTime - last).toBeGreaterThanOrEqual(2 * minute);
    expect(permitsTaken()).toBe(0);
  });

  it("costs 7 transitions and 3 writes", async () => {
    const run = define({ permits: 2, once: false })();
    await clock.advance(second);
    expect(outcome(run).status).toBe("SUCCEEDED");
    expect(steps.machines.history(run).entered).toHaveLength(8);
    expect(steps.calls.filter((call) => call === "dynamodb:updateItem")).toHaveLength(3);
  });
});
