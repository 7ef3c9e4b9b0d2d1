import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient, PutCommand } from "@aws-sdk/lib-dynamodb";
import { createLeaseTable, type Lease, LeaseClient } from "@leasehold/client";
import { afterAll, beforeEach, describe, expect, inject, it } from "vitest";
import {
  type CloseUnpaidOrders,
  closeOrdersUnder,
  closeUnpaidOrdersKey,
  type JobOutcome,
} from "../../functions/close-unpaid-orders/job.ts";
import { type FoundOrder, type Order, OrderBook } from "../../functions/close-unpaid-orders/orders.ts";
import { readShop, seedShop } from "../../functions/close-unpaid-orders/shop-table.ts";
import { adminOf } from "../support/admin.ts";

const now = Date.parse("2026-03-01T12:00:00Z");
const mugs = (quantity: number): Order["lines"] => [{ product: "mug", quantity }];
/** An item each of so many products. */
const products = (count: number): Order["lines"] =>
  Array.from({ length: count }, (_, index) => ({ product: `p${index}`, quantity: 1 }));
const late: Order = { orderId: "late", lines: mugs(2), dueAt: now - 2 };
const later: Order = { orderId: "later", lines: mugs(3), dueAt: now - 1 };
const dueNow: Order = { orderId: "due-now", lines: mugs(5), dueAt: now };

const dynamodb = new DynamoDBClient(inject("engine").clientConfig);
const documents = DynamoDBDocumentClient.from(dynamodb);
let leaseTable: string;
let shopTable: string;
let orders: OrderBook;

function leasesOf(owner: string): LeaseClient {
  return new LeaseClient({ tableName: leaseTable, dynamodb: documents, owner });
}

/** A run of the job by an instance that gets the lock. */
async function runAs(owner: string, options: Partial<CloseUnpaidOrders> = {}): Promise<JobOutcome> {
  await using lease = await leasesOf(owner).acquire(closeUnpaidOrdersKey, { leaseDurationMs: 10_000 });
  return await closeOrdersUnder(lease, { orders, remainingMs: () => 60_000, ...options }, now);
}

