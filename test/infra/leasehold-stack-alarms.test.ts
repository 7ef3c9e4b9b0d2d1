import type { LeaseEvent } from "@leasehold/client";
import { measurementsOf, metricNames, metricsLine, metricsNamespace } from "@leasehold/client/metrics";
import { describe, expect, test } from "vitest";
import { expectAlarm, expectQuiet, hour, minute, start } from "../support/alarm-expectations.ts";
import { resourcesOf } from "../support/cloudformation.ts";
import { leaseholdTemplate } from "../support/cloudformation-app.ts";
import { metricId, TemplateAlarm } from "../support/cloudwatch-alarms.ts";
import { SyntheticMetrics } from "../support/synthetic-metrics.ts";
import { unwatched } from "../support/unwatched.ts";

const { json } = leaseholdTemplate();
const alarms = resourcesOf(json, "AWS::CloudWatch::Alarm").map(
  ([id, { Properties }]) => [id, new TemplateAlarm(Properties)] as const,
);
/** Their callers wait for the answer, and hear of an error themselves. */
const answering = [
  "LeaseFunctionsAcquire",
  "LeaseFunctionsRenew",
  "LeaseFunctionsRelease",
  "UnpaidOrdersReport",
];
const lateness = [0, 5 * minute];

function alarm(name: string): TemplateAlarm {
  const found = alarms.filter(([id]) => id.startsWith(name));
  expect(found, name).toHaveLength(1);
  return (found[0] as (typeof found)[0])[1];
}

const known = new Map<string, string>();

function idOf(type: string, name: string): string {
  const id =
    known.get(type + name) ??
    resourcesOf(json, type).find(([it]) => it.startsWith(name))?.[0] ??
    `no ${name}`;
  known.set(type + name, id);
  return id;
}

const ofFunction = (name: string, metric: string): string =>
  metricId("AWS/Lambda", metric, { FunctionName: idOf("AWS::Lambda::Function", name) });
const ofMachine = (name: string, metric: string): string =>
  metricId("AWS/States", metric, { StateMachineArn: idOf("AWS::StepFunctions::StateMachine", name) });
const ofQueue = (name: string): string =>
  metricId("AWS/SQS", "ApproximateNumberOfMessagesVisible", {
    QueueName: `${idOf("AWS::SQS::Queue", name)}.QueueName`,
  });
const tableName = idOf("AWS::DynamoDB::GlobalTable", "Leases");

test("every asynchronous function, keeper, workflow and dead-letter queue has an alarm", () => {
  // Nothing runs what is of acceptance but `npm run evidence -- acceptance`, which looks at what becomes of it.
  expect(unwatched(json, answering).filter((text) => !text.startsWith("Acceptance"))).toEqual([]);
});

