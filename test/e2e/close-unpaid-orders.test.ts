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
import { ParkedOrders } from "../../functions/close-unpaid-orders/report.ts";
import { createShopTable, readShop, seedShop } from "../../functions/close-unpaid-orders/shop-table.ts";
import { adminOf } from "../support/admin.ts";

const now = Date.parse("2026-03-01T12:00:00Z");
const mugs = (quantity: number): Order["lines"] => [{ product: "mug", quantity }];
const late: Order = { orderId: "late", lines: mugs(2), dueAt: now - 2 };
const later: Order = { orderId: "later", lines: mugs(3), dueAt: now - 1 };
const dueNow: Order = { orderId: "due-now", lines: mugs(5), dueAt: now };

const dynamodb = new DynamoDBClient(inject("engine").clientConfig);
const documents = DynamoDBDocumentClient.from(dynamodb);
let leaseTable: string;
let shopTable: string;
let orders: OrderBook;
let parkedOrders: ParkedOrders;

function leasesOf(owner: string): LeaseClient {
  return new LeaseClient({ tableName: leaseTable, dynamodb: documents, owner });
}

/** A run of the job by an instance that gets the lock. */
async function runAs(owner: string, options: Partial<CloseUnpaidOrders> = {}): Promise<JobOutcome> {
  await using lease = await leasesOf(owner).acquire(closeUnpaidOrdersKey, { leaseDurationMs: 10_000 });
  return await closeOrdersUnder(lease, { orders, remainingMs: () => 60_000, ...options }, now);
}

