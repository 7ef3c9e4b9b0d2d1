import { createHash } from "node:crypto";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import { afterAll, beforeAll, expect, test } from "vitest";
import { pendingKey, type TransferKind, transferKey } from "../../../functions/import-orders/schema.ts";
import { freshForVariable, movementsPartition } from "../../../functions/resource-cache/schema.ts";
import { waiterSortKeyPrefix } from "../../../packages/client/src/base/schema.ts";
import { type PlainItem, startTestApp, type TestApp } from "../../support/app.ts";
import type { ProxiedRequest } from "../../support/proxy.ts";
import { nextTrigger, Shop } from "../../support/shop.ts";

const freshForMs = 1_000;
let it: TestApp;

beforeAll(async () => {
  it = await startTestApp({ environment: { [freshForVariable]: String(freshForMs) } });
});
afterAll(async () => {
  await it?.[Symbol.asyncDispose]();
});

async function put(tableId: string, Item: PlainItem): Promise<void> {
  await it.documents.send(new PutCommand({ TableName: it.app.tableName(tableId), Item }));
}

/** Whether a request is of those that follow a release through the table's stream, for whoever is parked. */
function isOfTheStream({ headers, body }: ProxiedRequest): boolean {
  const isPolling = headers["x-amz-target"]?.startsWith("DynamoDBStreams") ?? false;
  return isPolling || JSON.stringify(body).includes(waiterSortKeyPrefix);
}

/** The operations of one invocation, in their order. */
async function operations(id: string, event: object): Promise<readonly string[]> {
  it.proxy.reset();
  const { payload, functionError } = await it.app.invoke(id, event);
  expect(functionError, JSON.stringify(payload)).toBeUndefined();
  return it.proxy.requests.filter((request) => !isOfTheStream(request)).map(({ operation }) => operation);
}

test("an import asks for 4 requests, the lock's and the run history's, and 3 for each chunk, and 1 to see that nothing is left; an export for 1 more a chunk; one that is skipped for 1", async () => {
  const add = (kind: TransferKind, chunk: string, content: object): Promise<void> =>
    put("Imports/Orders", { ...pendingKey(kind, chunk), ...content });
  for (const chunk of ["c1", "c2"]) {
    await add("import", chunk, { orders: [{ orderId: chunk, product: "mug", quantity: 1 }] });
  }
  await add("export", "c1", { orderIds: ["c1", "c2"] });
  const chunk = ["Query", "GetItem", "TransactWriteItems"];
  expect(await operations("Imports/Transfer", { kind: "import" })).toEqual([
    "UpdateItem",
    "UpdateItem",
    ...chunk,
    ...chunk,
    "Query",
    "UpdateItem",
    "UpdateItem",
  ]);
  expect(await operations("Imports/Transfer", { kind: "export" })).toEqual([
    "UpdateItem",
    "UpdateItem",
    "Query",
    "GetItem",
    "BatchGetItem",
    "TransactWriteItems",
    "Query",
    "UpdateItem",
    "UpdateItem",
  ]);
  await using _other = await it.leases.acquire(transferKey);
  expect(await operations("Imports/Transfer", { kind: "import" })).toEqual(["UpdateItem"]);
});

test("stock levels cost 1 request where they are there, 5 and the computation's where they are not, and 4 where they are too old", async () => {
  const pk = movementsPartition("counted");
  await put("StockLevels/Movements", { pk, sk: "1", product: "mug", quantity: 1 });
  const ask = (): Promise<readonly string[]> => operations("StockLevels/Levels", { warehouse: "counted" });
  expect(await ask()).toEqual(["GetItem", "UpdateItem", "GetItem", "Query", "UpdateItem", "UpdateItem"]);
  expect(await ask()).toEqual(["GetItem"]);
  await new Promise((resolve) => setTimeout(resolve, freshForMs));
  expect(await ask()).toEqual(["GetItem", "UpdateItem", "Query", "UpdateItem", "UpdateItem"]);
});

test("a tick that closes orders costs the lock and the run, twice each, a query, and a transaction for each order; the same trigger again costs 1", async () => {
  await Shop.open(it, 2);
  const trigger = nextTrigger();
  expect(await operations("UnpaidOrders/Close", trigger)).toEqual([
    ...["UpdateItem", "UpdateItem"],
    ...["Query", "TransactWriteItems", "TransactWriteItems"],
    ...["UpdateItem", "UpdateItem"],
  ]);
  expect(await operations("UnpaidOrders/Close", trigger)).toEqual(["UpdateItem"]);
});

test("a task costs a claim and an ending, and looks that it shares; adding costs 1 for fifty, and 1 for the register", async () => {
  const add = Array.from({ length: 20 }, (_, index) => {
    const text = `${index}`;
    return { id: text, payload: { text, sha256: createHash("sha256").update(text).digest("hex") } };
  });
  expect(await operations("Tasks/Worker", { set: "counted", add })).toEqual([
    "TransactWriteItems",
    "PutItem",
  ]);
  const work = await operations("Tasks/Worker", { set: "counted" });
  expect(work.filter((operation) => operation === "UpdateItem")).toHaveLength(20);
  expect(work.filter((operation) => operation === "TransactWriteItems")).toHaveLength(20);
  // Where it looks is a matter of chance: 3 to 8 looks.
  expect(work.length).toBeLessThanOrEqual(50);
});

test("a look at a department with one agent costs 3 reads, and each event begins with one; a call costs 3 looks and 5 writes", async () => {
  const ask = (action: string, ticket: string): Promise<readonly string[]> =>
    operations("Tickets/Admission", { action, department: "counted", ticket });
  const look = ["GetItem", "GetItem", "GetItem"];
  const checkIn = ["GetItem", "UpdateItem"];
  const endOrRenewal = ["GetItem", "UpdateItem", "UpdateItem"];
  expect(await ask("heartbeat", "a")).toEqual(look);
  expect(await ask("enter", "a")).toEqual([...look, "TransactWriteItems"]);
  for (const ticket of ["b", "c"]) expect(await ask("enter", ticket)).toEqual([...look, ...checkIn, ...look]);
  expect(await ask("heartbeat", "a")).toEqual([...look, ...endOrRenewal]);
  expect(await ask("heartbeat", "b")).toEqual([...look, ...checkIn]);
  const call = [...look, "TransactWriteItems", ...checkIn, ...look];
  expect(await ask("next", "a")).toEqual([...look, ...endOrRenewal, ...call]);
  expect(await operations("Tickets/Admission", { action: "look", department: "counted" })).toEqual(look);
  expect(await ask("leave", "b")).toEqual([...look, ...endOrRenewal]);
  expect(await ask("leave", "c")).toEqual([...look, ...checkIn]);
});