/** Six hours in which all is well; but for single errors of callers, and single failures that are made good. */
function goodDay(lateMs: number): SyntheticMetrics {
  const metrics = new SyntheticMetrics();
  const subject = { tableName, job: "close-unpaid-orders" };
  for (let at = start - 2 * hour; at < start + 4 * hour; at += minute) {
    const count = Math.round((at - start) / minute);
    metrics.addLine(
      metricsLine(subject, { [metricNames.jobSucceeded]: 1, [metricNames.acquired]: 1 }, at),
      lateMs,
    );
    metrics.add(ofFunction("UnpaidOrdersClose", "Invocations"), at, 1, lateMs);
    metrics.add(ofFunction("UnpaidOrdersClose", "Errors"), at, 0, lateMs);
    metrics.add(ofFunction("TasksRestart", "Invocations"), at, 1, lateMs);
    metrics.add(ofFunction("TasksRestart", "Errors"), at, count % 7 === 0 ? 1 : 0, lateMs);
    metrics.add(ofMachine("HeartbeatStateMachine", "ExecutionsSucceeded"), at, 1, lateMs);
    if (count % 5 === 0) {
      metrics.add(ofFunction("TicketsCleaner", "Invocations"), at, 1, lateMs);
      metrics.add(ofFunction("TicketsCleaner", "Errors"), at, count % 15 === 0 ? 1 : 0, lateMs);
    }
    for (const name of ["StockLevels", "TicketsAdmission", "TasksWorker"]) {
      metrics.add(ofFunction(name, "Invocations"), at, 4, lateMs);
      metrics.add(ofFunction(name, "Errors"), at, 1, lateMs);
    }
    // Most grants are at once, and some callers wait for some minutes.
    const waited = count % 20 === 0 ? 9 * minute : 0;
    metrics.addLine(metricsLine({ tableName }, { [metricNames.waitTime]: waited }, at), lateMs);
    // A single call of the night, which its caller got wrong.
    if (count === 200) metrics.add(ofFunction("StockLevels", "Errors"), at, 4, lateMs);
    for (const name of ["LeaseFunctionsWake", "LeaseFunctionsExpired"]) {
      metrics.add(ofFunction(name, "IteratorAge"), at, count % 60 === 0 ? 90_000 : 400, lateMs);
    }
    for (const [id] of resourcesOf(json, "AWS::SQS::Queue")) metrics.add(ofQueue(id), at, 0, lateMs);
  }
  return metrics;
}

test.each(lateness)("no alarm is on while all is well and metrics are %i ms late", (lateMs) => {
  const metrics = goodDay(lateMs);
  for (const [, each] of alarms) expectQuiet(each, metrics, start, start + 4 * hour);
});

const events: [string, string][] = [
  ["AlarmsLeaseExpired", metricId(metricsNamespace, metricNames.expired, { Table: tableName })],
  ["HeartbeatAlarmsFailed", ofMachine("HeartbeatStateMachine", "ExecutionsFailed")],
  ["ImportsFailed", ofMachine("ImportsWorkflowStateMachine", "ExecutionsFailed")],
  ["ImportsFailed", ofFunction("ImportsTransfer", "Errors")],
  ["ImportsFailed", ofFunction("ImportsTransfer", "AsyncEventsDropped")],
  ["ImportsFailed", metricId(metricsNamespace, "Leasehold-Imports-FailedTransfer", {})],
  ["UnpaidOrdersParked", metricId(metricsNamespace, "Leasehold-UnpaidOrders-ParkedClose", {})],
  ["UnpaidOrdersParked", metricId(metricsNamespace, "Leasehold-UnpaidOrders-ParkedReport", {})],
  ["TasksWorkerAlarmsDropped", ofFunction("TasksWorker", "AsyncEventsDropped")],
  ["StockLevelsLevelsAlarmsDropped", ofFunction("StockLevels", "AsyncEventsDropped")],
  ["TicketsAdmissionAlarmsDropped", ofFunction("TicketsAdmission", "AsyncEventsDropped")],
  [
    "LeaseFunctionsWakeupAlarmsDeadLetterLost",
    ofFunction("LeaseFunctionsWake", "DestinationDeliveryFailures"),
  ],
  ["LeaseFunctionsUndelivered", ofFunction("LeaseFunctionsExpired", "DestinationDeliveryFailures")],
  ["UnpaidOrdersJobAlarmsDeadLetterLost", ofFunction("UnpaidOrdersClose", "DestinationDeliveryFailures")],
  ["UnpaidOrdersJobAlarmsDeadLetterLost", ofFunction("UnpaidOrdersClose", "DeadLetterErrors")],
];

