/** The fragments with which a resource refuses a stale holder. */
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";

const itemKey = { pk: "report", sk: "1" };

let clock: ManualClock;
let table: MemoryLeaseStore;
let resource: MemoryLeaseStore;
let client: LeaseClient;

beforeEach(() => {
  clock = new ManualClock();
  table = new MemoryLeaseStore("locks");
  resource = new MemoryLeaseStore("resource");
  client = new LeaseClient({ store: table, clock, owner: "me" });
});

/** Two leases of one lock, one after the other. */
async function twoLeases() {
  const first = await client.acquire("k", { leaseDurationMs: 5_000, heartbeat: false });
  await first.release();
  const second = await client.acquire("k", { leaseDurationMs: 5_000, heartbeat: false });
  return { first, second };
}

describe.each([undefined, "guard"])("an item that remembers the fencing token as %s", (attribute) => {
  const options = { format: "native" as const, ...(attribute === undefined ? {} : { attribute }) };
  type Fenced = Pick<Awaited<ReturnType<LeaseClient["acquire"]>>, "fence">;
  const write = (lease: Fenced): boolean => {
    const fence = lease.fence(options);
    return resource.updateNow({
      key: itemKey,
      update: fence.UpdateExpression,
      condition: fence.ConditionExpression,
      names: fence.ExpressionAttributeNames,
      values: fence.ExpressionAttributeValues,
      returnsItem: false,
    }).applied;
  };

  it("takes writes of the holder again and again, and none of an earlier one after them", async () => {
    const { first, second } = await twoLeases();
    expect(write(first)).toBe(true);
    expect(write(second)).toBe(true);
    expect(write(second)).toBe(true);
    expect(write(first)).toBe(false);
    expect(resource.peek(itemKey)).toEqual({ ...itemKey, [attribute ?? "fence"]: second.fencingToken });
  });

  it("is written whole with the same attribute", async () => {
    const { second } = await twoLeases();
    expect(second.fence(options).attributes).toEqual({ [attribute ?? "fence"]: second.fencingToken });
  });
});

it("a fence has its values in the form that bare commands take, unless another is asked for", async () => {
  const { second } = await twoLeases();
  const token = second.fencingToken;
  expect(second.fence().ExpressionAttributeValues).toEqual({ ":leaseFence": { N: String(token) } });
  expect(second.fence().attributes).toEqual({ fence: { N: String(token) } });
  expect(second.fence({ format: "native" }).ExpressionAttributeValues).toEqual({ ":leaseFence": token });
});

it("a fence of a client with a document client has plain values, and that of a bare client typed ones", async () => {
  const handle = (await client.acquire("k")).toJSON();
  const bare = new DynamoDBClient({ region: "eu-central-1" });
  const valuesBy = (dynamodb: DynamoDBClient | DynamoDBDocumentClient) =>
    new LeaseClient({ tableName: "locks", dynamodb, clock }).adopt(handle).fence().attributes;
  expect(valuesBy(DynamoDBDocumentClient.from(bare))).toEqual({ fence: handle.fencingToken });
  expect(valuesBy(bare)).toEqual({ fence: { N: String(handle.fencingToken) } });
});

describe("a condition check", () => {
  it("holds in a transaction for the lease that stands, and for no other", async () => {
    const { first, second } = await twoLeases();
    const holds = (lease: typeof first): boolean => {
      const { ConditionCheck: check } = lease.conditionCheck({ format: "native" });
      return table.transactNow([
        {
          key: { pk: String(check.Key.pk), sk: String(check.Key.sk) },
          condition: check.ConditionExpression,
          names: check.ExpressionAttributeNames,
          values: check.ExpressionAttributeValues,
          action: "check",
        },
      ]).applied;
    };
    expect(holds(second)).toBe(true);
    expect(holds(first)).toBe(false);
    await second.release();
    expect(holds(second)).toBe(false);
  });

  it("names the lease table and the lease's item, in the form that is asked for", async () => {
    const { second } = await twoLeases();
    const { ConditionCheck: native } = second.conditionCheck({ format: "native" });
    expect(native).toMatchObject({ TableName: "locks", Key: { pk: "k", sk: "lease" } });
    const { ConditionCheck: bare } = second.conditionCheck();
    expect(bare.Key).toEqual({ pk: { S: "k" }, sk: { S: "lease" } });
  });
});
