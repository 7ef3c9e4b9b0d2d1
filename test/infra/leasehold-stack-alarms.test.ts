import { expect, test } from "vitest";
import { decisionOf, metricId, metricsOf } from "../support/alarms.ts";
import { resourcesOf } from "../support/cloudformation.ts";
import { leaseholdTemplate } from "../support/cloudformation-app.ts";
import { unwatched } from "../support/unwatched.ts";

const { json } = leaseholdTemplate();
/** Their callers wait for the answer, and hear of an error themselves. */
const answering = [
  "LeaseFunctionsAcquire",
  "LeaseFunctionsRenew",
  "LeaseFunctionsRelease",
  "UnpaidOrdersReport",
];

test("every asynchronous function, keeper, workflow and dead-letter queue has an alarm", () => {
  // Nothing runs what is of acceptance but `npm run evidence -- acceptance`, which looks at what becomes of it.
  expect(unwatched(json, answering).filter((text) => !text.startsWith("Acceptance"))).toEqual([]);
});

/** A single measurement that comes up to 10 minutes late. */
const once = "in 1 of 3 periods of 5 min, a gap is notBreaching";
const again = "in 3 of 5 periods of 5 min, a gap is notBreaching";
const [dropped, undelivered] = [
  "dropped = Sum AsyncEventsDropped",
  "undelivered = Sum DestinationDeliveryFailures",
];
const executions =
  "failed = Sum ExecutionsFailed, timedOut = Sum ExecutionsTimedOut, aborted = Sum ExecutionsAborted";
const ended =
  "endedFailed = Sum ExecutionsFailed, endedTimedOut = Sum ExecutionsTimedOut, endedAborted = Sum ExecutionsAborted";
const backlog =
  "it >= 1 in 1 of 1 periods of 5 min, a gap is ignore; it = Maximum ApproximateNumberOfMessagesVisible";
const filled = (...names: string[]): string => `SUM([${names.map((name) => `FILL(${name}, 0)`).join(", ")}])`;
/** At least half of the calls, where there were any. */
const failing = `100 * FILL(errors, 0) / FILL(invocations, 1) >= 50 ${again}; errors = Sum Errors, invocations = Sum Invocations`;
const stalled = (periods: string): string =>
  `SUM([FILL(invocations, 0), FILL(errors, 0) * -1]) < 1 in ${periods} on; invocations = Sum Invocations, errors = Sum Errors`;

test("each alarm is on after one event that must not happen, or a condition that lasts", () => {
  const decisions = resourcesOf(json, "AWS::CloudWatch::Alarm")
    .filter(([id]) => !id.startsWith("UnpaidOrdersJob"))
    .map(([id, { Properties }]) => [id.slice(0, -8), decisionOf(Properties)]);
  expect(Object.fromEntries(decisions)).toEqual({
    AlarmsLeaseExpired: `${filled("expired")} >= 1 ${once}; expired = Sum LeaseExpired`,
    HeartbeatAlarmsFailed: `${filled("failed", "timedOut", "aborted", "endedFailed", "endedTimedOut", "endedAborted")} >= 1 ${once}; ${executions}, ${ended}`,
    HeartbeatAlarmsThrottled: `${filled("metric")} >= 1 ${again}; metric = Sum ExecutionThrottled`,
    ImportsFailedAlarm: `${filled("errors", "dropped", "failed", "aborted", "timedOut", "transfer")} >= 1 ${once}; errors = Sum Errors, ${dropped}, failed = Sum ExecutionsFailed, aborted = Sum ExecutionsAborted, timedOut = Sum ExecutionsTimedOut, transfer = Sum Leasehold-Imports-FailedTransfer`,
    LeaseFunctionsLateAlarm: `${filled("metric")} >= 3600000 ${again}; metric = Maximum IteratorAge`,
    LeaseFunctionsUndeliveredAlarm: `${filled("undelivered")} >= 1 ${once}; ${undelivered}`,
    LeaseFunctionsUnreportedAlarm: backlog,
    LeaseFunctionsWakeupAlarmsDeadLetterLost: `${filled("undelivered")} >= 1 ${once}; ${undelivered}`,
    LeaseFunctionsWakeupAlarmsDeadLetters: backlog,
    LeaseFunctionsWakeupAlarmsLate: `${filled("metric")} >= 60000 ${again}; metric = Maximum IteratorAge`,
    LeaseholdRedriveGuardFailed: `${filled("failed", "timedOut", "aborted")} >= 1 ${once}; ${executions}`,
    // The longest of all waits, in milliseconds.
    LongWait: `${filled("wait")} >= 600000 ${once}; wait = Maximum WaitTime`,
    StockLevelsLevelsAlarmsDropped: `${filled("dropped")} >= 1 ${once}; ${dropped}`,
    StockLevelsLevelsAlarmsFailing: failing,
    TasksRestartAlarmStalled: stalled("9 of 9 periods of 1 min, a gap is breaching, from 9 min"),
    TasksWorkerAlarmsDropped: `${filled("dropped")} >= 1 ${once}; ${dropped}`,
    TasksWorkerAlarmsFailing: failing,
    TicketsAdmissionAlarmsDropped: `${filled("dropped")} >= 1 ${once}; ${dropped}`,
    TicketsAdmissionAlarmsFailing: failing,
    TicketsCleanerAlarmStalled: stalled("11 of 11 periods of 2 min, a gap is breaching, from 22 min"),
    UnpaidOrdersParkedAlarm: `${filled("close", "report")} >= 1 ${once}; close = Sum Leasehold-UnpaidOrders-ParkedClose, report = Sum Leasehold-UnpaidOrders-ParkedReport`,
  });
});

test("the alarm on throttling looks at the keepers, which have to be in time", () => {
  const [[keepers = ""] = []] = resourcesOf(json, "AWS::StepFunctions::StateMachine").filter(([id]) =>
    id.startsWith("HeartbeatStateMachine"),
  );
  const throttled = resourcesOf(json, "AWS::CloudWatch::Alarm").filter(([id]) =>
    id.startsWith("HeartbeatAlarmsThrottled"),
  );
  expect(throttled.flatMap(([, { Properties }]) => metricsOf(Properties))).toEqual([
    metricId("AWS/States", "ExecutionThrottled", { StateMachineArn: keepers }),
  ]);
});