describe.each(lateness)("metrics that are %i ms late", (lateMs) => {
  test.each(events)("%s is on after a single %s", (name, metric) => {
    const metrics = goodDay(lateMs);
    metrics.add(metric, start + hour, 1, lateMs);
    expectAlarm(alarm(name), metrics, start, {
      between: [start + hour, start + hour + 10 * minute],
      endsBy: start + 2 * hour,
    });
  });

  test.each(["StockLevels", "TicketsAdmission", "TasksWorker"])(
    "%s has an alarm when most of its calls fail for a while",
    (name) => {
      const metrics = goodDay(lateMs);
      for (let at = start + hour; at < start + 2 * hour; at += minute) {
        metrics.add(ofFunction(name, "Errors"), at, 2, lateMs);
      }
      const [id] = alarms.find(([it]) => it.startsWith(name) && it.includes("Failing")) ?? [""];
      expectAlarm(alarm(id), metrics, start, {
        between: [start + hour + 10 * minute, start + hour + 26 * minute],
        endsBy: start + 3 * hour,
      });
    },
  );

  test.each([
    ["TasksRestart", minute],
    ["TicketsCleaner", 5 * minute],
  ])("%s has an alarm when it is not called any more, or each of its runs fails", (name, interval) => {
    const [silent, failing] = [new SyntheticMetrics(), new SyntheticMetrics()];
    for (let at = start - 2 * hour; at < start + 3 * hour; at += interval) {
      const isBroken = at >= start + hour && at < start + 2 * hour;
      failing.add(ofFunction(name, "Invocations"), at, 1, lateMs);
      failing.add(ofFunction(name, "Errors"), at, isBroken ? 1 : 0, lateMs);
      if (!isBroken) silent.add(ofFunction(name, "Invocations"), at, 1, lateMs);
    }
    for (const metrics of [silent, failing]) {
      expectAlarm(
        alarm(name === "TasksRestart" ? "TasksRestartAlarm" : "TicketsCleanerAlarm"),
        metrics,
        start,
        {
          between: [start + hour + 3 * interval, start + hour + 3 * interval + 15 * minute],
          endsBy: start + 2 * hour + 15 * minute,
        },
      );
    }
  });

  test.each([
    ["LeaseFunctionsWakeupAlarmsLate", "LeaseFunctionsWake", 2 * minute],
    ["LeaseFunctionsLateAlarm", "LeaseFunctionsExpired", 2 * hour],
  ])("%s is on when what the stream brings is old, again and again", (name, fn, age) => {
    const metrics = goodDay(lateMs);
    for (let at = start + hour; at < start + 2 * hour; at += minute) {
      metrics.add(ofFunction(fn, "IteratorAge"), at, age, lateMs);
    }
    expectAlarm(alarm(name), metrics, start, {
      between: [start + hour + 10 * minute, start + hour + 26 * minute],
      endsBy: start + 3 * hour,
    });
  });

  test("a single long wait is told, among grants at once and with nothing else before or after", () => {
    const [busy, calm] = [goodDay(lateMs), new SyntheticMetrics()];
    const at = start + hour;
    const granted: LeaseEvent = {
      type: "acquired",
      key: "admit-tickets/line/loans",
      sortKey: "lease",
      owner: "ticket-7",
      fencingToken: 7,
      waitedMs: 10 * minute,
      expiresAt: at + minute,
    };
    for (const metrics of [busy, calm]) {
      metrics.addLine(metricsLine({ tableName }, measurementsOf(granted), at), lateMs);
      expectAlarm(alarm("LongWait"), metrics, start, {
        between: [at, at + 10 * minute],
        endsBy: at + hour,
      });
    }
  });

  test("keepers that are throttled now and then are no news, but those that are throttled for long are", () => {
    const metrics = new SyntheticMetrics();
    const throttled = ofMachine("HeartbeatStateMachine", "ExecutionThrottled");
    metrics.add(throttled, start + hour, 8, lateMs);
    expectQuiet(alarm("HeartbeatAlarmsThrottled"), metrics, start, start + 2 * hour);
    for (let at = start + 2 * hour; at < start + 3 * hour; at += minute)
      metrics.add(throttled, at, 8, lateMs);
    expectAlarm(alarm("HeartbeatAlarmsThrottled"), metrics, start, {
      between: [start + 2 * hour + 10 * minute, start + 2 * hour + 26 * minute],
      endsBy: start + 4 * hour,
    });
  });
});
