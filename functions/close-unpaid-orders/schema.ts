/**
 * The keys of the shop's own table, which is not the lease table: `pk` and `sk`, both strings.
 *
 *     pk             sk                      one item for each
 *     orders#open    2026-03-01T09:30Z#o-17  order that waits for its payment, sorted by when that is due
 *     orders#parked  2026-03-01T09:30Z#o-19  order that could not be closed, with the reason and its own item
 *     orders#closed  o-17                    order that was closed unpaid
 *     orders#paid    o-18                    order that was paid
 *     stock          mug                     product
 */

/** The environment variable with the table's name. */
export const tableVariable = "CLOSE_UNPAID_ORDERS_TABLE_NAME";

/** The environment variable with the job's schedule, in EventBridge Scheduler's words and in UTC. */
export const scheduleVariable = "CLOSE_UNPAID_ORDERS_SCHEDULE";

/** The environment variable that says how many hours after its payment was due an order is closed, up to a year. @default 0 */
export const closeAfterVariable = "CLOSE_UNPAID_ORDERS_AFTER_HOURS";

const mostHours = 8_784;

/** Reads that variable's text, in milliseconds. Throws an error that names it. */
export function closeAfterMs(text: string = "0"): number {
  const hours = Number(text);
  if (/^\d+$/.test(text) && hours <= mostHours) return hours * 3_600_000;
  throw new Error(
    `the environment variable ${closeAfterVariable} is ${JSON.stringify(text)}; allowed: a whole number of hours from 0 to ${mostHours}`,
  );
}

/** The words of the log line that an alarm counts: a run has parked orders. */
export const parkedMessage = "orders parked";

/** The table's partitions. A shop with more than 1000 writes a second to one of them has to split it. */
export const partitions = {
  open: "orders#open",
  parked: "orders#parked",
  closed: "orders#closed",
  paid: "orders#paid",
  stock: "stock",
} as const;

/** The primary key of an item of the shop's table. */
export interface ShopKey {
  readonly pk: string;
  readonly sk: string;
}

/** Gives the text by which times sort; everything that is due before a time sorts before the time's text. */
export function timeSortKey(time: number): string {
  return new Date(time).toISOString();
}

/** Gives the key of an order that waits for its payment. */
export function openOrderKey(order: { readonly orderId: string; readonly dueAt: number }): ShopKey {
  return { pk: partitions.open, sk: `${timeSortKey(order.dueAt)}#${order.orderId}` };
}

/** Gives the key of an order that could not be closed, by the sort key that it had among the open ones. */
export function parkedOrderKey(openSortKey: string): ShopKey {
  return { pk: partitions.parked, sk: openSortKey };
}

/** Gives the key of an order that was closed unpaid. */
export function closedOrderKey(orderId: string): ShopKey {
  return { pk: partitions.closed, sk: orderId };
}

/** Gives the key of an order that was paid. */
export function paidOrderKey(orderId: string): ShopKey {
  return { pk: partitions.paid, sk: orderId };
}

/** Gives the key of a product's stock. */
export function stockKey(product: string): ShopKey {
  return { pk: partitions.stock, sk: product };
}
