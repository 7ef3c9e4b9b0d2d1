// Callers without a type checker: every construct and function refuses a value of another kind by name.

import * as cdk from "@leasehold/cdk";
import { App, Stack } from "aws-cdk-lib";
import { Construct } from "constructs";
import { describe, expect, test } from "vitest";
import {
  aDate,
  aDuration,
  aFlag,
  aListOf,
  aText,
  checkKind,
  having,
} from "../../packages/cdk/src/prop-kinds.ts";

const { LeaseHeartbeat, LeaseTable, LeaseTableGrants, LeaseWakeup, SingletonJobTarget, SingletonJobTrigger } =
  cdk;
const { alarmOnBacklog, alarmOnEvent, alarmOnLasting, alarmOnSilence } = cdk;

const stack = (): Stack =>
  new Stack(new App(), "Test", { env: { account: "111122223333", region: "eu-west-1" } });
const table = (scope = stack()): cdk.LeaseTable => new LeaseTable(scope, "Leases", { stream: true });
const refusal = /^\w+ is a symbol: give ./;

describe("props of which each is a symbol are refused by the first one's name, and no props at all too", () => {
  const constructs = Object.values(cdk).filter(
    (value): value is typeof cdk.LeaseTable =>
      typeof value === "function" && value.prototype instanceof Construct,
  );
  const { batchJob, ecsTask, glueJob, workflow } = SingletonJobTarget;
  const makers: readonly [string, (props: never) => unknown][] = [
    ...constructs.map((Made): [string, (props: never) => unknown] => [
      Made.name,
      (props) => new Made(stack(), "It", props),
    ]),
    ...[alarmOnBacklog, alarmOnEvent, alarmOnLasting, alarmOnSilence].map(
      (define): [string, (props: never) => unknown] => [define.name, (props) => define(stack(), "It", props)],
    ),
    ["SingletonJobTarget.batchJob", batchJob],
    ["SingletonJobTarget.ecsTask", ecsTask],
    ["SingletonJobTarget.glueJob", glueJob],
    ["SingletonJobTarget.workflow", workflow],
    [
      "a heartbeat of another app",
      (props) => LeaseHeartbeat.fromLeaseHeartbeatAttributes(stack(), "It", props),
    ],
    ["a wakeup of another app", (props) => LeaseWakeup.fromLeaseWakeupAttributes(stack(), "It", props)],
    ["a scope of grants", (props) => table().grants.useLeases(Symbol("role") as never, props)],
  ];
  const allSymbols = new Proxy({}, { get: () => Symbol("value") });

  test.each(makers)("%s", (_, make) => {
    expect(() => make(allSymbols as never)).toThrow(refusal);
    expect(() => make(7 as never)).toThrow(/^(props|scope|\w+) is (7|a symbol): give ./);
  });
});

const grants = Object.getOwnPropertyNames(LeaseTableGrants.prototype).filter(
  (name) => name !== "constructor",
) as "useLeases"[];

test.each<[string, (value: never) => unknown]>([
  ["alarmOnRedriveGuard", (value) => cdk.alarmOnRedriveGuard(value)],
  ["InvokeFunction", (value) => new cdk.InvokeFunction(value)],
  ["SingletonJobTarget.lambda", SingletonJobTarget.lambda],
  ["SingletonJobTarget.lockedLambda", SingletonJobTarget.lockedLambda],
  ["SingletonJobTarget.stateMachine", SingletonJobTarget.stateMachine],
  ["SingletonJobTrigger.queue", (value) => SingletonJobTrigger.queue(value)],
  ["SingletonJobTrigger.rule", (value) => SingletonJobTrigger.rule(value)],
  ["a table's name", (value) => LeaseTable.fromLeaseTableName(stack(), "It", value)],
  ["a table's ARN", (value) => LeaseTable.fromLeaseTableArn(stack(), "It", value)],
  ["heartbeat.grantStart", (value) => heartbeat().grantStart(value)],
  ["heartbeat.guard", (value) => heartbeat().guard(value)],
  ["wakeup.serve", (value) => wakeup().serve(value)],
  ...grants.map((grant): [string, (value: never) => unknown] => [
    `grants.${grant}`,
    (value) => table().grants[grant](value),
  ]),
])("%s refuses a symbol by name", (_, give) => {
  expect(() => give(Symbol("value") as never)).toThrow(refusal);
});

function heartbeat(scope = stack()): cdk.LeaseHeartbeat {
  return new LeaseHeartbeat(scope, "Heartbeat", { table: table(scope) });
}

function wakeup(scope = stack()): cdk.LeaseWakeup {
  return new LeaseWakeup(scope, "Wakeup", { table: table(scope) });
}

test("a value of another kind, whatever it is, is refused with an error that tells what to give", () => {
  const throwing = new Proxy(Object.create(null), {
    get: () => {
      throw new TypeError("no member can be read");
    },
  });
  const wrong = [undefined, null, Number.NaN, 1n, Symbol("x"), () => 1, Object.create(null), throwing];
  const kinds = [aText, aFlag, aDate, aDuration, aListOf(aText), having("a role", "roleArn")];
  for (const kind of kinds) {
    for (const value of [...wrong, ["a", Symbol("b")]]) {
      expect(() => checkKind("role", value, kind)).toThrow(`: give ${kind.name}`);
    }
  }
});
