import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { createLeaseTable, LeaseClient, LeaseUnavailableError } from "@leasehold/client";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { adminOf } from "../support/admin.ts";

const tableName = `leases-${crypto.randomUUID()}`;
const arn = `arn:aws:dynamodb:us-east-1:000000000000:table/${tableName}`;
const dynamodb = new DynamoDBClient(inject("engine").clientConfig);
let byArn: LeaseClient;
let byName: LeaseClient;

beforeAll(async () => {
  await createLeaseTable({ tableName, dynamodb });
  byArn = new LeaseClient({ tableName: arn, dynamodb, owner: "by ARN", leaseDurationMs: 15_000 });
  byName = new LeaseClient({ tableName, dynamodb, owner: "by name" });
});
afterAll(() => dynamodb.destroy());

it("a client does everything with a table that it knows by its ARN: it holds, renews, looks, lists and releases", async ({
  skip,
}) => {
  skip(
    inject("engine").name !== "dynamodb-local",
    "this engine takes no ARN for a table's name, as DynamoDB does",
  );
  const leases = await Promise.all(["a", "b", "c"].map((key) => byArn.acquire(key, { heartbeat: 500 })));
  const before = leases.map(({ expiresAt }) => expiresAt);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  for (const [index, lease] of leases.entries()) {
    expect(lease.expiresAt).toBeGreaterThan(before[index] ?? Number.POSITIVE_INFINITY);
    await expect(byName.acquire(lease.key)).rejects.toBeInstanceOf(LeaseUnavailableError);
  }
  // In a transaction DynamoDB takes the ARN as well, and DynamoDB Local does not.
  expect(leases[0]?.conditionCheck().ConditionCheck.TableName).toBe(arn);
  expect((await byArn.inspect("b"))?.owner).toBe("by ARN");
  const listed: string[] = [];
  for await (const { key } of adminOf(byArn).list()) listed.push(key);
  expect(listed.sort()).toEqual(["a", "b", "c"]);
  for (const lease of leases) await lease.release();
  expect((await byName.acquire("a")).fencingToken).toBeGreaterThan(leases[0]?.fencingToken ?? 0);
});
