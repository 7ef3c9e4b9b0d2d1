// Props of a wrong kind, as callers without a type checker give them.

import {
  alarmOnEvent,
  LeaseDashboard,
  LeaseHeartbeat,
  LeaseTable,
  LeaseWakeup,
  SingletonJob,
  SingletonJobTarget,
} from "@leasehold/cdk";
import { App, Duration, Stack } from "aws-cdk-lib";
import { AccountRootPrincipal } from "aws-cdk-lib/aws-iam";
import { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";
import { expect, test } from "vitest";

// biome-ignore lint/suspicious/noExplicitAny: bad input is what is tested.
type Make = (stack: Stack, table: any) => unknown;
const schedule = ScheduleExpression.rate(Duration.hours(1));

test.each<[string, string, Make]>([
  [
    "history is 7: give a Duration",
    "a number",
    (stack) => new LeaseTable(stack, "It", { history: 7 as never }),
  ],
  [
    'stream is "yes": give true or false',
    "a text",
    (stack) => new LeaseTable(stack, "It", { stream: "yes" as never }),
  ],
  [
    "replicas is",
    "a list of texts",
    (stack) => new LeaseTable(stack, "It", { replicas: ["eu-west-1"] as never }),
  ],
  [
    'billing is "PAY_PER_REQUEST": give a Billing',
    "a mode of billing",
    (stack) => new LeaseTable(stack, "It", { billing: "PAY_PER_REQUEST" as never }),
  ],
  [
    "contributorInsightsSpecification is true: give an object with enabled",
    "a flag",
    (stack) => new LeaseTable(stack, "It", { contributorInsightsSpecification: true as never }),
  ],
  [
    "resourcePolicy is an object of another kind: give a PolicyDocument",
    "a policy as JSON",
    (stack) => new LeaseTable(stack, "It", { resourcePolicy: { Statement: [] } as never }),
  ],
  [
    "warmThroughput is 4000: give an object of readUnitsPerSecond and writeUnitsPerSecond",
    "a number",
    (stack) => new LeaseTable(stack, "It", { warmThroughput: 4000 as never }),
  ],
  [
    "tableName is undefined: give a text",
    "nothing",
    (stack) => LeaseTable.fromLeaseTableName(stack, "It", undefined as never),
  ],
  ["grantee is an object of another kind", "no grantee", (_, table) => table.grants.read({})],
  [
    'keys is "a": give a list',
    "a text in place of a list",
    (_, table) => table.grants.read(new AccountRootPrincipal(), { keys: "a" }),
  ],
  [
    'table is "leases": give a LeaseTable',
    "a table's name",
    (stack) => new LeaseHeartbeat(stack, "It", { table: "leases" as never }),
  ],
  ["table is undefined: give a LeaseTable", "no table", (stack) => new LeaseWakeup(stack, "It", {} as never)],
  ["props is null: give an object", "no props", (stack) => new LeaseDashboard(stack, "It", null as never)],
  [
    'fn is "worker": give a function',
    "a function's name",
    () => SingletonJobTarget.lambda("worker" as never),
  ],
  [
    "target is a function: give a target",
    "a function",
    (stack, table) => new SingletonJob(stack, "It", { table, schedule, target: (() => 1) as never }),
  ],
  [
    "metrics is",
    "a list of metrics",
    (stack) => alarmOnEvent(stack, "It", { description: "d", metrics: [7] as never }),
  ],
  [
    "threshold is 0: give a number above 0",
    "an alarm that would always be on",
    (stack) => alarmOnEvent(stack, "It", { description: "d", metrics: {}, threshold: 0 }),
  ],
])("%s, for %s", (message, _, make) => {
  const stack = new Stack(new App(), "Test");
  const table = new LeaseTable(stack, "Leases");
  expect(() => make(stack, table)).toThrow(message);
});
