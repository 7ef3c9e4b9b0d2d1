import { readFileSync } from "node:fs";
import { runbookAnchors } from "@leasehold/cdk";
import { environmentNames } from "@leasehold/client/environment";
import { attributeNames, leaseSortKey } from "@leasehold/client/schema";
import { definitionProblems } from "@leasehold/local/definitions";
import { Duration } from "aws-cdk-lib";
import type { Template } from "aws-cdk-lib/assertions";
import { describe, expect, test } from "vitest";
import { acceptanceJobKey } from "../../functions/acceptance/schema.ts";
import { agentsVariable, limitsVariable } from "../../functions/admit-tickets/schema.ts";
import {
  closeAfterVariable,
  parkedMessage,
  scheduleVariable,
} from "../../functions/close-unpaid-orders/schema.ts";
import { chunkParkedMessage, runFailedMessage } from "../../functions/import-orders/schema.ts";
import { systemRunbookAnchors } from "../../infra/alarms.ts";
import type { LeaseholdStackProps } from "../../infra/leasehold-stack.ts";
import { demonstrationPaceAt } from "../../infra/pace.ts";
import { referenceTo, resourcesOf, textsIn } from "../support/cloudformation.ts";
import { leaseholdTemplate } from "../support/cloudformation-app.ts";
import { definitionsIn } from "../support/definitions.ts";

const { template, json } = leaseholdTemplate();
const tables = resourcesOf(json, "AWS::DynamoDB::GlobalTable");
const functions = resourcesOf(json, "AWS::Lambda::Function");
const [leases = ""] = tables.find(([id]) => id.startsWith("Leases")) ?? [];

/** The only resource of a type whose logical id begins so. */
function only(type: string, name: string): [string, Record<string, unknown>] {
  const found = resourcesOf(json, type).filter(([id]) => id.startsWith(name));
  expect(found, name).toHaveLength(1);
  const [[id, { Properties }] = ["", { Properties: {} }]] = found;
  return [id, Properties];
}

function environmentOf(properties: Record<string, unknown>): Record<string, unknown> {
  return (properties.Environment as { Variables: Record<string, unknown> }).Variables;
}

describe("every table", () => {
  test.each(tables)(
    "%s has the keys pk and sk, is paid on demand, backed up, and outlives its stack",
    (_, table) => {
      expect(table).toMatchObject({ DeletionPolicy: "Retain", UpdateReplacePolicy: "Retain" });
      expect(table.Properties).toMatchObject({
        BillingMode: "PAY_PER_REQUEST",
        KeySchema: [
          { AttributeName: attributeNames.partitionKey, KeyType: "HASH" },
          { AttributeName: attributeNames.sortKey, KeyType: "RANGE" },
        ],
        AttributeDefinitions: [
          { AttributeName: attributeNames.partitionKey, AttributeType: "S" },
          { AttributeName: attributeNames.sortKey, AttributeType: "S" },
        ],
        // One region: replicas that lag would let two holders in.
        Replicas: [{ PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true } }],
      });
    },
  );
});

describe("every function", () => {
  test.each(functions)(
    "%s runs on a current Node on ARM, says what it does, and logs for a month",
    (_, it) => {
      expect(it.Properties).toMatchObject({
        Runtime: "nodejs24.x",
        Architectures: ["arm64"],
        Handler: "index.handler",
        Description: expect.stringMatching(/^[A-Z].{15,}\.$/),
      });
      const { LogGroup } = it.Properties.LoggingConfig as { LogGroup: unknown };
      expect(json.Resources[referenceTo(LogGroup) ?? ""]?.Properties.RetentionInDays).toBe(30);
    },
  );

  test("is told the lease table", () => {
    for (const [id, { Properties }] of functions)
      expect(referenceTo(environmentOf(Properties)[environmentNames.tableName]), id).toBe(leases);
  });

  const variableIn = (template: Template, name: string): unknown[] =>
    Object.values(template.findResources("AWS::Lambda::Function"))
      .map(({ Properties }) => Properties.Environment?.Variables[name])
      .filter((value) => value !== undefined);

  test("is told the deployment's own limits, agents and hours", () => {
    const { template } = leaseholdTemplate({
      departments: { loans: 5 },
      ticketAgents: { loans: 3 },
      closeUnpaidOrdersAfter: Duration.days(2),
      longestWait: Duration.hours(1),
    });
    expect(variableIn(template, limitsVariable)).toContain('{"loans":5}');
    expect(variableIn(template, agentsVariable)).toContain('{"loans":3}');
    expect(variableIn(template, closeAfterVariable)).toEqual(["48", "48"]);
    const [longWait] = Object.entries(template.findResources("AWS::CloudWatch::Alarm")).filter(([id]) =>
      id.startsWith("LongWait"),
    );
    expect(longWait?.[1].Properties.Threshold).toBe(3_600_000);
  });

  test.each<[LeaseholdStackProps, RegExp]>([
    [{ departments: { loans: 501 } }, /limit 501 of "loans"/],
    [{ departments: {}, ticketAgents: { loans: 21 } }, /number of agents 21 of "loans"/],
    [{ closeUnpaidOrdersAfter: Duration.days(367) }, /CLOSE_UNPAID_ORDERS_AFTER_HOURS is "8808"/],
    [{ closeUnpaidOrdersAfter: Duration.minutes(90) }, /whole number of hours/],
    [{ longestWait: Duration.minutes(0) }, /threshold is 0: give a number above 0/],
  ])("is told no number that cannot be: %j is refused at synthesis", (props, message) => {
    expect(() => leaseholdTemplate(props)).toThrow(message);
  });

  test("acquire, renew and release are held to shared keys", () => {
    for (const name of ["Acquire", "Renew", "Release"]) {
      const [, properties] = only("AWS::Lambda::Function", `LeaseFunctions${name}`);
      expect(environmentOf(properties)[environmentNames.keyPrefix]).toBe("shared/");
    }
  });
});

