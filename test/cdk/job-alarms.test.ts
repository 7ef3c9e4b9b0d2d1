import { SingletonJobTarget } from "@leasehold/cdk";
import { Duration } from "aws-cdk-lib";
import { Annotations, Match } from "aws-cdk-lib/assertions";
import { ScheduleExpression, TimeWindow } from "aws-cdk-lib/aws-scheduler";
import { expect, test } from "vitest";
import { decisionOf } from "../support/alarms.ts";
import { type JobProps, JobWorld, machineIn } from "../support/jobs.ts";

type Alarms = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** The alarms of a job that runs every minute, unless the props say otherwise, by their names. */
function alarmsOf(props: JobProps = {}, world = new JobWorld()): Alarms {
  const schedule = props.trigger ? {} : every(Duration.minutes(1));
  const template = world.templateOf({ jobName: "close", ...schedule, ...props });
  return Object.fromEntries(
    Object.entries(template.findResources("AWS::CloudWatch::Alarm")).map(([id, { Properties }]) => [
      id.replace(/^JobAlarms(.*).{8}$/, "$1"),
      Properties,
    ]),
  );
}

/** What the alarms decide by. */
function decisions(props?: JobProps, world?: JobWorld): Record<string, string> {
  const alarms = Object.entries(alarmsOf(props, world));
  return Object.fromEntries(alarms.map(([name, properties]) => [name, decisionOf(properties)]));
}

const every = (interval: Duration): JobProps => ({ schedule: ScheduleExpression.rate(interval) });

const aRun = "SUM([FILL(succeeded, 0), FILL(skipped, 0), FILL(paused, 0)]) < 1";
const ofJob = "of close in Leases";
const runs = `succeeded = Sum JobSucceeded ${ofJob}, skipped = Sum JobSkipped ${ofJob}, paused = Sum JobPaused ${ofJob}`;
/** One success outweighs all skips. */
const skips = "SUM([FILL(skipped, 0), FILL(succeeded, 0) * -1000000])";
const skipped = `skipped = Sum JobSkipped ${ofJob}, succeeded = Sum JobSucceeded ${ofJob}`;
/** A single measurement that comes up to 10 minutes late. */
const once = ">= 1 in 1 of 3 periods of 5 min, a gap is notBreaching";
const deadLetters =
  "it >= 1 in 1 of 1 periods of 5 min, a gap is ignore; it = Maximum ApproximateNumberOfMessagesVisible of JobDeadLetters";

test("the alarms of a function that runs every minute tell of each failure, of 2 minutes without a run, and of 5 skips in a row", () => {
  expect(decisions({})).toEqual({
    DidNotRun: `${aRun} in 8 of 8 periods of 1 min, a gap is breaching, from 8 min on; ${runs}`,
    Failed: `SUM([FILL(failed, 0)]) ${once}; failed = Sum Errors of Work`,
    LostLease: `SUM([FILL(lost, 0)]) ${once}; lost = Sum LeaseLost ${ofJob}`,
    SkippedInARow: `${skips} >= 5 in 1 of 1 periods of 10 min, a gap is notBreaching; ${skipped}`,
    DeadLetters: deadLetters,
    DeadLetterLost: `SUM([FILL(toDestination, 0), FILL(toQueue, 0)]) ${once}; toDestination = Sum DestinationDeliveryFailures of Work, toQueue = Sum DeadLetterErrors of Work`,
  });
});

test("those of a workflow tell of its executions that failed, timed out or were aborted", () => {
  const world = new JobWorld();
  const target = SingletonJobTarget.workflow({ stateMachine: machineIn(world.stack) });
  expect(decisions({ target }, world)).toEqual({
    DidNotRun:
      "SUM([FILL(succeeded, 0)]) < 1 in 8 of 8 periods of 1 min, a gap is breaching, from 8 min on; succeeded = Sum ExecutionsSucceeded of Machine",
    Failed: `SUM([FILL(failed, 0), FILL(timedOut, 0), FILL(aborted, 0)]) ${once}; failed = Sum ExecutionsFailed of Machine, timedOut = Sum ExecutionsTimedOut of Machine, aborted = Sum ExecutionsAborted of Machine`,
    DeadLetters: deadLetters,
  });
});

// Two intervals, a time window, 5 minutes for late metrics, whole periods and one more.
test.each<[string, JobProps, string]>([
  ["an hour", every(Duration.hours(1)), "11 of 11 periods of 13 min, a gap is breaching, from 143 min"],
  ["7 hours", every(Duration.hours(7)), "11 of 11 periods of 85 min, a gap is breaching, from 935 min"],
  ["a day", every(Duration.days(1)), "11 of 11 periods of 289 min, a gap is breaching, from 2880 min"],
  [
    "5 minutes, within a window of 2 minutes",
    { ...every(Duration.minutes(5)), timeWindow: TimeWindow.flexible(Duration.minutes(2)) },
    "10 of 10 periods of 2 min, a gap is breaching, from 20 min",
  ],
  [
    "a day, as its maxInterval of 26 hours says",
    { schedule: ScheduleExpression.cron({ minute: "0", hour: "3" }), maxInterval: Duration.hours(26) },
    "11 of 11 periods of 157 min, a gap is breaching, from 1727 min",
  ],
])("a job that runs every %s is told of when it has missed its runs, and not before", (_, props, periods) => {
  expect(decisions(props).DidNotRun).toBe(`${aRun} in ${periods} on; ${runs}`);
});

