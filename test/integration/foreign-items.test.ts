// Items of other programs, with types that no store in memory has.
import { type AttributeValue, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { LeaseItemError } from "@leasehold/client";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { makeTable, type TestTable } from "../support/table.ts";

let table: TestTable;

beforeAll(async () => {
  table = await makeTable(inject("engine"));
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

/** Puts an item as another program would, under a new key. */
async function put(attributes: Record<string, AttributeValue>): Promise<string> {
  const key = table.newKey();
  const Item = { pk: { S: key }, sk: { S: "lease" }, ...attributes };
  await table.dynamodb.send(new PutItemCommand({ TableName: table.tableName, Item }));
  return key;
}

async function errorOf(call: Promise<unknown>): Promise<unknown> {
  return await call.catch((reason: unknown) => reason);
}

describe("an item that another program has written", () => {
  it.each<[string, string, AttributeValue]>([
    ["a flag", "token", { BOOL: true }],
    ["a map", "version", { M: { a: { S: "b" } } }],
    ["a list", "expiresAt", { L: [{ N: "1" }] }],
    ["bytes", "owner", { B: new Uint8Array([1, 2, 3]) }],
    ["null", "token", { NULL: true }],
    ["a set", "version", { SS: ["a"] }],
  ])("with %s as its %s is named", async (_, attribute, value) => {
    const key = await put({ ...held, [attribute]: value });
    const client = table.client();
    for (const error of [await errorOf(client.acquire(key)), await errorOf(client.inspect(key))]) {
      expect(error).toBeInstanceOf(LeaseItemError);
      expect(error).toMatchObject({ key, sortKey: "lease", attribute });
    }
  });

  it("whose fencing token cannot be counted up is named by the write that meets it", async () => {
    const key = await put({ fence: { S: "seven" } });
    expect(await errorOf(table.client().acquire(key))).toMatchObject({
      ...{ code: "LEASE_ITEM_UNREADABLE", key, sortKey: "lease", attribute: "fence" },
      message: expect.stringContaining("its attribute fence is not a number; allowed: a number (N)"),
    });
  });

  it("whose payload is no JSON is taken over when its time is over", async () => {
    const key = await put({ ...held, data: { B: new Uint8Array([123]) } });
    const client = table.client();
    expect(await client.inspect(key)).toMatchObject({
      ...{ owner: "another", data: undefined, invalidData: "neither text nor JSON" },
    });
    expect((await client.acquire(key)).held).toBe(true);
  });
});
