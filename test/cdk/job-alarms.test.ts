import { LeaseTable, SingletonJob, type SingletonJobProps, SingletonJobTarget } from "@leasehold/cdk";
import { type MetricName, metricNames, metricsLine } from "@leasehold/client/metrics";
import { Duration } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { DefinitionBody, Pass, StateMachine } from "aws-cdk-lib/aws-stepfunctions";
import { describe, expect, test } from "vitest";
import { day, expectAlarm, expectQuiet, hour, minute, start } from "../support/alarm-expectations.ts";
import { metricId, TemplateAlarm } from "../support/cloudwatch-alarms.ts";
import { functionIn, newStack } from "../support/constructs.ts";
import { allUndocumented, SyntheticMetrics } from "../support/synthetic-metrics.ts";

const jobName = "close-unpaid-orders";
const lateness = [0, 5 * minute];

type JobOptions = Partial<SingletonJobProps> & { readonly isWorkflow?: boolean };

interface JobWorld {
  /** The alarms by their ids, as they are deployed. */
  readonly alarms: Readonly<Record<string, TemplateAlarm>>;
  /** Logical ids. */
  readonly table: string;
  readonly worker: string;
  readonly queue: string;
}

function jobWorld({ isWorkflow = false, ...options }: JobOptions = {}): JobWorld {
  const stack = newStack();
  const table = new LeaseTable(stack, "Leases");
  const target = isWorkflow
    ? SingletonJobTarget.workflow({
        stateMachine: new StateMachine(stack, "Work", {
          definitionBody: DefinitionBody.fromChainable(new Pass(stack, "Pass")),
        }),
      })
    : SingletonJobTarget.lambda(functionIn(stack, "Work", { timeout: Duration.seconds(50) }));
  const schedule = ScheduleExpression.rate(Duration.minutes(1));
  new SingletonJob(stack, "Job", { table, jobName, schedule, target, ...options });
  const template = Template.fromStack(stack);
  const idOf = (type: string): string => Object.keys(template.findResources(type))[0] ?? "";
  return {
    alarms: Object.fromEntries(
      Object.entries(template.findResources("AWS::CloudWatch::Alarm")).map(([id, { Properties }]) => [
        id.replace(/^JobAlarms(.*).{8}$/, "$1"),
        new TemplateAlarm(Properties),
      ]),
    ),
    table: idOf("AWS::DynamoDB::GlobalTable"),
    worker: idOf(isWorkflow ? "AWS::StepFunctions::StateMachine" : "AWS::Lambda::Function"),
    queue: idOf("AWS::SQS::Queue"),
  };
}

/** A function that runs every minute. */
const usual = jobWorld();
const workflow = jobWorld({ isWorkflow: true });

function alarmOf({ alarms }: JobWorld, name: string): TemplateAlarm {
  const alarm = alarms[name];
  if (alarm === undefined) throw new Error(`no alarm ${name} among ${Object.keys(alarms).join()}`);
  return alarm;
}

/** What the job's runs write, as its middleware writes it. */
class RunsOf {
  readonly metrics = new SyntheticMetrics();
  readonly #subject: { readonly tableName: string; readonly job: string };
  readonly #lateMs: number;

  constructor({ table }: JobWorld, lateMs: number) {
    this.#subject = { tableName: table, job: jobName };
    this.#lateMs = lateMs;
  }

