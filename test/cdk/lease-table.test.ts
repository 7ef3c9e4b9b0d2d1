import { type LeaseKeyScope, LeaseTable, type LeaseTableProps, LeaseWakeup } from "@leasehold/cdk";
import { metricNames, metricsNamespace } from "@leasehold/client/metrics";
import { CfnParameter, Duration, RemovalPolicy, type Stack } from "aws-cdk-lib";
import { Annotations, Match, Template } from "aws-cdk-lib/assertions";
import {
  Billing,
  ContributorInsightsMode,
  MultiRegionConsistency,
  TableEncryptionV2,
} from "aws-cdk-lib/aws-dynamodb";
import {
  AccountPrincipal,
  PolicyDocument,
  PolicyStatement,
  Role,
  ServicePrincipal,
} from "aws-cdk-lib/aws-iam";
import { Key } from "aws-cdk-lib/aws-kms";
import { describe, expect, test } from "vitest";
import { newStack, permitted, statementsIn } from "../support/constructs.ts";

const tableType = "AWS::DynamoDB::GlobalTable";
const useActions = "dynamodb:UpdateItem,dynamodb:GetItem,dynamodb:ConditionCheckItem,dynamodb:PartiQLUpdate";

function newRole(stack: Stack, id = "Worker"): Role {
  return new Role(stack, id, { assumedBy: new ServicePrincipal("lambda.amazonaws.com") });
}

describe("the table", () => {
  test("has the client's keys and ttl, is paid on demand, backed up, protected, and outlives its stack", () => {
    const stack = newStack();
    new LeaseTable(stack, "Leases");
    Template.fromStack(stack).hasResource(tableType, {
      DeletionPolicy: "Retain",
      UpdateReplacePolicy: "Retain",
      Properties: {
        BillingMode: "PAY_PER_REQUEST",
        KeySchema: [
          { AttributeName: "pk", KeyType: "HASH" },
          { AttributeName: "sk", KeyType: "RANGE" },
        ],
        AttributeDefinitions: [
          { AttributeName: "pk", AttributeType: "S" },
          { AttributeName: "sk", AttributeType: "S" },
        ],
        TimeToLiveSpecification: { AttributeName: "ttl", Enabled: true },
        SSESpecification: { SSEEnabled: false },
        StreamSpecification: Match.absent(),
        Replicas: [
          Match.objectLike({
            DeletionProtectionEnabled: true,
            PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
          }),
        ],
      },
    });
  });

  test.each<[string, (stack: Stack) => LeaseTableProps, object]>([
    [
      "gives up its protections only when told to",
      () => ({ deletionProtection: false, pointInTimeRecovery: false }),
      {
        Replicas: [
          Match.objectLike({
            DeletionProtectionEnabled: false,
            PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: false },
          }),
        ],
      },
    ],
    [
      "streams the item before and after, and takes the user's encryption",
      (stack) => ({ stream: true, encryption: TableEncryptionV2.customerManagedKey(new Key(stack, "Key")) }),
      {
        StreamSpecification: { StreamViewType: "NEW_AND_OLD_IMAGES" },
        SSESpecification: { SSEEnabled: true, SSEType: "KMS" },
      },
    ],
    [
      "takes the user's limits of its use, is warm from its beginning, and ranks its busy keys",
      () => ({
        billing: Billing.onDemand({ maxReadRequestUnits: 100, maxWriteRequestUnits: 50 }),
        warmThroughput: { readUnitsPerSecond: 15_000, writeUnitsPerSecond: 6_000 },
        contributorInsightsSpecification: { enabled: true, mode: ContributorInsightsMode.THROTTLED_KEYS },
      }),
      {
        BillingMode: "PAY_PER_REQUEST",
        WriteOnDemandThroughputSettings: { MaxWriteRequestUnits: 50 },
        WarmThroughput: { ReadUnitsPerSecond: 15_000, WriteUnitsPerSecond: 6_000 },
        Replicas: [
          Match.objectLike({ ContributorInsightsSpecification: { Enabled: true, Mode: "THROTTLED_KEYS" } }),
        ],
      },
    ],
  ])("%s, when asked to", (_, propsIn, properties) => {
    const stack = newStack();
    new LeaseTable(stack, "Leases", { removalPolicy: RemovalPolicy.DESTROY, ...propsIn(stack) });
    Template.fromStack(stack).hasResource(tableType, { DeletionPolicy: "Delete", Properties: properties });
  });

  test("has the user's own policy, and beside it what grants add", () => {
    const stack = newStack();
    const actions = ["dynamodb:GetItem"];
    const principals = [new AccountPrincipal("444455556666")];
    const statement = new PolicyStatement({ actions, resources: ["*"], principals });
    const resourcePolicy = new PolicyDocument({ statements: [statement] });
    const table = new LeaseTable(stack, "Leases", { resourcePolicy });
    table.grants.useLeases(new AccountPrincipal("777788889999"));
    const Statement = ["dynamodb:GetItem", useActions.split(",")].map((Action) =>
      Match.objectLike({ Action }),
    );
    Template.fromStack(stack).hasResourceProperties(tableType, {
      Replicas: [Match.objectLike({ ResourcePolicy: { PolicyDocument: Match.objectLike({ Statement }) } })],
    });
  });
});

