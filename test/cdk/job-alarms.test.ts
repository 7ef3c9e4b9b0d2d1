import { LeaseTable, type SingletonJobProps, SingletonJobTarget } from "@leasehold/cdk";
import { Duration } from "aws-cdk-lib";
import { Template } from "aws-cdk-lib/assertions";
import { ScheduleExpression, TimeWindow } from "aws-cdk-lib/aws-scheduler";
import { expect, test } from "vitest";
import { decisionOf } from "../support/alarms.ts";
import { functionIn, newStack } from "../support/constructs.ts";
import { jobIn, machineIn } from "../support/jobs.ts";

/** What the alarms of a job decide by, by their names. */
function decisions(props: Partial<SingletonJobProps>, isWorkflow = false): Record<string, string> {
  const stack = newStack();
  const target = isWorkflow
    ? SingletonJobTarget.workflow({ stateMachine: machineIn(stack) })
    : SingletonJobTarget.lambda(functionIn(stack, "Work", { timeout: Duration.seconds(50) }));
  const table = new LeaseTable(stack, "Leases");
  const schedule = ScheduleExpression.rate(Duration.minutes(1));
  jobIn(stack, target, { table, jobName: "close", schedule, ...props });
  const alarms = Object.entries(Template.fromStack(stack).findResources("AWS::CloudWatch::Alarm"));
  return Object.fromEntries(
    alarms.map(([id, { Properties }]) => [id.replace(/^JobAlarms(.*).{8}$/, "$1"), decisionOf(Properties)]),
  );
}

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
  expect(decisions({}, true)).toEqual({
    DidNotRun:
      "SUM([FILL(succeeded, 0)]) < 1 in 8 of 8 periods of 1 min, a gap is breaching, from 8 min on; succeeded = Sum ExecutionsSucceeded of Machine",
    Failed: `SUM([FILL(failed, 0), FILL(timedOut, 0), FILL(aborted, 0)]) ${once}; failed = Sum ExecutionsFailed of Machine, timedOut = Sum ExecutionsTimedOut of Machine, aborted = Sum ExecutionsAborted of Machine`,
    DeadLetters: deadLetters,
  });
});

const every = (interval: Duration): Partial<SingletonJobProps> => ({
  schedule: ScheduleExpression.rate(interval),
});

// Two intervals, a time window, 5 minutes for late metrics, whole periods and one more.
test.each<[string, Partial<SingletonJobProps>, string]>([
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

test.each<[string, Partial<SingletonJobProps>, string]>([
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
