import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { createLeaseTable, LeaseClient } from "@leasehold/client";
import { afterAll, beforeEach, describe, expect, inject, it } from "vitest";
import {
  type CloseUnpaidOrders,
  closeUnpaidOrders,
  closeUnpaidOrdersKey,
} from "../../functions/close-unpaid-orders/job.ts";
import { type Order, OrderBook } from "../../functions/close-unpaid-orders/orders.ts";
import { createShopTable, readShop, seedShop } from "../../functions/close-unpaid-orders/shop-table.ts";

const now = Date.parse("2026-03-01T12:00:00Z");
const late: Order = { orderId: "late", product: "mug", quantity: 2, dueAt: now - 2 };
const later: Order = { orderId: "later", product: "mug", quantity: 3, dueAt: now - 1 };
const dueNow: Order = { orderId: "due-now", product: "mug", quantity: 5, dueAt: now };

const dynamodb = new DynamoDBClient(inject("engine").clientConfig);
const documents = DynamoDBDocumentClient.from(dynamodb);
let leaseTable: string;
let shopTable: string;
let orders: OrderBook;

function instance(owner: string, options: Partial<CloseUnpaidOrders> = {}): CloseUnpaidOrders {
  const leases = new LeaseClient({ tableName: leaseTable, dynamodb: documents, owner });
  return { leases, orders, leaseDurationMs: 10_000, lockAtLeastForMs: 0, ...options };
}

async function closedBy(): Promise<Record<string, string>> {
  const { closed } = await readShop(documents, shopTable);
  return Object.fromEntries(closed.map((order) => [order.orderId, order.closedBy]));
}

describe("the job that closes unpaid orders", () => {
  beforeEach(async () => {
    const suffix = crypto.randomUUID();
    leaseTable = `leases-${suffix}`;
    shopTable = `shop-${suffix}`;
    await createLeaseTable({ tableName: leaseTable, dynamodb });
    await createShopTable(dynamodb, shopTable);
    await seedShop(documents, shopTable, { open: [dueNow, later, late], paid: [], stock: { mug: 10 } });
    orders = new OrderBook(documents, shopTable);
  });
  afterAll(() => dynamodb.destroy());

  it("closes what is overdue, the longest overdue first, and gives the stock back", async () => {
    const order: string[] = [];
    const a = instance("A", {
      beforeClose: async ({ orderId }) => {
        order.push(orderId);
      },
    });
    expect(await closeUnpaidOrders(a, now)).toMatchObject({ result: "ran", closed: 2 });
    expect(order).toEqual(["late", "later"]);
    expect(await closedBy()).toEqual({ late: "A", later: "A" });
    const { open, stock } = await readShop(documents, shopTable);
    expect(open.map(({ orderId }) => orderId)).toEqual(["due-now"]);
    expect(stock).toEqual({ mug: 15 });
  });

  it("skips while another instance runs, and names it", async () => {
    await instance("A").leases.acquire(closeUnpaidOrdersKey);
    expect(await closeUnpaidOrders(instance("B"), now)).toMatchObject({ result: "skipped", holder: "A" });
    expect(await closedBy()).toEqual({});
  });

  it("skips when the trigger comes again after a run that was short", async () => {
    const a = instance("A", { lockAtLeastForMs: 10_000 });
    expect(await closeUnpaidOrders(a, now)).toMatchObject({ result: "ran" });
    expect(await closeUnpaidOrders(a, now)).toMatchObject({ result: "skipped", holder: "A" });
    expect(await closeUnpaidOrders(instance("B"), now)).toMatchObject({ result: "skipped", holder: "A" });
  });

  it("writes nothing when its lease goes between its check and the write, and leaves the rest to the next run", async () => {
    const a = instance("A", {
      beforeClose: async ({ orderId }, { key, token }) => {
        if (orderId === "later") await instance("operator").leases.forceRelease(key, { token });
      },
    });
    expect(await closeUnpaidOrders(a, now)).toMatchObject({ result: "lost", closed: 1, fencedOff: "later" });
    expect(await closedBy()).toEqual({ late: "A" });

    expect(await closeUnpaidOrders(instance("B"), now)).toMatchObject({ result: "ran", closed: 1 });
    expect(await closedBy()).toEqual({ late: "A", later: "B" });
    expect((await readShop(documents, shopTable)).stock).toEqual({ mug: 15 });
  });

  it("leaves an order alone that was closed in the meantime", async () => {
    await using lease = await instance("A").leases.acquire(closeUnpaidOrdersKey);
    expect(await orders.close(late, lease)).toBe("closed");
    expect(await orders.close(late, lease)).toBe("notOpen");
    const { closed, stock } = await readShop(documents, shopTable);
    expect(closed).toMatchObject([{ orderId: "late", closings: 1 }]);
    expect(stock).toEqual({ mug: 12 });
  });

  it("lets the lock go when an order cannot be closed", async () => {
    await seedShop(documents, shopTable, {
      open: [{ ...late, orderId: "odd", product: "unknown" }],
      paid: [],
      stock: {},
    });
    const a = instance("A");
    await expect(closeUnpaidOrders(a, now)).rejects.toThrow(/ConditionalCheckFailed/);
    expect(await a.leases.inspect(closeUnpaidOrdersKey)).toBeUndefined();
  });
});