async function parkedProblems(): Promise<Record<string, string>> {
  const parked = await parkedOrders.list(100);
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
    await createShopTable(dynamodb, shopTable);
    await seedShop(documents, shopTable, { open: [dueNow, later, late], paid: [], stock: { mug: 10 } });
    orders = new OrderBook(documents, shopTable);
    parkedOrders = new ParkedOrders(documents, shopTable);
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

  it("leaves an order alone that was closed in the meantime", async () => {
    await using lease = await leasesOf("A").acquire(closeUnpaidOrdersKey);
    const remainingMs = (): number => 60_000;
    for await (const first of orders.unpaid(now)) {
      expect(await orders.close(first, lease, remainingMs)).toBe("closed");
      expect(await orders.close(first, lease, remainingMs)).toBe("notOpen");
      break;
    }
    const { closed, stock } = await readShop(documents, shopTable);
    expect(closed).toMatchObject([{ orderId: "late", closings: 1 }]);
    expect(stock).toEqual({ mug: 12 });
  });

  it("gives back all products of an order in one transaction, also where a product comes in several lines", async () => {
    const lines = [
      { product: "mug", quantity: 1 },
      { product: "lamp", quantity: 4 },
      { product: "mug", quantity: 2 },
    ];
    await seedShop(documents, shopTable, {
      open: [{ orderId: "mixed", lines, dueAt: now - 3 }],
      paid: [],
      stock: { lamp: 1 },
    });
    expect(await runAs("A")).toMatchObject({
      result: "ran",
      closed: 3,
      parked: 0,
    });
    const { closed, stock } = await readShop(documents, shopTable);
    expect(stock).toEqual({ mug: 18, lamp: 5 });
    expect(closed.find(({ orderId }) => orderId === "mixed")).toMatchObject({ lines, closings: 1 });
  });

  it("closes an order of as many products as go into a transaction, and parks one that has more", async () => {
    const ofProducts = (orderId: string, count: number): Order => ({
      orderId,
      lines: Array.from({ length: count }, (_, index) => ({ product: `p${index}`, quantity: 1 })),
      dueAt: now - 3,
    });
    const stock = Object.fromEntries(Array.from({ length: 98 }, (_, index) => [`p${index}`, 0]));
    await seedShop(documents, shopTable, {
      open: [ofProducts("many", 97), ofProducts("too-many", 98)],
      paid: [],
      stock,
    });
    expect(await runAs("A")).toMatchObject({
      result: "ran",
      closed: 3,
      parked: 1,
    });
    expect(await parkedProblems()).toEqual({ "too-many": expect.stringContaining("98 products") });
    expect((await readShop(documents, shopTable)).stock).toMatchObject({ p0: 1, p96: 1, p97: 0 });
  });

  it("leaves an order open for the hours that the shop gives after the payment was due", async () => {
    const hour = 3_600_000;
    const open = [
      { ...late, orderId: "three-hours", dueAt: now - 3 * hour },
      { ...late, orderId: "exactly-two", dueAt: now - 2 * hour },
      { ...late, orderId: "one-hour", dueAt: now - hour },
    ];
    await seedShop(documents, shopTable, { open, paid: [], stock: {} });
    const patient = new OrderBook(documents, shopTable, 2 * hour);
    expect(await runAs("A", { orders: patient })).toMatchObject({ closed: 1 });
    expect(Object.keys(await closedBy())).toEqual(["three-hours"]);
  });

  describe("an order that cannot be closed", () => {
    const write = (sk: string, attributes: object): Promise<unknown> =>
      documents.send(
        new PutCommand({ TableName: shopTable, Item: { ...attributes, pk: "orders#open", sk } }),
      );
    const first = new Date(now - 10).toISOString();

    it.each<[string, object, RegExp]>([
      [
        "a product without stock",
        { lines: [{ product: "unknown", quantity: 1 }] },
        /"unknown" has no stock item/,
      ],
      ["no lines", {}, /lines/],
      ["lines that are none", { lines: [{ product: "mug" }] }, /quantity/],
      ["a quantity below 1", { lines: [{ product: "mug", quantity: -1 }] }, /quantity/],
      ["a product without a name", { lines: [{ product: "", quantity: 1 }] }, /product/],
      ["an empty list", { lines: [] }, /lines/],
    ])("for %s is parked with its reason, and the others are closed", async (_what, attributes, reason) => {
      await write(`${first}#odd`, { orderId: "odd", dueAt: now - 10, ...attributes });
      expect(await runAs("A")).toMatchObject({
        result: "ran",
        closed: 2,
        parked: 1,
      });
      expect(await closedBy()).toEqual({ late: "A", later: "A" });
      const { open, stock } = await readShop(documents, shopTable);
      expect(open.map(({ orderId }) => orderId)).toEqual(["due-now"]);
      expect(stock).toEqual({ mug: 15 });
      expect(await parkedProblems()).toEqual({ odd: expect.stringMatching(reason) });
      // It is out of the way: the next run does not come to it.
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
      const [parked] = await parkedOrders.list(10);
      expect(parked?.problem).toMatch(/"lamp" has no stock item/);

      await seedShop(documents, shopTable, { open: [], paid: [], stock: { lamp: 7 } });
      expect(await parkedOrders.putBack(parked?.id ?? "", () => 60_000)).toBe(true);
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

    it("for one product without stock gives nothing back where the lease is gone", async () => {
      const lines = [...mugs(4), { product: "lamp", quantity: 2 }];
      await write(`${first}#odd`, { orderId: "odd", dueAt: now - 10, lines });
      const lease = await leasesOf("A").acquire(closeUnpaidOrdersKey, { leaseDurationMs: 10_000 });
      await lease.release();
      for await (const found of orders.unpaid(now)) {
        expect(await orders.close(found, lease, () => 60_000)).toBe("fencedOff");
      }
      expect((await readShop(documents, shopTable)).stock).toEqual({ mug: 10 });
      expect(await parkedOrders.list(10)).toEqual([]);
    });

    it("for a stock that is no number, and for an item that is hardly an order, too", async () => {
      await documents.send(
        new PutCommand({ TableName: shopTable, Item: { pk: "stock", sk: "cup", available: "many" } }),
      );
      await write(`${first}#1`, {
        orderId: "cups",
        dueAt: now - 10,
        lines: [{ product: "cup", quantity: 1 }],
      });
      await write(`${first}#2`, { anything: "else" });
      expect(await runAs("A")).toMatchObject({ closed: 2, parked: 2 });
      expect(Object.keys(await parkedProblems()).sort()).toEqual([`${first}#2`, "cups"]);
    });

    it("is put back as it was once its cause is gone, and the next run closes it", async () => {
      await seedShop(documents, shopTable, {
        open: [{ ...late, orderId: "odd", lines: [{ product: "lamp", quantity: 2 }] }],
        paid: [],
        stock: {},
      });
      await runAs("A");
      const [parked] = await parkedOrders.list(10);
      if (parked === undefined) throw new Error("nothing is parked");
      await seedShop(documents, shopTable, { open: [], paid: [], stock: { lamp: 0 } });
      expect(await parkedOrders.putBack(parked.id, () => 60_000)).toBe(true);
      expect(await parkedOrders.putBack(parked.id, () => 60_000)).toBe(false);
      expect(await runAs("B")).toMatchObject({ closed: 1, parked: 0 });
      expect((await readShop(documents, shopTable)).stock).toEqual({ mug: 15, lamp: 2 });
      expect(await parkedOrders.list(10)).toEqual([]);
    });

    it("is not parked by one that has lost the lease", async () => {
      await write(`${first}#odd`, { orderId: "odd" });
      const beforeClose = async (_order: FoundOrder, { key, token }: Lease): Promise<void> => {
        await adminOf(leasesOf("operator")).forceRelease(key, { token });
      };
      expect(await runAs("A", { beforeClose })).toMatchObject({ result: "lost", fencedOff: "odd" });
      expect(await parkedProblems()).toEqual({});
      expect(await closedBy()).toEqual({});
    });
  });

  it("a backlog that is longer than the time stays for the next run, which goes on: it is unfinished, and not failed", async () => {
    let left = 5_000;
    expect(await runAs("A", { remainingMs: () => (left -= 1_500) })).toMatchObject({
      result: "ran",
      closed: 1,
      isUnfinished: true,
    });
    expect(await runAs("B")).toMatchObject({
      result: "ran",
      closed: 1,
      isUnfinished: false,
    });
    expect(await closedBy()).toEqual({ late: "A", later: "B" });
  });
});
