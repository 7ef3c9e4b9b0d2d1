import { createHash } from "node:crypto";
import { PutCommand } from "@aws-sdk/lib-dynamodb";
import type { LeaseHandle } from "@leasehold/client";
import { attributeNames, waiterSortKeyPrefix } from "@leasehold/client/schema";
import { TaskSet } from "@leasehold/jobs";
import { afterAll, describe, expect, test, vi } from "vitest";
import { taskSetKey } from "../../../functions/claim-tasks/schema.ts";
import { pendingKey, type TransferKind, transferKey } from "../../../functions/import-orders/schema.ts";
import { freshForVariable, movementsPartition } from "../../../functions/resource-cache/schema.ts";
import { leaseTable, type PlainItem, startTestApp, until } from "../../support/app.ts";
import { eventually } from "../../support/patience.ts";
import type { ProxiedRequest } from "../../support/proxy.ts";
import { nextTrigger, Shop } from "../../support/shop.ts";

/** Longer than the first calls of three instances are apart, also on a busy machine. */
const freshForMs = 5_000;
const it = await startTestApp({ environment: { [freshForVariable]: String(freshForMs) } });
afterAll(() => it[Symbol.asyncDispose]());

async function put(tableId: string, Item: PlainItem): Promise<void> {
  await it.documents.send(new PutCommand({ TableName: it.app.tableName(tableId), Item }));
}

/** A task of a worker, whose document may be another one than was announced. */
function task(id: string, announced = id): object {
  return { id, payload: { text: id, sha256: createHash("sha256").update(announced).digest("hex") } };
}

async function answer(id: string, event: unknown): Promise<unknown> {
  const { payload, functionError } = await it.app.invoke(id, event);
  expect(functionError, JSON.stringify(payload)).toBeUndefined();
  return payload;
}

/** Every lease was let go, of locks, of computations and of tasks. */
async function expectNoHolders(): Promise<void> {
  const items = await it.items(leaseTable);
  expect(items.filter((item) => attributeNames.token in item)).toEqual([]);
}

