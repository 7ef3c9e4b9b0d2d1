import {
  type AttributeValue,
  CreateTableCommand,
  DeleteTableCommand,
  DescribeTimeToLiveCommand,
  PutItemCommand,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { createLeaseTable, type LeaseEvent, LeaseItemError, LeaseTableError } from "@leasehold/client";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { adminOf } from "../support/admin.ts";
import { makeTable, sdkClient, type TestTable } from "../support/table.ts";

const engine = inject("engine");
let table: TestTable;

beforeAll(async () => {
  table = await makeTable(engine);
});
afterAll(() => table.close());

const held: Record<string, AttributeValue> = {
  token: { S: "token-of-another" },
  version: { N: "1" },
  fence: { N: "1767225600001" },
  owner: { S: "another" },
  acquiredAt: { N: "1767225600000" },
  expiresAt: { N: "1767225610000" },
  leaseDurationMs: { N: "10000" },
};

/** Puts an item as another program would. */
async function put(
  key: string,
  attributes: Record<string, AttributeValue>,
  sortKey = "lease",
): Promise<void> {
  const Item = { pk: { S: key }, sk: { S: sortKey }, ...attributes };
  await table.dynamodb.send(new PutItemCommand({ TableName: table.tableName, Item }));
}

describe("an item that another program has written", () => {
  const values: Record<string, AttributeValue> = {
    "a flag": { BOOL: true },
    "a map": { M: { a: { S: "b" } } },
    "a list": { L: [{ N: "1" }] },
    bytes: { B: new Uint8Array([1, 2, 3]) },
    null: { NULL: true },
    "a set": { SS: ["a"] },
  };
  const cases = Object.entries(values).flatMap(([kind, value]) =>
    ["token", "version", "expiresAt", "owner"].map((attribute) => [attribute, kind, value] as const),
  );

  it.each(cases)("with a %s that is %s is named", async (attribute, _, value) => {
    const key = table.newKey();
    await put(key, { ...held, [attribute]: value });
    const client = table.client();
    for (const call of [() => client.acquire(key), () => client.inspect(key)]) {
      const error: unknown = await call().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LeaseItemError);
      expect(error).toMatchObject({ key, sortKey: "lease", attribute });
    }
  });

  it("whose fencing token cannot be counted up is named by the write that meets it", async () => {
    const key = table.newKey();
    await put(key, { fence: { S: "seven" } });
    const error: unknown = await table
      .client()
      .acquire(key)
      .catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "LEASE_ITEM_UNREADABLE", key, sortKey: "lease", attribute: "fence" });
    expect((error as Error).message).toContain("its attribute fence is not a number; allowed: a number (N)");
  });

  it("whose payload is no JSON is taken over when its time is over", async () => {
    const key = table.newKey();
    await put(key, { ...held, data: { B: new Uint8Array([123]) } });
    const client = table.client();
    expect(await client.inspect(key)).toMatchObject({
      owner: "another",
      data: undefined,
      invalidData: "neither text nor JSON",
    });
    expect((await client.acquire(key)).held).toBe(true);
  });

  it("is left out of a list, which tells of it", async () => {
    const [broken, good] = [table.newKey(), table.newKey()];
    await put(broken, { ...held, version: { BOOL: true } });
    const events: LeaseEvent[] = [];
    const client = table.client({ onEvent: (event) => events.push(event) });
    await client.acquire(good);
    const keys: string[] = [];
    for await (const { key } of adminOf(client).list({ all: true })) keys.push(key);
    expect(keys).toContain(good);
    expect(keys).not.toContain(broken);
    expect(events).toContainEqual(
      expect.objectContaining({ type: "unreadable", key: broken, sortKey: "lease", attribute: "version" }),
    );
  });
});

describe("a table", () => {
  it("whose ttl is on another attribute is refused, and left as it is", async () => {
    const tableName = `other-${crypto.randomUUID()}`;
    const { dynamodb } = table;
    await dynamodb.send(
      new CreateTableCommand({
        TableName: tableName,
        BillingMode: "PAY_PER_REQUEST",
        AttributeDefinitions: ["pk", "sk"].map((AttributeName) => ({
          AttributeName,
          AttributeType: "S" as const,
        })),
        KeySchema: [
          { AttributeName: "pk", KeyType: "HASH" },
          { AttributeName: "sk", KeyType: "RANGE" },
        ],
      }),
    );
    const TimeToLiveSpecification = { AttributeName: "expiresAt", Enabled: true };
    await dynamodb.send(new UpdateTimeToLiveCommand({ TableName: tableName, TimeToLiveSpecification }));
    const error: unknown = await createLeaseTable({ tableName, dynamodb }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LeaseTableError);
    expect(error).toMatchObject({ code: "LEASE_TABLE_MISMATCH", tableName });
    expect((error as Error).message).toContain('on the attribute "expiresAt"; a lease table\'s is on "ttl"');
    const { TimeToLiveDescription } = await dynamodb.send(
      new DescribeTimeToLiveCommand({ TableName: tableName }),
    );
    expect(TimeToLiveDescription).toMatchObject({ AttributeName: "expiresAt" });
    await dynamodb.send(new DeleteTableCommand({ TableName: tableName }));
  });

  it("that is missing is named with the region and the endpoint that were asked", async () => {
    const dynamodb = sdkClient(engine, { region: "eu-north-1" });
    const client = table.client({ tableName: "not-there", dynamodb });
    const { hostname, port } = new URL(String(engine.clientConfig.endpoint));
    await expect(client.acquire("k")).rejects.toMatchObject({
      code: "LEASE_TABLE_NOT_FOUND",
      message: expect.stringContaining(
        `in the region eu-north-1 at http://${hostname}:${port}: table not found`,
      ),
    });
    dynamodb.destroy();
  });
});
