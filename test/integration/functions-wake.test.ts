import { UpdateItemCommand } from "@aws-sdk/client-dynamodb";
import { marshall } from "@aws-sdk/util-dynamodb";
import { park } from "@leasehold/client/internal";
import { waiterSortKeyPrefix } from "@leasehold/client/schema";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { type ParkedWaiter, parkedWaiters } from "../../packages/cdk/wake/parked-waiters.ts";
import type { Waiters } from "../../packages/cdk/wake/waking.ts";
import { makeTable, type TestTable } from "../support/table.ts";

let table: TestTable;
let waiters: Waiters<ParkedWaiter>;

beforeAll(async () => {
  table = await makeTable(inject("engine"));
  waiters = parkedWaiters(table.dynamodb, table.tableName);
});
afterAll(() => table?.close());

async function parkedAt(key: string, since: string, taskToken: string): Promise<void> {
  const { update, names, values } = park(
    { pk: key, sk: since },
    { taskToken, expiresAt: Date.now(), retentionMs: 0 },
  ).request();
  await table.dynamodb.send(
    new UpdateItemCommand({
      TableName: table.tableName,
      Key: marshall({ pk: key, sk: `${waiterSortKeyPrefix}${since}` }),
      UpdateExpression: update,
      ExpressionAttributeNames: { ...names },
      ExpressionAttributeValues: marshall(values),
    }),
  );
}

describe("the waiters in the lease table", () => {
  test("come in the order in which they parked, beside the lease and apart from other keys", async () => {
    const key = table.newKey();
    await table.client().acquire(key);
    await parkedAt(table.newKey(), "2026-03-01T09:00:00Z#x", "another key's");
    await parkedAt(key, "2026-03-01T10:00:02Z#b", "second");
    await parkedAt(key, "2026-03-01T10:00:01Z#a", "first");
    const second = await waiters.oldest(key, await waiters.oldest(key));
    expect(second).toMatchObject({ taskToken: "second" });
    expect(await waiters.oldest(key, second)).toBeUndefined();
    for (const expected of ["first", "second"]) {
      const waiter = await waiters.oldest(key);
      expect(waiter).toMatchObject({ taskToken: expected, key: { pk: key } });
      if (waiter !== undefined) await waiters.remove(waiter);
    }
    expect(await waiters.oldest(key)).toBeUndefined();
    expect(await table.client().inspect(key)).toBeDefined();
  });

  test("one that has parked again under another token is not taken off, and one that is gone does no harm", async () => {
    const key = table.newKey();
    await parkedAt(key, "2026-03-01T10:00:01Z#a", "before");
    const before = await waiters.oldest(key);
    await parkedAt(key, "2026-03-01T10:00:01Z#a", "after");
    if (before === undefined) throw new Error("nobody has parked");
    await waiters.remove(before);
    const after = await waiters.oldest(key);
    expect(after).toMatchObject({ taskToken: "after" });
    if (after === undefined) throw new Error("it was taken off");
    await waiters.remove(after);
    await waiters.remove(after);
    expect(await waiters.oldest(key)).toBeUndefined();
  });
});
