import { expect, test } from "vitest";
import { decisionOf } from "../support/alarms.ts";
import { resourcesOf } from "../support/cloudformation.ts";
import { leaseholdTemplate } from "../support/cloudformation-app.ts";

const { json } = leaseholdTemplate();

const sum = (...names: string[]): string => `SUM([${names.map((name) => `FILL(${name}, 0)`).join(", ")}])`;
/** A single measurement that comes up to 10 minutes late. */
const once = "in 1 of 3 periods of 5 min, a gap is notBreaching";
const again = "in 3 of 5 periods of 5 min, a gap is notBreaching";

/** Executions that did not succeed, of these machines. */
const failures = (...machines: readonly (readonly [names: readonly string[], machine: string])[]): string => {
  const metrics = ["ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"];
  const of = machines.flatMap(([names, machine]) =>
    names.map((name, index) => `${name} = Sum ${metrics[index]} of ${machine}`),
  );
  return `${sum(...machines.flatMap(([names]) => names))} >= 1 ${once}; ${of.join(", ")}`;
};
const all = ["failed", "timedOut", "aborted"] as const;
const lost = (fn: string): string =>
  `${sum("undelivered")} >= 1 ${once}; undelivered = Sum DestinationDeliveryFailures of ${fn}`;
const late = (fn: string, ms: number): string =>
  `${sum("metric")} >= ${ms} ${again}; metric = Maximum IteratorAge of ${fn}`;
const backlog = (queue: string): string =>
  `it >= 1 in 1 of 1 periods of 5 min, a gap is ignore; it = Maximum ApproximateNumberOfMessagesVisible of ${queue}`;
const calls = (fn: string): string => `errors = Sum Errors of ${fn}, invocations = Sum Invocations of ${fn}`;
/** At least half of the calls, where there were any. */
const failing = (fn: string): string =>
  `100 * FILL(errors, 0) / FILL(invocations, 1) >= 50 ${again}; ${calls(fn)}`;
const dropped = (fn: string): string =>
  `${sum("dropped")} >= 1 ${once}; dropped = Sum AsyncEventsDropped of ${fn}`;
const stalled = (fn: string, periods: string): string =>
  `SUM([FILL(invocations, 0), FILL(errors, 0) * -1]) < 1 in ${periods} on; invocations = Sum Invocations of ${fn}, errors = Sum Errors of ${fn}`;

test("each alarm is on after one event that must not happen, or a condition that lasts; functions that answer have none", () => {
  const decisions = resourcesOf(json, "AWS::CloudWatch::Alarm")
    .filter(([id]) => !id.startsWith("UnpaidOrdersJob"))
    .map(([id, { Properties }]) => [id.slice(0, -8), decisionOf(Properties)]);
  expect(Object.fromEntries(decisions)).toEqual({
    AlarmsLeaseExpired: `${sum("expired")} >= 1 ${once}; expired = Sum LeaseExpired of Leases`,
    HeartbeatAlarmsFailed: failures(
      [all, "HeartbeatStateMachine"],
      [["endedFailed", "endedTimedOut", "endedAborted"], "HeartbeatEndedStateMachine"],
    ),
    HeartbeatAlarmsThrottled: `${sum("metric")} >= 1 ${again}; metric = Sum ExecutionThrottled of HeartbeatStateMachine`,
    ImportsFailedAlarm: [
      `${sum("errors", "dropped", "failed", "aborted", "timedOut", "transfer")} >= 1 ${once}; errors = Sum Errors of ImportsTransfer`,
      "dropped = Sum AsyncEventsDropped of ImportsTransfer",
      "failed = Sum ExecutionsFailed of ImportsWorkflowStateMachine",
      "aborted = Sum ExecutionsAborted of ImportsWorkflowStateMachine",
      "timedOut = Sum ExecutionsTimedOut of ImportsWorkflowStateMachine",
      "transfer = Sum Leasehold-Imports-FailedTransfer",
    ].join(", "),
    LeaseFunctionsLateAlarm: late("LeaseFunctionsExpired", 3_600_000),
    LeaseFunctionsUndeliveredAlarm: lost("LeaseFunctionsExpired"),
    LeaseFunctionsUnreportedAlarm: backlog("LeaseFunctionsUnreportedExpiries"),
    LeaseFunctionsWakeupAlarmsDeadLetterLost: lost("LeaseFunctionsWakeupHandler"),
    LeaseFunctionsWakeupAlarmsDeadLetters: backlog("LeaseFunctionsWakeupDeadLetters"),
    LeaseFunctionsWakeupAlarmsLate: late("LeaseFunctionsWakeupHandler", 60_000),
    LeaseholdRedriveGuardFailed: failures([all, "LeaseholdRedriveGuardStateMachine"]),
    // The longest of all waits, in milliseconds.
    LongWait: `${sum("wait")} >= 600000 ${once}; wait = Maximum WaitTime of Leases`,
    StockLevelsLevelsAlarmsDropped: dropped("StockLevels"),
    StockLevelsLevelsAlarmsFailing: failing("StockLevels"),
    TasksRestartAlarmStalled: stalled(
      "TasksRestart",
      "9 of 9 periods of 1 min, a gap is breaching, from 9 min",
    ),
    TasksWorkerAlarmsDropped: dropped("TasksWorker"),
    TasksWorkerAlarmsFailing: failing("TasksWorker"),
    TicketsAdmissionAlarmsDropped: dropped("TicketsAdmission"),
    TicketsAdmissionAlarmsFailing: failing("TicketsAdmission"),
    TicketsCleanerAlarmStalled: stalled(
      "TicketsCleaner",
      "11 of 11 periods of 2 min, a gap is breaching, from 22 min",
    ),
    UnpaidOrdersParkedAlarm: `${sum("close", "report")} >= 1 ${once}; close = Sum Leasehold-UnpaidOrders-ParkedClose, report = Sum Leasehold-UnpaidOrders-ParkedReport`,
  });
});

test("every function is in an alarm, but those whose callers see each error", () => {
  const watched = JSON.stringify(resourcesOf(json, "AWS::CloudWatch::Alarm"));
  const unwatched = resourcesOf(json, "AWS::Lambda::Function").filter(([id]) => !watched.includes(`"${id}"`));
  expect(unwatched.map(([id]) => id.slice(0, -8)).sort()).toEqual([
    "AcceptanceRun",
    ...["Acquire", "Release", "Renew"].map((name) => `LeaseFunctions${name}`),
    // Its log is counted.
    "UnpaidOrdersReport",
  ]);
});
