import { createHash } from "node:crypto";
import { BatchWriteCommand } from "@aws-sdk/lib-dynamodb";
import { attributeNames } from "@leasehold/client/schema";
import { TaskSet } from "@leasehold/jobs";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { taskSetKey } from "../../../functions/claim-tasks/schema.ts";
import { pendingKey } from "../../../functions/import-orders/schema.ts";
import { movementsPartition } from "../../../functions/resource-cache/schema.ts";
import { leaseTable, type PlainItem, startTestApp, type TestApp } from "../../support/app.ts";
import { eventually } from "../../support/patience.ts";

let it: TestApp;

beforeAll(async () => {
  it = await startTestApp();
});
afterAll(async () => {
  await it?.[Symbol.asyncDispose]();
});

async function put(tableId: string, items: readonly PlainItem[]): Promise<void> {
  const requests = items.map((Item) => ({ PutRequest: { Item } }));
  await it.documents.send(new BatchWriteCommand({ RequestItems: { [it.app.tableName(tableId)]: requests } }));
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
    await put(
      "StockLevels/Movements",
      [5, 7].map((quantity, index) => ({ pk, sk: `m${index}`, product: "mug", quantity })),
    );
    const answers = (await Promise.all(
      Array.from({ length: 3 }, () =>
        answer("StockLevels/Levels", { warehouse: "north", waitMs: 10_000, retry: "fullJitter" }),
      ),
    )) as { readonly value: object; readonly source: string }[];
    expect(answers.map(({ value }) => value)).toEqual(Array(3).fill({ mug: 12 }));
    expect(answers.filter(({ source }) => source === "computed")).toHaveLength(1);
    await expectNoHolders();
  });

  test("workers claim each task of a set once between them", async () => {
    const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");
    const add = Array.from({ length: 8 }, (_, index) => ({
      id: `t${index}`,
      payload: { text: `${index}`, sha256: sha256(index === 3 ? "something else" : `${index}`) },
    }));
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
    const orders = [{ orderId: "o1", product: "mug", quantity: 1 }];
    await put("Imports/Orders", [{ ...pendingKey("import", "c1"), orders }]);
    const held = await it.leases.acquire("import-orders");
    expect(await answer("Imports/Transfer", { kind: "import" })).toMatchObject({ result: "skipped" });
    await held.release();
    expect(await answer("Imports/Transfer", { kind: "import" })).toMatchObject({ result: "ran", chunks: 1 });
    await expectNoHolders();
  });
});

test("a system refuses what it does not understand by name, and changes nothing", async () => {
  const tables = it.app.tables.map(({ name }) => name);
  const before = await Promise.all(tables.map((name) => it.items(name)));
  for (const id of ["StockLevels/Levels", "Tasks/Worker", "Tickets/Admission", "Imports/Transfer"]) {
    for (const event of [null, {}, { unheardOf: true }]) {
      const { payload } = await it.app.invoke(id, event);
      expect(payload, `${id} ${JSON.stringify(event)}`).toMatchObject({ errorType: "InvalidOptionsError" });
    }
  }
  expect(await Promise.all(tables.map((name) => it.items(name)))).toEqual(before);
});