async function parkedProblems(): Promise<Record<string, string>> {
  const parked = await orders.parked(100);
  return Object.fromEntries(parked.map(({ orderId, problem }) => [orderId, problem]));
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
    // The same key.
    await createLeaseTable({ tableName: shopTable, dynamodb });
    await seedShop(documents, shopTable, { open: [dueNow, later, late], paid: [], stock: { mug: 10 } });
    orders = new OrderBook(documents, shopTable);
  });
  afterAll(() => dynamodb.destroy());

  it("closes what is overdue, the longest overdue first, and gives the stock back", async () => {
    const order: string[] = [];
    const beforeClose = async ({ orderId }: FoundOrder): Promise<void> => void order.push(orderId);
    expect(await runAs("A", { beforeClose })).toMatchObject({ result: "ran", closed: 2 });
    expect(order).toEqual(["late", "later"]);
    expect(await closedBy()).toEqual({ late: "A", later: "A" });
    const { open, stock } = await readShop(documents, shopTable);
    expect(open.map(({ orderId }) => orderId)).toEqual(["due-now"]);
    expect(stock).toEqual({ mug: 15 });
  });

  it("writes nothing when its lease goes between its check and the write, and leaves the rest to the next run", async () => {
    const beforeClose = async ({ orderId }: FoundOrder, { key, token }: Lease): Promise<void> => {
      if (orderId === "later") await adminOf(leasesOf("operator")).forceRelease(key, { token });
    };
    expect(await runAs("A", { beforeClose })).toMatchObject({
      result: "lost",
      closed: 1,
      fencedOff: "later",
    });
    expect(await closedBy()).toEqual({ late: "A" });

    expect(await runAs("B")).toMatchObject({ result: "ran", closed: 1 });
    expect(await closedBy()).toEqual({ late: "A", later: "B" });
    expect((await readShop(documents, shopTable)).stock).toEqual({ mug: 15 });
  });

  it("leaves an order alone that was closed in the meantime, and says first that the lease is gone", async () => {
    const lease = await leasesOf("A").acquire(closeUnpaidOrdersKey);
    const remainingMs = (): number => 60_000;
    for await (const first of orders.unpaid(now)) {
      expect(await orders.close(first, lease, remainingMs)).toBe("closed");
      expect(await orders.close(first, lease, remainingMs)).toBe("notOpen");
      await lease.release();
      expect(await orders.close(first, lease, remainingMs)).toBe("fencedOff");
      break;
    }
    const { closed, stock } = await readShop(documents, shopTable);
    expect(closed).toMatchObject([{ orderId: "late", closings: 1 }]);
    expect(stock).toEqual({ mug: 12 });
  });

  it("gives back all products of an order in one transaction: those of several lines, and as many as go into it", async () => {
    const lines = [
      { product: "mug", quantity: 1 },
      { product: "lamp", quantity: 4 },
      { product: "mug", quantity: 2 },
    ];
    const stock = Object.fromEntries(products(97).map(({ product }) => [product, 0]));
    await seedShop(documents, shopTable, {
      open: [
        { orderId: "mixed", lines, dueAt: now - 3 },
        { orderId: "many", lines: products(97), dueAt: now - 3 },
      ],
      paid: [],
      stock: { lamp: 1, ...stock },
    });
    expect(await runAs("A")).toMatchObject({ result: "ran", closed: 4, parked: 0 });
    const shop = await readShop(documents, shopTable);
    expect(shop.stock).toMatchObject({ mug: 18, lamp: 5, p0: 1, p96: 1 });
    expect(shop.closed.find(({ orderId }) => orderId === "mixed")).toMatchObject({ lines, closings: 1 });
  });

  describe("an order that cannot be closed", () => {
    const write = (sk: string, attributes: object): Promise<unknown> =>
      documents.send(
        new PutCommand({ TableName: shopTable, Item: { ...attributes, pk: "orders#open", sk } }),
      );
    const first = new Date(now - 10).toISOString();

    it("is parked with its reason, and the others are closed", async () => {
      const oddOrders: [string, object, RegExp][] = [
        ["no stock", { lines: [{ product: "unknown", quantity: 1 }] }, /"unknown" has no stock item/],
        ["stock of no number", { lines: [{ product: "cup", quantity: 1 }] }, /"cup" has no stock item/],
        ["no lines", {}, /lines/],
        ["an empty list", { lines: [] }, /lines/],
        ["lines that are none", { lines: [{ product: "mug" }] }, /quantity/],
        ["a quantity below 1", { lines: [{ product: "mug", quantity: -1 }] }, /quantity/],
        ["a product without a name", { lines: [{ product: "", quantity: 1 }] }, /product/],
        ["too many products", { lines: products(98) }, /98 products/],
      ];
      const cups = { pk: "stock", sk: "cup", available: "many" };
      await documents.send(new PutCommand({ TableName: shopTable, Item: cups }));
      for (const [orderId, attributes] of oddOrders)
        await write(`${first}#${orderId}`, { orderId, dueAt: now - 10, ...attributes });
      await write(`${first}#hardly`, { anything: "else" });

      expect(await runAs("A")).toMatchObject({ result: "ran", closed: 2, parked: oddOrders.length + 1 });
      expect(await closedBy()).toEqual({ late: "A", later: "A" });
      const { open, stock } = await readShop(documents, shopTable);
      expect(open.map(({ orderId }) => orderId)).toEqual(["due-now"]);
      expect(stock).toMatchObject({ mug: 15 });
      expect(await parkedProblems()).toEqual({
        ...Object.fromEntries(oddOrders.map(([id, , reason]) => [id, expect.stringMatching(reason)])),
        [`${first}#hardly`]: expect.stringContaining("orderId"),
      });
      // They are out of the way: the next run does not come to them.
      expect(await runAs("A")).toMatchObject({ closed: 0, parked: 0 });
    });

    it("for one product without stock gives the others back at once, and its own line later", async () => {
      const lines = [
        { product: "mug", quantity: 4 },
        { product: "lamp", quantity: 2 },
        { product: "mug", quantity: 1 },
      ];
      await write(`${first}#odd`, { orderId: "odd", dueAt: now - 10, lines, customer: "c-1" });
      expect(await runAs("A")).toMatchObject({ closed: 2, parked: 1 });
      expect((await readShop(documents, shopTable)).stock).toEqual({ mug: 20 });
      const [parked] = await orders.parked(10);
      expect(parked?.problem).toMatch(/"lamp" has no stock item/);

      await seedShop(documents, shopTable, { open: [], paid: [], stock: { lamp: 7 } });
      expect(await orders.putBack(parked?.id ?? "", () => 60_000)).toBe(true);
      expect(await orders.putBack(parked?.id ?? "", () => 60_000)).toBe(false);
      expect(await orders.parked(10)).toEqual([]);
      expect((await readShop(documents, shopTable)).open).toContainEqual(
        expect.objectContaining({
          orderId: "odd",
          customer: "c-1",
          lines: [{ product: "lamp", quantity: 2 }],
          returnedLines: [lines[0], lines[2]],
        }),
      );
      expect(await runAs("A")).toMatchObject({ closed: 1, parked: 0 });
      expect((await readShop(documents, shopTable)).stock).toEqual({ mug: 20, lamp: 9 });
    });

    it("is not parked where the lease is gone, and none of its stock is given back", async () => {
      const lines = [...mugs(4), { product: "lamp", quantity: 2 }];
      await write(`${first}#1`, { orderId: "no-stock", dueAt: now - 10, lines });
      await write(`${first}#2`, { orderId: "no-lines" });
      const lease = await leasesOf("A").acquire(closeUnpaidOrdersKey, { leaseDurationMs: 10_000 });
      await lease.release();
      for await (const found of orders.unpaid(now)) {
        expect(await orders.close(found, lease, () => 60_000)).toBe("fencedOff");
      }
      const { open, stock } = await readShop(documents, shopTable);
      expect(open).toHaveLength(5);
      expect(stock).toEqual({ mug: 10 });
      expect(await orders.parked(10)).toEqual([]);
    });
  });
});