  run(at: number, outcome: MetricName = metricNames.jobSucceeded): void {
    this.metrics.addLine(metricsLine(this.#subject, { [outcome]: 1 }, at), this.#lateMs);
  }

  /** Runs at every interval, some seconds in. */
  runEach(intervalMs: number, from: number, to: number, outcome?: MetricName): void {
    for (let at = from; at < to; at += intervalMs) this.run(at + 7_000, outcome);
  }
}

describe.each(lateness)("metrics that arrive %i ms late", (lateMs) => {
  test("a job that runs every minute is on time, until it stops: that is told of within a quarter of an hour", () => {
    const runs = new RunsOf(usual, lateMs);
    runs.runEach(minute, start - hour, start + 3 * hour);
    for (const alarm of Object.values(usual.alarms))
      expectQuiet(alarm, runs.metrics, start, start + 3 * hour);
    runs.runEach(minute, start + 4 * hour, start + 5 * hour);
    expectAlarm(alarmOf(usual, "DidNotRun"), runs.metrics, start, {
      between: [start + 3 * hour, start + 3 * hour + 15 * minute],
      endsBy: start + 4 * hour + 10 * minute,
    });
  });

  test("a job that runs hourly may miss one run; two are told of before the next, and until it runs again", () => {
    const world = jobWorld({ schedule: ScheduleExpression.rate(Duration.hours(1)) });
    const runs = new RunsOf(world, lateMs);
    runs.runEach(hour, start - day, start + 3 * hour);
    runs.runEach(hour, start + 4 * hour, start + 6 * hour);
    runs.runEach(hour, start + 8 * hour, start + day);
    expectQuiet(alarmOf(world, "DidNotRun"), runs.metrics, start, start + 7 * hour);
    expectAlarm(alarmOf(world, "DidNotRun"), runs.metrics, start, {
      between: [start + 7 * hour, start + 8 * hour],
      endsBy: start + 8 * hour + 30 * minute,
    });
  });

  test("a daily job with a maxInterval of its own is on time, and is told of when it stays away", () => {
    const daily = ScheduleExpression.cron({ minute: "0", hour: "3" });
    const world = jobWorld({ schedule: daily, maxInterval: Duration.hours(26) });
    const runs = new RunsOf(world, lateMs);
    runs.runEach(day, start - 4 * day + 3 * hour, start + 5 * day);
    const alarm = alarmOf(world, "DidNotRun");
    expectQuiet(alarm, runs.metrics, start, start + 5 * day);
    expectAlarm(alarm, runs.metrics, start, {
      between: [start + 5 * day + 5 * hour, start + 5 * day + 10 * hour],
    });
  });

  test("runs that are skipped are runs, and a row of five without a success is told of", () => {
    const runs = new RunsOf(usual, lateMs);
    runs.runEach(minute, start - hour, start + hour);
    runs.runEach(minute, start + hour, start + 2 * hour, metricNames.jobSkipped);
    runs.runEach(minute, start + 2 * hour, start + 3 * hour);
    expectQuiet(alarmOf(usual, "DidNotRun"), runs.metrics, start, start + 3 * hour);
    expectAlarm(alarmOf(usual, "SkippedInARow"), runs.metrics, start, {
      between: [start + hour + 4 * minute, start + hour + 25 * minute],
      endsBy: start + 2 * hour + 40 * minute,
    });
  });

  test("runs that an operator has paused are runs, and no row of skips", () => {
    const runs = new RunsOf(usual, lateMs);
    runs.runEach(minute, start - hour, start + hour);
    runs.runEach(minute, start + hour, start + 4 * hour, metricNames.jobPaused);
    runs.runEach(minute, start + 4 * hour, start + 5 * hour);
    for (const alarm of Object.values(usual.alarms))
      expectQuiet(alarm, runs.metrics, start, start + 5 * hour);
  });

  test("four skips in a row, again and again, are none too many", () => {
    const runs = new RunsOf(usual, lateMs);
    for (let index = -60; index < 240; index += 1) {
      const outcome = index % 5 === 0 ? metricNames.jobSucceeded : metricNames.jobSkipped;
      runs.run(start + index * minute + 7_000, outcome);
    }
    expectQuiet(alarmOf(usual, "SkippedInARow"), runs.metrics, start, start + 4 * hour - 5 * minute);
  });

  test("skips of a job that runs every seven hours, for longer than a day, are told of", () => {
    const world = jobWorld({ schedule: ScheduleExpression.rate(Duration.hours(7)) });
    const runs = new RunsOf(world, lateMs);
    runs.runEach(7 * hour, start, start + 4 * day, metricNames.jobSkipped);
    expectAlarm(alarmOf(world, "SkippedInARow"), runs.metrics, start - hour, {
      between: [start + 14 * hour, start + 4 * day],
    });
  });

  test("a lost lease is told of, and the alarm ends within half an hour or so", () => {
    const runs = new RunsOf(usual, lateMs);
    runs.run(start + hour, metricNames.lost);
    expectAlarm(alarmOf(usual, "LostLease"), runs.metrics, start, {
      between: [start + hour, start + hour + 10 * minute],
      endsBy: start + 3 * hour,
    });
  });

  test("a function's failed attempt is told of, among all those that did not fail", () => {
    const metrics = new SyntheticMetrics();
    const errors = metricId("AWS/Lambda", "Errors", { FunctionName: usual.worker });
    for (let at = start; at < start + 3 * hour; at += minute) {
      metrics.add(errors, at, at === start + hour ? 1 : 0, lateMs);
    }
    expectAlarm(alarmOf(usual, "Failed"), metrics, start, {
      between: [start + hour, start + hour + 10 * minute],
      endsBy: start + 3 * hour,
    });
  });

  test.each(["ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"])(
    "a workflow's %s is told of",
    (name) => {
      const metrics = new SyntheticMetrics();
      const id = metricId("AWS/States", name, { StateMachineArn: workflow.worker });
      metrics.add(id, start + hour, 1, lateMs);
      expectAlarm(alarmOf(workflow, "Failed"), metrics, start, {
        between: [start + hour, start + hour + 10 * minute],
        endsBy: start + 3 * hour,
      });
    },
  );
});

test("a failure whose metric is nine minutes late is told of, however many metrics count failures", () => {
  const metrics = new SyntheticMetrics();
  const id = metricId("AWS/States", "ExecutionsFailed", { StateMachineArn: workflow.worker });
  // The last minute of a period, where periods begin at full hours: its next period is over 6 minutes later, before the metric is there.
  const at = start + hour + 4 * minute;
  metrics.add(id, at, 1, 9 * minute);
  expectAlarm(alarmOf(workflow, "Failed"), metrics, start, {
    between: [at + 9 * minute, at + 10 * minute],
    endsBy: start + 2 * hour,
  });
});

describe("a deployment", () => {
  test.each([
    ["every minute", minute, ScheduleExpression.rate(Duration.minutes(1))],
    ["hourly", hour, ScheduleExpression.rate(Duration.hours(1))],
    ["daily", day, ScheduleExpression.rate(Duration.days(1))],
  ])("of a job that runs %s is not taken for a job that does not run", (_, interval, schedule) => {
    const world = jobWorld({ schedule });
    const runs = new RunsOf(world, 5 * minute);
    runs.runEach(interval, start + interval, start + 3 * interval);
    for (const alarm of Object.values(world.alarms)) {
      expectQuiet(alarm, runs.metrics, start, start + 3 * interval);
    }
  });

  test("of a job that never runs is told of all the same", () => {
    expectAlarm(alarmOf(usual, "DidNotRun"), new SyntheticMetrics(), start, {
      between: [start + 2 * minute, start + 15 * minute],
    });
  });

  test("that keeps a job from two of its runs is no reason for an alarm", () => {
    const runs = new RunsOf(usual, 2 * minute);
    runs.runEach(minute, start - hour, start + 30 * minute);
    runs.runEach(minute, start + 32 * minute, start + 2 * hour);
    for (const alarm of Object.values(usual.alarms)) {
      expectQuiet(alarm, runs.metrics, start, start + 2 * hour);
    }
  });
});

describe("a message in the dead-letter queue", () => {
  const id = metricId("AWS/SQS", "ApproximateNumberOfMessagesVisible", {
    QueueName: `${usual.queue}.QueueName`,
  });

  test("is told of until somebody has taken it out, although SQS stops measuring a queue after six quiet hours", () => {
    const metrics = new SyntheticMetrics();
    for (let at = start + hour; at < start + 7 * hour; at += minute) metrics.add(id, at, 1, minute);
    for (let at = start + 30 * hour; at < start + 36 * hour; at += minute) metrics.add(id, at, 0, minute);
    const alarm = alarmOf(usual, "DeadLetters");
    expectAlarm(alarm, metrics, start, {
      between: [start + hour, start + hour + 10 * minute],
      endsBy: start + 31 * hour,
    });
    for (const how of allUndocumented) {
      const history = alarm.history(metrics.samples, how, { from: start, to: start + 30 * hour });
      expect(history.at(-1)?.state).toBe("ALARM");
    }
  });

  test("that is not there is no reason for an alarm, measured or not", () => {
    const metrics = new SyntheticMetrics();
    for (let at = start + hour; at < start + 7 * hour; at += minute) metrics.add(id, at, 0);
    expectQuiet(alarmOf(usual, "DeadLetters"), metrics, start, start + 12 * hour);
  });
});
