import {
  type JobOverlap,
  LeasedWorkflow,
  type LeasedWorkflowProps,
  LeaseHeartbeatAlarms,
  LeaseTable,
  LeaseWakeup,
  SingletonJob,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { App, Duration, Stack } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { Code, Function as LambdaFunction, Runtime } from "aws-cdk-lib/aws-lambda";
import { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { Pass, Wait, WaitTime } from "aws-cdk-lib/aws-stepfunctions";
import { type CloudFormationTemplate, resourcesOf } from "../../../test/support/cloudformation.ts";
import { definitionsIn } from "../../../test/support/definitions.ts";
import { StepFunctions } from "../../../test/support/step-functions.ts";
import { isRelease, wakeUp } from "./functions.ts";
import { sumOf, type Usage } from "./prices.ts";

const hourMs = 3_600_000;
/** A lease is renewed each third of it. */
const beatsOfLease = 3;
const key = "bench";

/** Of these the average is taken: a keeper does not do the same at every beat. */
const beats = 60;

/** What the keeper of a leased workflow takes in an hour, by the lease's length; beginning, hand-overs and end left out. */
export async function keeperHour(leaseDuration: Duration): Promise<Usage> {
  const world = await worldOf((stack, table) => {
    const work = Wait.jsonata(stack, "Long", { time: WaitTime.duration(Duration.days(30)) });
    new LeasedWorkflow(stack, "Workflow", { table, key, work, leaseDuration });
  });
  world.start("Workflow");
  const leaseMs = leaseDuration.toMilliseconds();
  await world.clock.advance(leaseMs);
  const before = world.usage();
  await world.clock.advance((beats / beatsOfLease) * leaseMs);
  const seen = sumOf([world.usage(), 1], [before, -1]);
  return sumOf([seen, (beatsOfLease * hourMs) / leaseMs / beats]);
}

/** What a run of a leased workflow takes besides its work, which ends at once: with its keeper, to the end of both. */
export async function workflowRun(whenHeld: LeasedWorkflowProps["whenHeld"]): Promise<Usage> {
  const world = await leasedWorld(whenHeld);
  world.start("Workflow");
  await world.clock.advance(hourMs);
  return withoutWork(world.usage());
}

/** What a run takes that finds the lock held: it skips, fails, or waits for a minute and then runs. */
export async function heldRun(whenHeld: LeasedWorkflowProps["whenHeld"]): Promise<Usage> {
  const world = await leasedWorld(whenHeld);
  const holder = new LeaseClient({ store: world.steps.store, clock: world.clock, leaseDurationMs: 60_000 });
  await holder.acquire(key);
  world.start("Workflow");
  await world.clock.advance(hourMs);
  const waits = whenHeld === "wait" || whenHeld === "replace";
  return waits ? withoutWork(world.usage()) : world.usage();
}

/** What a queued run of a function takes, besides the function. */
export async function queuedRun(): Promise<Usage> {
  const world = await worldOf((stack, table, wakeup) => {
    new SingletonJob(stack, "Job", {
      table,
      key,
      schedule: ScheduleExpression.rate(Duration.minutes(1)),
      target: SingletonJobTarget.lambda(functionOf(stack, "Work")),
      overlap: "queue",
      wakeup,
    });
  });
  world.steps.resources.set("lambda:invoke", () => ({ Payload: {} }));
  world.start("Job", { scheduledTime: new Date(world.clock.now()).toISOString() });
  await world.clock.advance(hourMs);
  return world.usage();
}

/** How many metrics the default alarms of a job watch, with those that it shares with other jobs of its stack. */
export function alarmsOfJob(target: "function" | "workflow", overlap: JobOverlap): Usage {
  const stack = new Stack(new App(), "Costs");
  const table = new LeaseTable(stack, "Leases", { stream: true });
  const common = { table, schedule: ScheduleExpression.rate(Duration.minutes(1)) };
  if (target === "workflow") {
    const workflow = new LeasedWorkflow(stack, "Workflow", { table, key, work: new Pass(stack, "Nothing") });
    new SingletonJob(stack, "Job", { ...common, target: SingletonJobTarget.workflow(workflow) });
    new LeaseHeartbeatAlarms(stack, "KeeperAlarms", { heartbeat: workflow.heartbeat });
  } else {
    const wakeup = new LeaseWakeup(stack, "Wakeup", { table, handler: functionOf(stack, "Wake") });
    new SingletonJob(stack, "Job", {
      ...common,
      target: SingletonJobTarget.lambda(functionOf(stack, "Work")),
      overlap,
      ...(overlap === "queue" ? { wakeup } : {}),
    });
  }
  return { alarmMetric: alarmMetricsIn(Template.fromStack(stack).toJSON() as CloudFormationTemplate) };
}

interface Alarm {
  readonly Metrics?: readonly { readonly MetricStat?: unknown }[];
}

/** The metrics of a template's alarms: an alarm on an expression is charged for each metric in it. */
export function alarmMetricsIn(template: CloudFormationTemplate): number {
  const alarms = resourcesOf(template, "AWS::CloudWatch::Alarm").map(
    ([, { Properties }]) => Properties as Alarm,
  );
  return alarms.reduce(
    (sum, { Metrics }) => sum + (Metrics?.filter(({ MetricStat }) => MetricStat !== undefined).length ?? 1),
    0,
  );
}

function leasedWorld(whenHeld: LeasedWorkflowProps["whenHeld"]): Promise<World> {
  return worldOf((stack, table, wakeup) => {
    const waits = whenHeld === "wait" || whenHeld === "replace";
    new LeasedWorkflow(stack, "Workflow", {
      table,
      key,
      work: new Pass(stack, "Nothing"),
      ...(whenHeld && { whenHeld }),
      ...(waits ? { wakeup } : {}),
    });
  });
}

/** The one state of the work that `leasedWorld` gives. */
function withoutWork(usage: Usage): Usage {
  return sumOf([usage, 1], [{ transition: 1 }, -1]);
}

/** State machines as they are deployed, on a table in memory and a clock that is set. */
interface World {
  readonly clock: ManualClock;
  readonly steps: StepFunctions;
  /** Starts the machine whose logical id begins so. */
  start(name: string, input?: unknown): void;
  /** What all executions have taken so far. */
  usage(): Usage;
}

async function worldOf(
  define: (stack: Stack, table: LeaseTable, wakeup: LeaseWakeup) => void,
): Promise<World> {
  const stack = new Stack(new App(), "Costs");
  const table = new LeaseTable(stack, "Leases", { stream: true });
  define(stack, table, new LeaseWakeup(stack, "Wakeup", { table, handler: functionOf(stack, "Wake") }));
  const clock = new ManualClock(Date.UTC(2026, 10, 22));
  const steps = new StepFunctions(clock);
  const machines = Object.entries(definitionsIn(Template.fromStack(stack)));
  for (const [id, definition] of machines) steps.define(id, definition);
  const releases = countReleases(steps);
  return {
    clock,
    steps,
    start: (name, input = {}) => {
      const [id] = machines.find(([found]) => found.startsWith(name) && !found.includes("Heartbeat")) ?? [];
      if (id === undefined) throw new Error(`no state machine ${name}`);
      steps.machines.start({
        stateMachineArn: `arn:aws:states:us-east-1:123456789012:stateMachine:${id}`,
        input,
      });
    },
    usage: () => {
      const entered = steps.machines
        .executions()
        .map(({ executionArn }) => steps.machines.history(executionArn).entered.length);
      const made = (action: string): number => steps.calls.filter((call) => call === action).length;
      // A waiter's ticket is a transaction of two items, of 2 units each.
      const parked = made("dynamodb:transactWriteItems.waitForTaskToken");
      const requests = {
        transition: entered.reduce((sum, count) => sum + count, 0),
        writeUnit: made("dynamodb:updateItem") + 4 * parked,
        readUnit: made("dynamodb:getItem"),
      };
      return sumOf([requests, 1], [wakeUp, releases()]);
    },
  };
}

function countReleases({ store }: StepFunctions): () => number {
  const updateNow = store.updateNow.bind(store);
  let releases = 0;
  store.updateNow = (request) => {
    const result = updateNow(request);
    if (result.applied && isRelease(request)) releases += 1;
    return result;
  };
  return () => releases;
}

function functionOf(stack: Stack, id: string): LambdaFunction {
  const code = Code.fromInline("exports.handler = async () => ({});");
  return new LambdaFunction(stack, id, { runtime: Runtime.NODEJS_LATEST, handler: "index.handler", code });
}
