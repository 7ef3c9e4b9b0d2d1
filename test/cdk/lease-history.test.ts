import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LeaseTable, type LeaseTableProps } from "@leasehold/cdk";
import { LeaseClient } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { leaseItemKey } from "@leasehold/client/schema";
import { ManualClock } from "@leasehold/client/testing";
import { type App, Duration, type Stack } from "aws-cdk-lib";
import { Match, Template } from "aws-cdk-lib/assertions";
import { TableEncryptionV2 } from "aws-cdk-lib/aws-dynamodb";
import { Key } from "aws-cdk-lib/aws-kms";
import type { Asset } from "aws-cdk-lib/aws-s3-assets";
import { describe, expect, test } from "vitest";
import { historyHandlerBundle } from "../../packages/cdk/src/table/history-handler-bundle.ts";
import { newStack, only, statementsIn } from "../support/constructs.ts";
import { StreamedStore } from "../support/streamed-store.ts";

function stackWithHistory(
  props: LeaseTableProps = {},
  stack: Stack = newStack(),
): { readonly stack: Stack; readonly table: LeaseTable } {
  return { stack, table: new LeaseTable(stack, "Leases", { history: Duration.days(30), ...props }) };
}

describe("a table with a history", () => {
  test("has a stream, and a function that comes with the package", () => {
    const { stack, table } = stackWithHistory();
    const template = Template.fromStack(stack);
    template.hasResourceProperties("AWS::DynamoDB::GlobalTable", {
      StreamSpecification: { StreamViewType: "NEW_AND_OLD_IMAGES" },
    });
    template.hasResourceProperties("AWS::Lambda::Function", {
      Handler: "index.handler",
      Runtime: "nodejs24.x",
      Environment: {
        Variables: {
          LEASEHOLD_TABLE_NAME: Match.anyValue(),
          LEASEHOLD_HISTORY_MS: String(30 * 86_400_000),
        },
      },
    });
    const folder = table.history?.handler.node.findChild("Code") as Asset;
    const assembly = (stack.node.root as App).synth().directory;
    expect(readFileSync(join(assembly, folder.assetPath, "index.cjs"), "utf8")).toBe(historyHandlerBundle);
    const wanted = [...historyHandlerBundle.matchAll(/require\("([^"]+)"\)/g)].map(([, name]) => name);
    expect([...new Set(wanted)].filter((name) => !name?.startsWith("node:"))).toEqual([
      "@aws-sdk/client-dynamodb",
    ]);
  });

  test("permits the function to write items and to read the stream, and nothing else", () => {
    const { stack } = stackWithHistory();
    const template = Template.fromStack(stack);
    expect(
      statementsIn(template)
        .flatMap(({ Action }) => Action)
        .sort(),
    ).toEqual([
      "dynamodb:DescribeStream",
      "dynamodb:GetRecords",
      "dynamodb:GetShardIterator",
      "dynamodb:ListStreams",
      "dynamodb:PutItem",
      "logs:CreateLogStream",
      "logs:PutLogEvents",
      "sqs:GetQueueAttributes",
      "sqs:GetQueueUrl",
      "sqs:SendMessage",
    ]);
    expect(only(template.findResources("AWS::IAM::Role")).Properties.ManagedPolicyArns).toBeUndefined();
  });

  test("with the user's key lets the function use it", () => {
    const stack = newStack();
    const encryption = TableEncryptionV2.customerManagedKey(new Key(stack, "Key"));
    stackWithHistory({ encryption }, stack);
    const actions = statementsIn(Template.fromStack(stack)).flatMap(({ Action }) => Action);
    expect(actions).toEqual(expect.arrayContaining(["kms:Decrypt", "kms:Encrypt"]));
  });

  test.each([
    [{ history: Duration.seconds(30) }, /history is 30 seconds; allowed: from a minute to 10 years/],
    [{ history: Duration.days(4_000) }, /history is 4000 days; allowed/],
    [{ stream: false }, /Test\/Leases has a history, which is made from the stream/],
  ])("is refused with %j", (props, message) => {
    expect(() => stackWithHistory(props)).toThrow(message);
  });

  test("costs nothing where it is not asked for", () => {
    const stack = newStack();
    expect(new LeaseTable(stack, "Leases").history).toBeUndefined();
    Template.fromStack(stack).resourceCountIs("AWS::Lambda::Function", 0);
  });
});

test("the function of a history is called for every write that begins or ends a hold, not for renewals, and never for its own", async () => {
  const key = leaseItemKey("k");
  const store = new StreamedStore(Template.fromStack(stackWithHistory().stack));
  const clock = new ManualClock();
  const clientOf = (owner: string): LeaseClient =>
    new LeaseClient({ store, clock, owner, leaseDurationMs: 1_000, clockSkewMs: 100 });
  const operator = new LeaseOperator(clientOf("op"), { by: "alice" });
  const called: Record<string, boolean | undefined> = {};
  const show = async <T>(name: string, act: () => Promise<T>): Promise<T> => {
    const result = await act();
    called[name] = store.look().find(([kind]) => kind === key.sk)?.[1];
    return result;
  };
  const first = await show("a first acquisition", () => clientOf("a").acquire("k"));
  await show("a renewal", () => first.renew());
  await show("a request to stop", () => operator.stop("k", { token: first.toJSON().token }));
  await show("a release", () => first.release());
  const second = await show("an acquisition", () => clientOf("b").acquire("k", { lockAtLeastForMs: 1_000 }));
  await show("a cooldown", () => second.release());
  await clock.advance(1_200);
  await show("an acquisition after a cooldown", () => clientOf("c").acquire("k"));
  await clock.advance(1_200);
  const fourth = await show("a takeover", () => clientOf("d").acquire("k"));
  await show("a break", () => operator.break("k", { token: fourth.toJSON().token, reason: "INC-1" }));
  await show("a pause", () => operator.pause("k", { forMs: 60_000, reason: "INC-1" }));
  await show("a removal by ttl", async () => {
    await clock.advance(60 * 86_400_000);
    store.watch([key], () => store.collectGarbage(clock.now()));
  });
  store.updateNow({
    key: { pk: "k", sk: "~history#x" },
    update: "SET #data = :data",
    condition: "attribute_not_exists(#data)",
    names: { "#data": "data" },
    values: { ":data": "{}" },
    returnsItem: false,
  });
  expect(store.look()).toEqual([["~history", false]]);
  expect(called).toEqual({
    "a first acquisition": true,
    "a renewal": false,
    "a request to stop": true,
    "a release": true,
    "an acquisition": true,
    "a cooldown": true,
    "an acquisition after a cooldown": true,
    "a takeover": true,
    "a break": true,
    "a pause": true,
    "a removal by ttl": true,
  });
});
