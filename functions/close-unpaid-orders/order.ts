import { mostEntries } from "../support/transactions.ts";
import type { ShopKey } from "./schema.ts";

/** A number of one product. */
export interface OrderLine {
  readonly product: string;
  readonly quantity: number;
}

/** An order that holds stock until its payment is due. */
export interface Order {
  readonly orderId: string;
  /** What it reserves; a product may come in several lines. */
  readonly lines: readonly OrderLine[];
  /** Epoch milliseconds. */
  readonly dueAt: number;
}

/** An order as its item was read. Whether it can be closed is checked when it is closed. */
export interface FoundOrder {
  /** The order's id; its sort key where it has none. */
  readonly orderId: string;
  readonly item: ShopKey & Readonly<Record<string, unknown>>;
}

/** An order that could not be closed. */
export interface ParkedOrder {
  /** The id for `putBack`. */
  readonly id: string;
  readonly orderId: string;
  /** Why it could not be closed. */
  readonly problem: string;
  /** The owner that found it, and its fencing token of the lock. */
  readonly parkedBy: string;
  readonly fencingToken: number;
}

/** A parked order's item: it contains the order's own item unchanged. */
export type ParkedItem = ShopKey & Omit<ParkedOrder, "id"> & Pick<FoundOrder, "item">;

/** Besides a product each, a closing writes the lease's check, the open order and the closed one. */
const mostProducts = mostEntries - 3;

/** DynamoDB's own limit for a sort key. */
const longestName = 1024;

/** Reads an order, or says what is wrong with it. */
export function readOrder({ item }: FoundOrder): Order | { readonly problem: string } {
  const { orderId, lines, dueAt } = item;
  if (!isName(orderId)) return { problem: "its orderId is no text" };
  if (typeof dueAt !== "number") return { problem: "its dueAt is no number" };
  if (!Array.isArray(lines) || lines.length === 0) return { problem: "it has no lines" };
  const read: OrderLine[] = [];
  for (const [index, line] of lines.entries()) {
    const { product, quantity } = (line ?? {}) as Readonly<Record<string, unknown>>;
    if (!isName(product)) return { problem: `lines[${index}].product is no text` };
    if (!isCount(quantity)) return { problem: `lines[${index}].quantity is no whole number above 0` };
    read.push({ product, quantity });
  }
  const products = quantities(read).size;
  if (products > mostProducts)
    return { problem: `it has ${products} products, and ${mostProducts} go into one transaction` };
  return { orderId, lines: read, dueAt };
}

/** Adds an order's lines up: a transaction may write each product's stock once. */
export function quantities(lines: readonly OrderLine[]): ReadonlyMap<string, number> {
  const sums = new Map<string, number>();
  for (const { product, quantity } of lines) sums.set(product, (sums.get(product) ?? 0) + quantity);
  return sums;
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && Buffer.byteLength(value) <= longestName;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}
