import { randomUUID } from "node:crypto";
import type { InvokeResult } from "@leasehold/local";
import type { Order } from "../../functions/close-unpaid-orders/orders.ts";
import { readShop, seedShop } from "../../functions/close-unpaid-orders/shop-table.ts";
import type { TestApp } from "./app.ts";
import type { Matcher } from "./proxy.ts";

const closer = "UnpaidOrders/Close";
const quantity = 2;
const onTheShelf = 10;

/** A few unpaid orders, and the function that closes them. */
export class Shop {
  readonly #test: TestApp;
  readonly #product: string = `product-${randomUUID()}`;
  readonly orders: readonly Order[];

  private constructor(test: TestApp, count: number, overdueMs: number) {
    this.#test = test;
    const [dueAt, product] = [Date.now() - overdueMs, this.#product];
    this.orders = Array.from({ length: count }, (_, index) => ({
      orderId: `${product}/${index}`,
      lines: [{ product, quantity }],
      dueAt: dueAt + index,
    }));
  }

  /** Fills the app's shop with so many orders that are overdue. */
  static async open(test: TestApp, count: number, overdueMs = 60_000): Promise<Shop> {
    const shop = new Shop(test, count, overdueMs);
    const stock = { [shop.#product]: onTheShelf };
    await seedShop(test.documents, shop.#table, { open: shop.orders, paid: [], stock });
    return shop;
  }

  get #table(): string {
    return this.#test.app.tableName("UnpaidOrders/Shop");
  }

  /** Invokes the function as its schedule would. */
  async run(event: object): Promise<InvokeResult> {
    return await this.#test.app.invoke(closer, event);
  }

  /** Matches the request that closes an order; counted from 0. */
  closes(index: number): Matcher {
    const { orderId } = this.orders[index] as Order;
    return ({ operation, body }) =>
      operation === "TransactWriteItems" && JSON.stringify(body).includes(`"${orderId}"`);
  }

  /** How often each order was closed, in their order, and by how much their stock has grown. */
  async state(): Promise<{ readonly closings: number[]; readonly restocked: number }> {
    const { closed, stock } = await readShop(this.#test.documents, this.#table);
    const closings = this.orders.map(
      ({ orderId }) => closed.find((order) => order.orderId === orderId)?.closings ?? 0,
    );
    return { closings, restocked: ((stock[this.#product] ?? 0) - onTheShelf) / quantity };
  }
}

let lastSlot = 0;

/** What a schedule sends, each time for a later run, and for none that is still to come. */
export function nextTrigger(): { readonly job: string; readonly scheduledTime: string } {
  lastSlot = Math.max(lastSlot + 1, Date.now());
  return { job: "close-unpaid-orders", scheduledTime: new Date(lastSlot).toISOString() };
}