test("the pace of the demonstration can be stretched by a slow machine, to whole seconds for workflows", () => {
  expect(() => leaseholdTemplate({ pace: demonstrationPaceAt(1.5) })).not.toThrow();
});

describe("schedules", () => {
  test("whoever reports on the job reads the schedule that it has", () => {
    const [, { ScheduleExpression, ScheduleExpressionTimezone }] = only(
      "AWS::Scheduler::Schedule",
      "UnpaidOrdersJob",
    );
    const [, properties] = only("AWS::Lambda::Function", "UnpaidOrdersReport");
    expect(environmentOf(properties)[scheduleVariable]).toBe(ScheduleExpression);
    expect(ScheduleExpressionTimezone).toBe("Etc/UTC");
    expect(environmentOf(properties)[environmentNames.lockAtMostForMs]).toBe("45000");
  });

  test("the job that acceptance triggers is triggered by nobody else, and touches its own lock alone", () => {
    const [, { State }] = only("AWS::Scheduler::Schedule", "Acceptance");
    expect(State).toBe("DISABLED");
    const [, properties] = only("AWS::Lambda::Function", "AcceptanceRun");
    expect(environmentOf(properties)[environmentNames.key]).toBe(acceptanceJobKey);
  });

  test.each([
    ["Tickets", "rate(5 minutes)", "TicketsCleaner"],
    ["Tasks", "rate(1 minute)", "TasksRestart"],
  ])("of %s is %s, and starts %s", (name, rate, started) => {
    const [, { ScheduleExpression, Target }] = only("AWS::Scheduler::Schedule", name);
    expect(ScheduleExpression).toBe(rate);
    const [fn] = only("AWS::Lambda::Function", started);
    expect(JSON.stringify((Target as { Arn: unknown }).Arn)).toContain(fn);
    expect(resourcesOf(json, "AWS::Scheduler::Schedule")).toHaveLength(4);
  });
});

describe("the lease table's stream", () => {
  const lease = { [attributeNames.sortKey]: { S: [leaseSortKey] } };
  const isThere = { [attributeNames.token]: { S: [{ exists: true }] } };

  function mapping(name: string): { patterns: unknown[]; properties: Record<string, unknown> } {
    const [, properties] = only("AWS::Lambda::EventSourceMapping", name);
    const { Filters } = properties.FilterCriteria as { Filters: { Pattern: string }[] };
    return { properties, patterns: Filters.map(({ Pattern }) => JSON.parse(Pattern)) };
  }

  test("reports what ttl removed while it was held, and no other removal", () => {
    expect(mapping("LeaseFunctionsExpired").patterns).toEqual([
      {
        eventName: ["REMOVE"],
        userIdentity: { type: ["Service"], principalId: ["dynamodb.amazonaws.com"] },
        dynamodb: { Keys: lease, OldImage: isThere },
      },
    ]);
  });

  test.each(["LeaseFunctionsWake", "LeaseFunctionsExpired"])(
    "%s repeats single records, and keeps what failed",
    (name) => {
      const { properties } = mapping(name);
      expect(properties).toMatchObject({
        EventSourceArn: { "Fn::GetAtt": [leases, "StreamArn"] },
        FunctionResponseTypes: ["ReportBatchItemFailures"],
        BisectBatchOnFunctionError: true,
      });
      const { OnFailure } = properties.DestinationConfig as { OnFailure: { Destination: unknown } };
      expect(json.Resources[referenceTo(OnFailure.Destination) ?? ""]?.Type).toBe("AWS::SQS::Queue");
      expect(properties.MaximumRetryAttempts).toBeGreaterThan(0);
    },
  );
});