test.each<[string, JobProps, string]>([
  ["an hour", every(Duration.hours(1)), ">= 5 in 1 of 1 periods of 305 min"],
  // CloudWatch has no period above a day.
  ["7 hours", every(Duration.hours(7)), ">= 2 in 2 of 2 periods of 1053 min"],
  [
    "5 minutes, for 3 skips",
    { ...every(Duration.minutes(5)), skipsInARow: 3 },
    ">= 3 in 1 of 1 periods of 20 min",
  ],
])("skips in a row of a job that runs every %s are counted over as many intervals", (_, props, periods) => {
  expect(decisions(props).SkippedInARow).toBe(`${skips} ${periods}, a gap is notBreaching; ${skipped}`);
});

const daily = ScheduleExpression.cron({ minute: "0", hour: "3" });
test.each<[string, JobProps, readonly string[]]>([
  ["of a single run", { schedule: ScheduleExpression.at(new Date(0)) }, ["DidNotRun", "SkippedInARow"]],
  ["of a schedule that is not in force", { enabled: false }, ["DidNotRun"]],
  ["of a schedule with a start", { start: new Date("2027-01-01") }, ["DidNotRun"]],
  ["of a schedule with an end", { end: new Date("2027-01-01") }, ["DidNotRun"]],
  [
    "of one with an end, where they are asked for",
    { end: new Date(1e13), maxInterval: Duration.minutes(10) },
    [],
  ],
  ["of runs so rare", { schedule: daily, maxInterval: Duration.days(6) }, ["SkippedInARow"]],
  ["of runs that replace each other, and lose leases on purpose", { overlap: "replace" }, ["LostLease"]],
  ["that are turned off", { alarms: false }, Object.keys(alarmsOf())],
])("alarms %s are all but those that say nothing", (_, props, without) => {
  const others = Object.keys(alarmsOf()).filter((name) => !without.includes(name));
  expect(Object.keys(alarmsOf(props))).toEqual(others);
});

const alarmActionArn = "arn:aws:sns:eu-west-1:111122223333:oncall";
const alarmActions = [{ bind: () => ({ alarmActionArn }) }];

test("alarms say of which job they are, and where the runbook is, and tell whom the user names", () => {
  for (const { AlarmDescription } of Object.values(alarmsOf()))
    expect(AlarmDescription).toMatch(/job close .*\nRunbook: docs\/RUNBOOK\.md#[a-z-]+$/s);
  const own = { alarmActions, runbookUrl: "https://wiki.example/leases" };
  const lockedWorld = new JobWorld();
  const target = SingletonJobTarget.lockedLambda(lockedWorld.fn);
  // Those of a locked function's keeper, too.
  for (const alarms of [alarmsOf(own), alarmsOf({ ...own, target }, lockedWorld)]) {
    expect(Object.keys(alarms)).toHaveLength(6);
    for (const { AlarmDescription, AlarmActions } of Object.values(alarms)) {
      expect(AlarmDescription).toMatch(/\nRunbook: https:\/\/wiki\.example\/leases#[a-z-]+$/);
      expect(AlarmActions).toEqual([alarmActionArn]);
    }
  }
});

test("a job of a queue has alarms on failures and dead letters, not on runs that found the lock held", () => {
  const world = new JobWorld();
  const found = decisions({ trigger: world.queue() }, world);
  expect(found).toEqual({
    Failed: `SUM([FILL(failed, 0)]) ${once}; failed = Sum JobFailed ${ofJob}`,
    LostLease: `SUM([FILL(lost, 0)]) ${once}; lost = Sum LeaseLost ${ofJob}`,
    DeadLetters: deadLetters.replace("JobDeadLetters", "Failed"),
  });
  Annotations.fromStack(world.stack).hasNoInfo("*", Match.anyValue());
  // With "skip", a run that finds the lock held is no error.
  const other = new JobWorld();
  const { Failed } = decisions({ trigger: other.queue(), overlap: "skip" }, other);
  expect(Failed).toMatch(/failed = Sum Errors of Work$/);
});

test("a job's metrics look at this job alone", () => {
  const job = new JobWorld().job({ jobName: "close" });
  for (const [metric, metricName] of [
    [job.metricSucceeded(), "JobSucceeded"],
    [job.metricFailed(), "JobFailed"],
    [job.metricSkipped(), "JobSkipped"],
    [job.metricPaused(), "JobPaused"],
    [job.metricLost(), "LeaseLost"],
  ] as const)
    expect(metric).toMatchObject({ metricName, dimensions: { Job: "close" } });
});
