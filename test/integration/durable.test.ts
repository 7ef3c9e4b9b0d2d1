/** Durable leases on a real table, and the example's function. */
import { type DurableContext, withDurableExecution } from "@aws/durable-execution-sdk-js";
import { LocalDurableTestRunner, WaitingOperationStatus } from "@aws/durable-execution-sdk-js-testing";
import { withDurableLease } from "@leasehold/durable";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { type RefundRequest, refund } from "../../functions/refund-order/refund.ts";
import { parkedWaiters } from "../../packages/cdk/wake/parked-waiters.ts";
import { adminOf } from "../support/admin.ts";
import { SuspendableRunner } from "../support/durable-runner.ts";
import { makeTable, type TestTable } from "../support/table.ts";
import { makeSystemTables, type SystemTables } from "./functions-tables.ts";

let table: TestTable;
let system: SystemTables;

beforeAll(async () => {
  await LocalDurableTestRunner.setupTestEnvironment();
  table = await makeTable(inject("engine"));
  system = await makeSystemTables();
});
afterAll(async () => {
  await LocalDurableTestRunner.teardownTestEnvironment();
  table?.close();
  system?.close();
});

describe("a waiting durable function", () => {
  test("is parked in the table with its callback, first come first, until it is taken off", async () => {
    const key = table.newKey();
    const holder = await table.client().acquire(key);
    const handler = withDurableExecution(
      async (_: unknown, context: DurableContext) =>
        await withDurableLease(context, table.client(), key, { waitMs: 60_000 }, async (lease, own) => {
          return await own.step("work", async () => lease.fencingToken);
        }),
    );
    const runner = new SuspendableRunner(handler);
    const running = runner.run();
    const parked = runner.getOperation("lease:wait");
    await parked.waitForData(WaitingOperationStatus.SUBMITTED);
    await runner.suspended();

    const waiters = parkedWaiters(table.dynamodb, table.tableName);
    const waiter = await waiters.oldest(key);
    expect(waiter).toEqual({
      key: { pk: key, sk: expect.stringMatching(/^waiter#\d+#.+#/) },
      callbackId: expect.any(String),
    });
    if (waiter === undefined) throw new Error("nobody has parked");
    await waiters.remove({ ...waiter, callbackId: "another one" });
    expect(await waiters.oldest(key)).toEqual(waiter);
    await waiters.remove(waiter);
    expect(await waiters.oldest(key)).toBeUndefined();

    await holder.release();
    await parked.sendCallbackSuccess("{}");
    const run = await running;
    expect(run.getStatus()).toBe("SUCCEEDED");
    expect(run.getResult()).toBeGreaterThan(holder.fencingToken);
    expect(await table.client().inspect(key)).toBeUndefined();
  });
});

describe("the refunding of an order", () => {
  function refunding(): SuspendableRunner {
    const desk = {
      leases: system.leases.client(),
      dynamodb: system.leases.dynamodb,
      ordersTable: system.tableName,
    };
    const handlerFunction = withDurableExecution((event: RefundRequest, context) =>
      refund(desk, event, context),
    );
    return new SuspendableRunner(handlerFunction);
  }

  test("holds the order until somebody has decided, and then writes under the lease's fence", async () => {
    const runner = refunding();
    const running = runner.run({ payload: { orderId: "1", amount: 12 } });
    const decision = runner.getOperation("decision");
    await decision.waitForData(WaitingOperationStatus.SUBMITTED);
    await runner.suspended();
    const held = await system.leases.client().inspect("order/1");
    expect(await system.items()).toMatchObject({
      "1/order": { decision: decision.getCallbackDetails()?.callbackId, fence: held?.fencingToken },
    });
    await decision.sendCallbackSuccess("agreed");
    expect((await running).getResult()).toEqual({ state: "refunded" });
    expect(await system.items()).toMatchObject({ "1/order": { refunded: 12 } });
    expect(await system.leases.client().inspect("order/1")).toBeUndefined();
  });

  test("does nothing more where the lease was lost while it waited", async () => {
    const runner = refunding();
    const running = runner.run({ payload: { orderId: "2", amount: 12 } });
    const decision = runner.getOperation("decision");
    await decision.waitForData(WaitingOperationStatus.SUBMITTED);
    await runner.suspended();
    const operator = system.leases.client();
    const { token = "" } = (await operator.inspect("order/2")) ?? {};
    await adminOf(operator).forceRelease("order/2", { token });
    const other = await operator.acquire("order/2");
    await decision.sendCallbackSuccess("agreed");
    const run = await running;
    expect(run.getStatus()).toBe("FAILED");
    expect(run.getError()).toMatchObject({ errorType: "LeaseLostError" });
    expect((await system.items())["2/order"]).not.toHaveProperty("refunded");
    expect((await operator.inspect("order/2"))?.token).toBe(other.token);
  });
});
