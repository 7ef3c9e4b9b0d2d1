import {
  type EcsTaskTargetOptions,
  type JobTarget,
  LeaseTable,
  LeaseWakeup,
  SingletonJob,
  type SingletonJobProps,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { App, Duration, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Vpc } from "aws-cdk-lib/aws-ec2";
import { Cluster, ContainerImage, FargateTaskDefinition } from "aws-cdk-lib/aws-ecs";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { EcsFargateLaunchTarget } from "aws-cdk-lib/aws-stepfunctions-tasks";
import { beforeEach, describe, expect, it } from "vitest";
import { StatesError } from "../../tools/local/src/state-machines/errors.ts";
import { adminOf } from "../support/admin.ts";
import { definitionsIn } from "../support/definitions.ts";
import { machineArn, StepFunctions } from "../support/step-functions.ts";

const key = "report";
const second = 1_000;
const minute = 60 * second;
const startTime = Date.parse("2026-03-01T12:00:00Z");

/** One task that was started. */
interface Task {
  readonly at: number;
  readonly args: Record<string, never>;
  stopped: boolean;
}

let clock: ManualClock;
let steps: StepFunctions;
let other: LeaseClient;
let tasks: Task[];
/** Containers at work, those included that have been told to stop. */
let atWork: number;
/** For how long a task runs, by its number; throws where it fails or cannot be started. */
let runsFor: (task: number) => number;
/** For how long a container works on after it was told to stop. */
let stopsIn: number;

/** Runs a task as a service does: it ends by itself, or a while after it was stopped. */
async function runTask(args: never, signal: AbortSignal): Promise<unknown> {
  const task: Task = { at: clock.now() - startTime, args, stopped: false };
  tasks.push(task);
  const number = tasks.length;
  const forMs = runsFor(number);
  atWork += 1;
  expect(atWork).toBe(1);
  return await new Promise((resolve) => {
    const end = (): void => {
      atWork -= 1;
      resolve({ number });
    };
    const cancel = clock.schedule(end, forMs);
    signal.addEventListener("abort", () => {
      cancel();
      task.stopped = true;
      clock.schedule(end, stopsIn);
    });
  });
}

beforeEach(() => {
  clock = new ManualClock(startTime);
  steps = new StepFunctions(clock);
  other = new LeaseClient({ store: steps.store, clock, owner: "other" });
  tasks = [];
  atWork = 0;
  runsFor = () => 20 * second;
  stopsIn = 30 * second;
  for (const action of ["ecs:runTask.sync", "batch:submitJob.sync", "glue:startJobRun.sync"]) {
    steps.resources.set(action, runTask);
  }
  steps.resources.set("states:startExecution.sync:2", async (args, signal) => {
    return { Output: await runTask(args, signal) };
  });
});

type MakeTarget = (stack: Stack) => JobTarget;

function ecsTask(options: Partial<EcsTaskTargetOptions> = {}): MakeTarget {
  return (stack) => {
    const vpc = Vpc.fromVpcAttributes(stack, "Vpc", {
      vpcId: "vpc-1",
      availabilityZones: ["a"],
      privateSubnetIds: ["subnet-1"],
    });
    const taskDefinition = new FargateTaskDefinition(stack, "Definition");
    taskDefinition.addContainer("main", { image: ContainerImage.fromRegistry("report") });
    return SingletonJobTarget.ecsTask({
      cluster: new Cluster(stack, "Cluster", { vpc }),
      taskDefinition,
      launchTarget: new EcsFargateLaunchTarget(),
      ...options,
    });
  };
}

const batchJob: MakeTarget = () =>
  SingletonJobTarget.batchJob({ jobDefinitionArn: "arn:definition", jobQueueArn: "arn:queue" });
const glueJob: MakeTarget = () => SingletonJobTarget.glueJob({ glueJobName: "report" });
const execution: MakeTarget = (stack) =>
  SingletonJobTarget.stateMachine(StateMachine.fromStateMachineArn(stack, "Theirs", machineArn("theirs")));

/** Synthesizes a job of the target, and defines its state machines as AWS would. */
function define(
  target: MakeTarget = ecsTask(),
  props: Partial<SingletonJobProps> = {},
): (scheduledTime?: number) => string {
  const stack = new Stack(new App(), "Test");
  const table = new LeaseTable(stack, "Leases", { stream: true });
  const handler = (): LambdaFunction =>
    new LambdaFunction(stack, "Wake", {
      runtime: Runtime.NODEJS_24_X,
      handler: "index.handler",
      code: Code.fromInline("exports.handler = async () => {};"),
    });
  const waits = props.overlap === "queue" || props.overlap === "replace";
  new SingletonJob(stack, "Job", {
    table,
    key,
    jobName: "report",
    schedule: ScheduleExpression.rate(Duration.minutes(5)),
    target: target(stack),
    ...(waits ? { wakeup: new LeaseWakeup(stack, "Wakeup", { table, handler: handler() }) } : {}),
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

/** Lets time pass, and wakes the longest waiter of a lock that is free, as the stream and the waking function do. */
async function pass(forMs: number): Promise<void> {
  for (let passed = 0; passed < forMs; passed += second) {
    await clock.advance(second);
    if (isHeld()) continue;
    const waiters = [...(await steps.waiters())].sort((a, b) => (String(a.sk) < String(b.sk) ? -1 : 1));
    const isWaiting = ({ taskToken }: (typeof waiters)[number]): boolean => {
      try {
        steps.machines.sendTaskSuccess(String(taskToken), {});
        return true;
      } catch {
        return false;
      }
    };
    waiters.some(isWaiting);
  }
}

interface Overrides {
  readonly ContainerOverrides: [
    { readonly Environment: readonly { readonly Name: string; readonly Value: string }[] },
  ];
}

/** The variables of a task of ECS, by name. */
function environmentOf(task: Task | undefined): Record<string, string> {
  if (task === undefined) throw new Error("no task was started");
  const { ContainerOverrides } = task.args.Overrides as unknown as Overrides;
  return Object.fromEntries(ContainerOverrides[0].Environment.map(({ Name, Value }) => [Name, Value]));
}

describe("a task of ECS under the lock", () => {
  it("is run while the lease is held, knows its run, and its slot is done with it", async () => {
    const start = define();
    runsFor = () => {
      expect(isHeld()).toBe(true);
      return 10 * minute;
    };
    const run = start();
    await clock.advance(11 * minute);
    expect(outcome(run)).toMatchObject({ status: "SUCCEEDED", output: { number: 1 } });
    expect(environmentOf(tasks[0])).toEqual({
      LEASEHOLD_JOB: "report",
      LEASEHOLD_KEY: key,
      LEASEHOLD_SLOT: "2026-03-01T12:00:00.000Z",
      LEASEHOLD_FENCING_TOKEN: String(steps.lease(key)?.fence),
      LEASEHOLD_INPUT: '{"day":1}',
    });
    expect(isHeld()).toBe(false);

    const again = start(startTime);
    await clock.advance(minute);
    expect(outcome(again).output).toMatchObject({ skipped: true, reason: "done" });
    expect(tasks).toHaveLength(1);
  });

  it("is not run by a run that finds the lock held, and skips", async () => {
    const start = define();
    await other.acquire(key, { leaseDurationMs: 10 * minute });
    const run = start();
    await clock.advance(minute);
    expect(outcome(run).output).toMatchObject({ skipped: true, reason: "held" });
    expect(tasks).toEqual([]);
  });

  it("is repeated under the same lease when it fails, then fails the run and frees the lock and the slot", async () => {
    const start = define(ecsTask({ retryAttempts: 3 }));
    runsFor = () => {
      throw new StatesError("States.TaskFailed", "exit code 1");
    };
    const run = start();
    await clock.advance(2 * minute);
    expect(outcome(run)).toMatchObject({
      status: "FAILED",
      error: "States.TaskFailed",
      cause: "exit code 1",
    });
    expect(tasks).toHaveLength(4);
    expect(new Set(tasks.map((task) => environmentOf(task).LEASEHOLD_FENCING_TOKEN)).size).toBe(1);
    expect(isHeld()).toBe(false);

    runsFor = () => second;
    const next = start(startTime);
    await clock.advance(minute);
    expect(outcome(next).output).toEqual({ number: 5 });
  });

  it("is not started any more once a run that finds no room is too old to be worth it", async () => {
    const start = define(ecsTask(), { maxEventAge: Duration.minutes(5) });
    runsFor = () => {
      throw new StatesError("ECS.AmazonECSException", "Rate exceeded");
    };
    const run = start();
    await clock.advance(10 * minute);
    expect(outcome(run)).toMatchObject({ status: "FAILED", error: "ECS.AmazonECSException" });
    const last = tasks.at(-1)?.at ?? 0;
    expect(last).toBeGreaterThanOrEqual(5 * minute);
    expect(last).toBeLessThan(7 * minute);
    expect(isHeld()).toBe(false);
  });

  it("is stopped when it takes longer than its timeout, is not repeated, and no other begins until it has ended", async () => {
    const start = define(ecsTask({ timeout: Duration.minutes(10) }), { once: false });
    runsFor = (task) => (task === 1 ? 24 * 60 * minute : second);
    stopsIn = 2 * minute;
    const run = start();
    await clock.advance(10 * minute + second);
    expect(outcome(run)).toMatchObject({ status: "FAILED", error: "States.Timeout" });
    expect(tasks).toMatchObject([{ stopped: true }]);
    expect(isHeld()).toBe(false);
    const next = start();
    await clock.advance(2 * minute + 58 * second);
    expect(tasks).toHaveLength(1);
    await clock.advance(minute);
    expect(outcome(next).output).toEqual({ number: 2 });
  });

  it("may run when the answer to its start is lost, so it is not repeated and the lock is held for its time", async () => {
    const start = define(ecsTask({ timeout: Duration.minutes(10) }));
    runsFor = () => {
      throw new StatesError("ECS.SdkClientException", "connection reset");
    };
    const run = start();
    await clock.advance(13 * minute - second);
    expect(isHeld()).toBe(true);
    await clock.advance(5 * second);
    expect(isHeld()).toBe(false);
    expect(tasks).toHaveLength(1);
    expect(outcome(run)).toMatchObject({ status: "FAILED", error: "ECS.SdkClientException" });
  });

  it("is run by one of many runs at a time, each in its turn, when they queue", async () => {
    const start = define(ecsTask(), { overlap: "queue", maxEventAge: Duration.hours(1), once: false });
    runsFor = () => minute;
    const runs = [start()];
    await clock.advance(second);
    runs.push(start());
    await clock.advance(second);
    runs.push(start());
    await pass(4 * minute);
    expect(runs.map((run) => outcome(run).output)).toEqual([{ number: 1 }, { number: 2 }, { number: 3 }]);
  });

  it("is stopped when its run is replaced, and the newer task begins when it has ended, with a larger token", async () => {
    const start = define(ecsTask(), { overlap: "replace", once: false, lockAtMostFor: Duration.seconds(30) });
    runsFor = (task) => (task === 1 ? 60 * minute : second);
    stopsIn = 2 * minute;
    const replaced = start();
    await clock.advance(5 * second);
    const run = start();
    await pass(5 * minute);
    expect(outcome(replaced).status).toBe("ABORTED");
    expect(outcome(run).output).toEqual({ number: 2 });
    expect(tasks).toMatchObject([{ stopped: true }, { stopped: false }]);
    const [older, newer] = tasks.map((task) => Number(environmentOf(task).LEASEHOLD_FENCING_TOKEN));
    expect(newer).toBeGreaterThan(older ?? 0);
  });

  it("leaves the lock in its cooldown for lockAtLeastFor, however soon it ends", async () => {
    const start = define(ecsTask(), { lockAtLeastFor: Duration.minutes(2), once: false });
    start();
    await clock.advance(minute);
    const late = start();
    await clock.advance(second);
    expect(outcome(late).output).toMatchObject({ skipped: true, reason: "held" });
    await clock.advance(2 * minute);
    const next = start();
    await clock.advance(minute);
    expect(outcome(next).output).toEqual({ number: 2 });
  });

  it("whose description is more than Step Functions takes fails by name, and lets the lock go", async () => {
    const start = define();
    steps.resources.set("ecs:runTask.sync", () => ({ large: "x".repeat(300_000) }));
    const run = start();
    await clock.advance(second);
    expect(outcome(run)).toMatchObject({ status: "FAILED", error: "TaskAnswerTooLargeError" });
    expect(isHeld()).toBe(false);
  });
});

describe.each<[string, MakeTarget, readonly string[], object]>([
  [
    "a task of ECS",
    ecsTask(),
    ["ECS.AmazonECSException", "AmazonECS.Unknown"],
    { Overrides: { ContainerOverrides: [{ Name: "main" }] } },
  ],
  [
    "a job of Batch",
    batchJob,
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
    glueJob,
    ["Glue.AWSGlueException", "Glue.ConcurrentRunsExceededException"],
    {
      Arguments: { "--LEASEHOLD_JOB": "report", "--LEASEHOLD_FENCING_TOKEN": expect.stringMatching(/^\d+$/) },
      Timeout: 60,
    },
  ],
  [
    "an execution of another state machine",
    execution,
    ["StepFunctions.ExecutionLimitExceededException", "StepFunctions.AWSStepFunctionsException"],
    {
      Input: {
        job: "report",
        scheduledTime: "2026-03-01T12:00:00.000Z",
        input: { day: 1 },
        fencingToken: expect.any(Number),
      },
    },
  ],
])("%s", (_, target, noRoom, args) => {
  it("is started under the lease once there is room, whatever it was refused with, and gives the run its result", async () => {
    const start = define(target, { maxEventAge: Duration.hours(1) });
    runsFor = (task) => {
      if (task <= 8) throw new StatesError(noRoom[task % 2] ?? "");
      return second;
    };
    const run = start();
    await clock.advance(20 * minute);
    expect(outcome(run)).toMatchObject({ status: "SUCCEEDED", output: { number: 9 } });
    expect(tasks[0]?.args).toMatchObject(args);
  });

  it("is stopped with its run when the lease is lost, and no other begins until it has ended", async () => {
    const start = define(target, { lockAtMostFor: Duration.seconds(30), once: false });
    runsFor = (task) => (task === 1 ? 50 * minute : second);
    stopsIn = 2 * minute;
    const run = start();
    await clock.advance(20 * second);
    await adminOf(other).forceRelease(key, { token: String(steps.lease(key)?.token) });
    const next = start();
    await clock.advance(25 * second);
    expect(outcome(run)).toMatchObject({ status: "ABORTED", error: "LeaseLostError" });
    expect(tasks).toMatchObject([{ stopped: true }]);
    await clock.advance(4 * minute);
    expect(outcome(next).output).toEqual({ number: 2 });
  });
});
