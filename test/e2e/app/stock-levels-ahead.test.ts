// @module-tag long
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  cacheKeyPrefix,
  freshForVariable,
  movementsPartition,
  refreshAheadVariable,
} from "../../../functions/resource-cache/schema.ts";
import { cacheSortKey } from "../../../packages/client/src/primitives/single-flight/entry.ts";
import { startTestApp, type TestApp, until } from "../../support/app.ts";
import type { Matcher } from "../../support/proxy.ts";
import { hold } from "../../support/proxy-behaviours.ts";

const freshForMs = 60_000;
/** Every call refreshes from 4 s after the computation on, some from 2 s on. */
const refreshAheadMs = 58_000;
/** The system's own, with the allowance for clocks. */
const pastLeaseMs = 12_000;
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

test("a refresh ahead stands still with its instance after the answer; beyond its lease the next call makes it anew, and nobody waits", async () => {
  const warehouse = `warehouse-${randomUUID()}`;
  const receive = async (sk: string, quantity: number): Promise<void> => {
    const Item = { pk: movementsPartition(warehouse), sk, product: "mug", quantity };
    await it.documents.send(new PutCommand({ TableName: it.app.tableName("StockLevels/Movements"), Item }));
  };
  const ask = async (): Promise<{ readonly source: string; readonly value: unknown }> => {
    const askedAt = performance.now();
    const { payload, functionError } = await it.app.invoke("StockLevels/Levels", { warehouse });
    expect(functionError, JSON.stringify(payload)).toBeUndefined();
    expect(performance.now() - askedAt).toBeLessThan(10_000);
    return payload as { readonly source: string; readonly value: unknown };
  };
  const computes: Matcher = ({ operation, body }) =>
    operation === "Query" && JSON.stringify(body).includes(`"${movementsPartition(warehouse)}"`);
  const stores: Matcher = ({ operation, body }) =>
    operation === "UpdateItem" &&
    body.Key.pk.S === cacheKeyPrefix + warehouse &&
    body.Key.sk.S === cacheSortKey;

  await receive("1", 5);
  expect(await ask()).toMatchObject({ source: "computed", value: { mug: 5 } });
  await receive("2", 2);
  await delay(freshForMs - refreshAheadMs / 2);
  const query = hold();
  it.proxy.reset();
  it.proxy.next(computes, query);
  // Its refresh gets as far as later calls wake the instance.
  await until("the query of a refresh", async () => {
    expect(await ask()).toMatchObject({ source: "cache", value: { mug: 5 } });
    return it.proxy.requests.some(computes);
  });
  await delay(pastLeaseMs);
  let latest = await ask();
  expect(latest).toMatchObject({ source: "cache", value: { mug: 5 } });
  await until("the refreshed value", async () => {
    latest = await ask();
    expect(latest.source).toBe("cache");
    return it.proxy.requests.filter(stores).length > 0 && JSON.stringify(latest.value) !== '{"mug":5}';
  });
  expect(latest.value).toEqual({ mug: 7 });
  await query.letGo();
  expect(await ask()).toMatchObject({ source: "cache", value: { mug: 7 } });
}, 120_000);