test("every dead-letter queue is encrypted, and keeps its messages for 14 days", () => {
  const queues = resourcesOf(json, "AWS::SQS::Queue");
  expect(queues).toHaveLength(4);
  for (const [, { Properties }] of queues) {
    expect(Properties).toEqual({ MessageRetentionPeriod: 14 * 86_400, SqsManagedSseEnabled: true });
  }
});

test("every alarm leads to an entry of the runbook that exists, and every entry has an alarm", () => {
  const entriesOf = (page: string): string[] =>
    [...readFileSync(page, "utf8").matchAll(/^## (.+)$/gm)]
      .map(([, heading = ""]) => `${page}#${heading.toLowerCase().replaceAll(" ", "-")}`)
      .filter((entry) => entry !== "docs/RUNBOOK.md#without-an-alarm");
  const entries = ["docs/RUNBOOK.md", "docs/systems/alarms.md"].flatMap(entriesOf);
  const linked = resourcesOf(json, "AWS::CloudWatch::Alarm").map(([, { Properties }]) =>
    textsIn(Properties.AlarmDescription).join("").split("Runbook: ").at(1),
  );
  expect([...new Set(linked)].sort()).toEqual(entries.sort());
  const declared = [
    ...Object.values(runbookAnchors).map((anchor) => `docs/RUNBOOK.md#${anchor}`),
    ...Object.values(systemRunbookAnchors).map((anchor) => `docs/systems/alarms.md#${anchor}`),
  ];
  expect(entries).toEqual(declared.sort());
});

test("an alarm counts what the imports and the closings log, by the words that they log", () => {
  const filters = resourcesOf(json, "AWS::Logs::MetricFilter").map(([, { Properties }]) => Properties);
  const words = filters.map(({ FilterPattern }) => FilterPattern);
  expect(words.sort()).toEqual([
    ...Array(2).fill(`"${parkedMessage}"`),
    `?"${runFailedMessage}" ?"${chunkParkedMessage}"`,
  ]);
  for (const { MetricTransformations } of filters) {
    const [{ MetricName, MetricNamespace }] = MetricTransformations as [Record<string, string>];
    const alarms = JSON.stringify(resourcesOf(json, "AWS::CloudWatch::Alarm"));
    expect(alarms).toContain(`"MetricName":"${MetricName}","Namespace":"${MetricNamespace}"`);
  }
});

test("no value looks like a secret", () => {
  const name = /secret|password|passwd|credential|api_?key|access_?key/i;
  for (const [id, { Properties }] of functions) {
    for (const variable of Object.keys(environmentOf(Properties))) expect(variable, id).not.toMatch(name);
  }
  const texts = textsIn(json).filter((text) => !/^[0-9a-f]{64}(\.(zip|json))?$/.test(text));
  const secrets = /AKIA[A-Z0-9]{16}|-----BEGIN|\b[0-9a-f]{32,}\b|\b\d{12}\b/;
  expect(texts.filter((text) => secrets.test(text))).toEqual([]);
});

test("a deployment tells what is needed to use it", () => {
  const outputs = Object.entries(json.Outputs ?? {}).map(([id, { Value }]) => [
    id,
    json.Resources[referenceTo(Value) ?? ""]?.Type,
  ]);
  expect(Object.fromEntries(outputs)).toEqual({
    LeaseTableName: "AWS::DynamoDB::GlobalTable",
    AcceptanceFunctionName: "AWS::Lambda::Function",
    AcceptanceWorkflowArn: "AWS::StepFunctions::StateMachine",
    AcquireFunctionName: "AWS::Lambda::Function",
    RenewFunctionName: "AWS::Lambda::Function",
    ReleaseFunctionName: "AWS::Lambda::Function",
    ImportWorkflowArn: "AWS::StepFunctions::StateMachine",
    HeartbeatArn: "AWS::StepFunctions::StateMachine",
    DashboardName: "AWS::CloudWatch::Dashboard",
  });
});

test("the app's own state machines pass an independent validator, and their expressions the real parser", () => {
  const own = Object.entries(definitionsIn(template)).filter(([id]) => id.startsWith("Imports"));
  // The import workflow, and its batches; the others are those of the constructs.
  expect(own).toHaveLength(2);
  for (const [id, definition] of own) expect(definitionProblems(definition), id).toEqual([]);
});