describe("a table in several regions", () => {
  const replicas = [{ region: "eu-central-1" }, { region: "eu-west-3" }];
  const strong = { replicas, multiRegionConsistency: MultiRegionConsistency.STRONG };
  test("is warned of where its replicas lag", () => {
    const stack = newStack();
    new LeaseTable(stack, "Leases", { replicas });
    const warning = Match.stringLikeRegexp("replicas that follow with a delay let a second holder in");
    Annotations.fromStack(stack).hasWarning("/Test/Leases", warning);
    Template.fromStack(stack).hasResourceProperties(tableType, {
      TimeToLiveSpecification: { AttributeName: "ttl", Enabled: true },
    });
  });

  test("is not warned of where it is strongly consistent, and has no ttl, for DynamoDB has none there", () => {
    const stack = newStack();
    new LeaseTable(stack, "Leases", strong);
    Annotations.fromStack(stack).hasNoWarning("/Test/Leases", Match.anyValue());
    Template.fromStack(stack).hasResourceProperties(tableType, {
      MultiRegionConsistency: "STRONG",
      TimeToLiveSpecification: Match.absent(),
    });
  });

  test("refuses a history and a wakeup where it is strongly consistent: they need ttl and transactions", () => {
    const stack = newStack();
    expect(() => new LeaseTable(stack, "Kept", { ...strong, history: Duration.days(1) })).toThrow(/no ttl/);
    const table = new LeaseTable(stack, "Leases", { ...strong, stream: true });
    expect(() => new LeaseWakeup(stack, "Wakeup", { table })).toThrow(/no transactions/);
  });

  test("is used through each of its replicas", () => {
    const stack = newStack();
    const table = new LeaseTable(stack, "Leases", { replicas, tableName: "leases" });
    table.grants.inspect(newRole(stack));
    const text = JSON.stringify(statementsIn(Template.fromStack(stack))[0]?.Resource);
    expect(text).toContain(":dynamodb:eu-central-1:111122223333:table/");
    expect(text).toContain(":dynamodb:eu-west-3:111122223333:table/");
  });
});

