// @module-tag long
import { randomUUID } from "node:crypto";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  freshForVariable,
  movementsPartition,
  refreshAheadVariable,
} from "../../../functions/resource-cache/schema.ts";
import { startTestApp, type TestApp, until } from "../../support/app.ts";

const freshForMs = 60_000;
/** Every call refreshes from 4 s after the computation on, some from 2 s on. */
const refreshAheadMs = 58_000;
let it: TestApp;

beforeAll(async () => {
  const environment = {
    [freshForVariable]: String(freshForMs),
    [refreshAheadVariable]: String(refreshAheadMs),
  };
  it = await startTestApp({ environment });
});
afterAll(async () => {
  await it?.[Symbol.asyncDispose]();
});

test("a value near its end is given from the cache while later calls carry its refresh on, and nobody computes or waits", async () => {
  const warehouse = `warehouse-${randomUUID()}`;
  const receive = async (sk: string, quantity: number): Promise<void> => {
    const Item = { pk: movementsPartition(warehouse), sk, product: "mug", quantity };
    await it.documents.send(new PutCommand({ TableName: it.app.tableName("StockLevels/Movements"), Item }));
  };
  const ask = async (): Promise<unknown> => {
    const { payload, functionError } = await it.app.invoke("StockLevels/Levels", { warehouse });
    expect(functionError, JSON.stringify(payload)).toBeUndefined();
    return payload;
  };
  await receive("1", 5);
  expect(await ask()).toMatchObject({ source: "computed", value: { mug: 5 } });
  await receive("2", 2);
  // An instance stands still after its answer: its refresh gets as far as later calls wake it.
  await until("the refreshed value", async () => {
    const { source, value } = (await ask()) as { readonly source: string; readonly value: object };
    expect(source).toBe("cache");
    return JSON.stringify(value) === '{"mug":7}';
  });
});