describe("each system, with the environment and the tables of its template", () => {
  test("a cache computes what it lacks once, for however many callers", async () => {
    const pk = movementsPartition("north");
    for (const quantity of [5, 7])
      await put("StockLevels/Movements", { pk, sk: `m${quantity}`, product: "mug", quantity });
    const answers = (await Promise.all(
      Array.from({ length: 3 }, () =>
        answer("StockLevels/Levels", { warehouse: "north", waitMs: 10_000, retry: "fullJitter" }),
      ),
    )) as { readonly value: object; readonly source: string }[];
    expect(answers.map(({ value }) => value)).toEqual(Array(3).fill({ mug: 12 }));
    expect(answers.filter(({ source }) => source === "computed")).toHaveLength(1);
    const retry = { strategy: "random", minDelayMs: 1, maxDelayMs: 2, maxRetries: 3 };
    const refreshed = await answer("StockLevels/Levels", { warehouse: "north", refresh: true, retry });
    expect(refreshed).toMatchObject({ source: "computed" });
    await expectNoHolders();
  });

  test("workers claim each task of a set once between them", async () => {
    const add = ["t0", "t1", "t2", "t4", "t5", "t6", "t7"].map((id) => task(id));
    add.push(task("t3", "something else"));
    expect(await answer("Tasks/Worker", { set: "batch", add })).toEqual({ added: 8, known: 0 });
    const reports = (await Promise.all([
      answer("Tasks/Worker", { set: "batch" }),
      answer("Tasks/Worker", { set: "batch" }),
    ])) as { readonly succeeded: number }[];
    expect(reports.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(7);
    const set = new TaskSet(it.leases, taskSetKey("batch"));
    // The one that fails waits for each of its attempts: the schedule calls for them.
    await eventually(async () => {
      await it.app.fire("Tasks/Restarting");
      expect(await set.counts()).toMatchObject({ waiting: 0, running: 0 });
    }, 200);
    expect(await set.counts()).toEqual({
      waiting: 0,
      running: 0,
      succeeded: 7,
      failed: 1,
      parked: 0,
      cancelled: 0,
    });
    for await (const { id, state, attempts, remark } of set.list()) {
      if (id !== "t3") expect({ id, state, attempts }).toEqual({ id, state: "succeeded", attempts: 1 });
      else expect({ state, attempts, remark }).toMatchObject({ state: "failed", attempts: 3 });
      expect(remark).toContain("SHA-256");
    }
    await expectNoHolders();
  });

  test("a department serves one ticket, queues the others in order, and its schedule cleans", async () => {
    const ask = (action: string, ticket: string) =>
      answer("Tickets/Admission", { action, department: "loans", ticket });
    expect(await ask("enter", "L1")).toMatchObject({ state: "serving", ticket: "L1" });
    expect(await ask("enter", "L2")).toMatchObject({ state: "waiting", ticket: "L2", position: 1 });
    expect(await ask("enter", "L1")).toMatchObject({ state: "serving", ticket: "L1" });
    expect(await ask("next", "L1")).toEqual({ serving: "L2", waiting: 0 });
    await it.app.fire("Tickets/Cleaning");
    expect(await answer("Tickets/Cleaner", {})).toEqual({ agents: 1, removed: 0, isComplete: true });
    expect(await ask("leave", "L2")).toEqual({ state: "absent", ticket: "L2" });
    // The schedule's own run may still be under way: it was only taken.
    await vi.waitFor(expectNoHolders, { timeout: 60_000, interval: 100 });
  });

  test("an import by the function runs under the lock that the workflow takes", async () => {
    await put("Imports/Orders", { ...pendingKey("import", "c1"), orders: [{ orderId: "o1" }] });
    const held = await it.leases.acquire("import-orders");
    expect(await answer("Imports/Transfer", { kind: "import" })).toMatchObject({ result: "skipped" });
    await held.release();
    expect(await answer("Imports/Transfer", { kind: "import" })).toMatchObject({ result: "ran", chunks: 1 });
    await expectNoHolders();
  });
});

test("a caller without a client acquires, renews and releases a lock, handing the lease from one function to the next", async () => {
  const ask = async (name: string, event: object): Promise<LeaseHandle> =>
    (await answer(`LeaseFunctions/${name}`, event)) as LeaseHandle;
  const key = "shared/lock";
  const acquired = await ask("Acquire", { key, owner: "a container", data: { task: 7 } });
  expect(acquired).toMatchObject({ key, owner: "a container", tableName: it.app.tableName(leaseTable) });
  expect(await it.leases.inspect(key)).toMatchObject({ token: acquired.token, data: { task: 7 } });
  const renewed = await ask("Renew", { lease: acquired });
  expect(renewed).toMatchObject({ token: acquired.token, fencingToken: acquired.fencingToken });
  expect(renewed.version).toBeGreaterThan(acquired.version);
  expect(await ask("Release", { lease: renewed })).toEqual({ released: true });
  const next = await ask("Acquire", { key });
  expect(next.fencingToken).toBeGreaterThan(acquired.fencingToken);
  // The same answer again, even if another caller has the lock now.
  expect(await ask("Release", { lease: renewed })).toEqual({ released: true });
  expect(await it.leases.adopt(next).release()).toBe(true);
});

test("a system refuses what it does not understand by name, and changes nothing", async () => {
  const tableName = it.app.tableName(leaseTable);
  await using held = await it.leases.acquire(transferKey);
  const handle = { ...held.toJSON(), tableName: "elsewhere" };
  const tables = it.app.tables.map(({ name }) => name);
  const before = await Promise.all(tables.map((name) => it.items(name)));
  const systems = ["StockLevels/Levels", "Tasks/Worker", "Tickets/Admission", "Imports/Transfer"];
  const odd: [id: string, event: unknown, errorType?: string][] = [
    ...systems.flatMap((id) =>
      [null, {}, { unheardOf: true }].map((event) => [id, event] as [string, object]),
    ),
    ["UnpaidOrders/Close", {}],
    ["UnpaidOrders/Report", { action: "missed", since: "yesterday" }],
    ["Tasks/Worker", { set: "s", add: [{ id: "a", payload: 1, due: 1 }] }],
    ["LeaseFunctions/Acquire", { key: "close-unpaid-orders" }, "KeyNotAllowedError"],
    ["LeaseFunctions/Renew", { lease: { ...handle, tableName } }, "KeyNotAllowedError"],
    ["LeaseFunctions/Release", { lease: handle }],
  ];
  for (const [id, event, errorType = "InvalidOptionsError"] of odd) {
    const { payload } = await it.app.invoke(id, event);
    expect(payload, `${id} ${JSON.stringify(event)}`).toMatchObject({ errorType });
  }
  expect(await Promise.all(tables.map((name) => it.items(name)))).toEqual(before);
});

/** Whether a request is of those that follow a release through the table's stream, to wake a parked waiter. */
function isOfTheStream({ headers, body }: ProxiedRequest): boolean {
  const isPolling = headers["x-amz-target"]?.startsWith("DynamoDBStreams") ?? false;
  return isPolling || JSON.stringify(body).includes(waiterSortKeyPrefix);
}

/** The operations of one invocation, in their order. What a schedule has begun before is over by then. */
async function operations(id: string, event: object): Promise<readonly string[]> {
  const isQuiet = (scheduled: string) =>
    it.app.environments(scheduled).every(({ state }) => state === "idle");
  await until("the schedules' calls", () => ["Tasks/Restart", "Tickets/Cleaner"].every(isQuiet));
  it.proxy.reset();
  await answer(id, event);
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
  const add = Array.from({ length: 20 }, (_, index) => task(`${index}`));
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