describe("permissions", () => {
  test.each<[string, (table: LeaseTable, role: Role) => unknown, string | RegExp]>([
    [
      "end at the keys and prefixes that they name",
      ({ grants }, role) => grants.useLeases(role, { keys: ["import"], keyPrefixes: ["orders/"] }),
      `${useActions} <Leases.Arn> ["import","orders/*"]`,
    ],
    [
      "take wildcards and policy variables in a key for its characters, and leave one known later as it is",
      (table, role) =>
        table.grants.useLeases(role, {
          keys: ["a*b?c", `\${aws:userid}`, new CfnParameter(table, "Key").valueAsString],
          keyPrefixes: ["100*/"],
        }),
      `${useActions} <Leases.Arn> ["a\${*}b\${?}c","\${$}{aws:userid}",{"Ref":"LeasesKey"},"100\${*}/*"]`,
    ],
    [
      "to inspect are to read single items",
      ({ grants }, role) => grants.inspect(role, { keys: ["a"] }),
      'dynamodb:GetItem <Leases.Arn> ["a"]',
    ],
    ["to list are to scan", ({ grants }, role) => grants.listLeases(role), "dynamodb:Scan <Leases.Arn>"],
    [
      "to read the stream are on the stream alone",
      ({ grants }, role) => grants.readStream(role),
      "dynamodb:DescribeStream,dynamodb:GetRecords,dynamodb:GetShardIterator <Leases.StreamArn>",
    ],
  ])("%s", (_, grant, statement) => {
    const stack = newStack();
    grant(new LeaseTable(stack, "Leases", { stream: true }), newRole(stack));
    const given = permitted(Template.fromStack(stack), /^/).map((text) =>
      text.replaceAll(/(?<=Leases(Key)?)[0-9A-F]{8}/g, ""),
    );
    expect(given).toEqual([statement]);
  });

  // As CDK's own grants of a table give it: only who writes may encrypt.
  const toRead = ["kms:Decrypt", "kms:DescribeKey"];
  const toWrite = [...toRead, "kms:Encrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*"];
  test.each([
    ["useLeases", toWrite],
    ["keepLeases", toWrite],
    ["usePrimitives", toWrite],
    ["operate", toWrite],
    ["read", toRead],
  ] as const)("to %s with the user's key let their holder do %o with it", (grant, expected) => {
    const stack = newStack();
    const encryption = TableEncryptionV2.customerManagedKey(new Key(stack, "Key"));
    new LeaseTable(stack, "Leases", { encryption }).grants[grant](newRole(stack));
    const actions = statementsIn(Template.fromStack(stack)).flatMap(({ Action }) => Action);
    expect(actions.filter((action) => action.startsWith("kms:"))).toEqual(expected);
  });

  test("on the stream of a table without one are refused, saying what to change", () => {
    const stack = newStack();
    expect(() => new LeaseTable(stack, "Leases").grants.readStream(newRole(stack))).toThrow(
      "Test/Leases has no stream to read: make the table with stream: true",
    );
  });

  test.each<[LeaseKeyScope, string]>([
    [{ keys: [] }, "keys and keyPrefixes are empty, which permits nothing: name a key, or leave both out"],
    [{ keys: [""] }, "keys has an empty key: a lock's key is a text of 1 to 2048 bytes"],
    [{ keyPrefixes: [""] }, "keyPrefixes has an empty key"],
    [{ keys: ["é".repeat(1025)] }, "keys has a key of 2050 bytes"],
  ])("that name no possible key are refused (%#)", (scope, message) => {
    const stack = newStack();
    const table = new LeaseTable(stack, "Leases");
    expect(() => table.grants.useLeases(newRole(stack), scope)).toThrow(message);
  });
});

test("a table that is defined elsewhere is named by its name, ARN or attributes, and can be granted all the same", () => {
  const stack = newStack();
  const tableArn = "arn:aws:dynamodb:eu-west-1:111122223333:table/leases";
  const tableStreamArn = `${tableArn}/stream/1`;
  for (const [table, stream] of [
    [LeaseTable.fromLeaseTableName(stack, "ByName", "leases")],
    [LeaseTable.fromLeaseTableArn(stack, "ByArn", tableArn)],
    [LeaseTable.fromLeaseTableAttributes(stack, "ByBoth", { tableArn, tableStreamArn }), tableStreamArn],
  ] as const) {
    expect([table.tableName, table.tableStreamArn]).toEqual(["leases", stream]);
    table.grants.useLeases(newRole(stack, `${table.node.id}Role`), { keys: ["a"] });
  }
  expect(
    permitted(Template.fromStack(stack), /^/).map((text) => text.replace("<AWS::Partition>", "aws")),
  ).toEqual(Array(3).fill(`${useActions} ${tableArn} ["a"]`));
});

test("metrics are those that the client writes, by table; durations are percentiles, unless told otherwise", () => {
  const table = LeaseTable.fromLeaseTableName(newStack(), "Leases", "leases");
  const { waitTime, holdTime, clockSkew } = metricNames;
  for (const [metric, metricName, statistic = "Sum"] of [
    [table.metricAcquired(), metricNames.acquired],
    [table.metricContended(), metricNames.contended],
    [table.metricTakenOver(), metricNames.takenOver],
    [table.metricRenewed(), metricNames.renewed],
    [table.metricLost(), metricNames.lost],
    [table.metricReleased(), metricNames.released],
    [table.metricExpired(), metricNames.expired],
    [table.metricCompletionFailed(), metricNames.completionFailed],
    [table.metricWaitTime(), waitTime, "p95"],
    [table.metricHoldTime({ statistic: "Maximum" }), holdTime, "Maximum"],
    [table.metricClockSkew(), clockSkew, "p95"],
  ] as const) {
    const dimensions = { Table: "leases" };
    expect(metric).toMatchObject({ namespace: metricsNamespace, metricName, dimensions, statistic });
  }
  expect(table.metricConditionalCheckFailedRequests()).toMatchObject({ namespace: "AWS/DynamoDB" });
});
