import { type DynamoDBDocumentClient, paginateQuery, QueryCommand } from "@aws-sdk/lib-dynamodb";
import type { Lease } from "@leasehold/client";
import { mostEntries, putBack, type TransactItems, transact } from "../support/transactions.ts";
import { closedOrderKey, parkedOrderKey, partitions, type ShopKey, stockKey, timeSortKey } from "./schema.ts";

/** A number of one product. */
interface OrderLine {
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
type ParkedItem = ShopKey & Omit<ParkedOrder, "id"> & Pick<FoundOrder, "item">;

/** Besides a product each, a closing writes the lease's check, the open order and the closed one. */
const mostProducts = mostEntries - 3;

/** DynamoDB's own limit for a sort key. */
const longestName = 1024;

/** Reads an order, or says what is wrong with it. */
function readOrder({ item }: FoundOrder): Order | { readonly problem: string } {
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
function quantities(lines: readonly OrderLine[]): ReadonlyMap<string, number> {
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

/**
 * The result of an attempt to close an order.
 *
 * - `closed`: it is closed, and its stock is given back.
 * - `parked`: it cannot be closed as it is. It is kept apart with the reason, and does not block other orders. The stock
 *   of its lines is given back as far as the products have stock items.
 * - `notOpen`: it was closed before, or it was paid; nothing was changed.
 * - `fencedOff`: the lease is gone; nothing was changed.
 */
export type CloseResult = "closed" | "parked" | "notOpen" | "fencedOff";

/** The first entries of a closing and of a parking. */
const leaseEntry = 0;
const openEntry = 1;
/** Then come what the order becomes, closed or parked, and the stock of each product. */
const firstStockEntry = 3;

/** The orders and the stock of a shop, as far as closing orders is concerned. */
export class OrderBook {
  readonly #documents: DynamoDBDocumentClient;
  readonly #tableName: string;
  readonly #closeAfterMs: number;

  /** `closeAfterMs`: how long after its payment was due an order counts as unpaid. @default 0 */
  constructor(documents: DynamoDBDocumentClient, tableName: string, closeAfterMs: number = 0) {
    this.#documents = documents;
    this.#tableName = tableName;
    this.#closeAfterMs = closeAfterMs;
  }

  /**
   * Goes through the open orders that count as unpaid at a time, the longest overdue first, page by page: their payment
   * was due before it, by `closeAfterMs` at least.
   */
  async *unpaid(at: number): AsyncGenerator<FoundOrder, void, undefined> {
    const dueBefore = timeSortKey(at - this.#closeAfterMs);
    const pages = paginateQuery(
      { client: this.#documents },
      {
        TableName: this.#tableName,
        KeyConditionExpression: "pk = :open AND sk < :dueBefore",
        ExpressionAttributeValues: { ":open": partitions.open, ":dueBefore": dueBefore },
        ConsistentRead: true,
      },
    );
    for await (const { Items = [] } of pages) {
      for (const item of Items as FoundOrder["item"][]) {
        yield { orderId: typeof item.orderId === "string" ? item.orderId : item.sk, item };
      }
    }
  }

  /**
   * Closes an order and gives its stock back, in one transaction that contains the lease's condition check.
   *
   * Either all of it happens or nothing. So an instance may die at any time, and an instance that was frozen for
   * longer than its lease changes nothing. A repeated trigger finds the order closed. An order that cannot be closed
   * is parked under the same lease: otherwise it would come first in every run. Where some of its products have no stock
   * item, the others get their stock back, and only the rest of its lines is parked.
   */
  async close(found: FoundOrder, lease: Lease, remainingMs: () => number): Promise<CloseResult> {
    const order = readOrder(found);
    const parked = (problem: string, item: FoundOrder["item"]): TransactItems[number] => ({
      Put: { TableName: this.#tableName, Item: parkedItem(found, item, problem, lease) },
    });
    if ("problem" in order) {
      const entries = [...this.#ofOpenOrder(found, lease), parked(order.problem, found.item)];
      return whatIsGone(await transact(this.#documents, entries, { remainingMs })) ?? "parked";
    }
    const missing = new Set<string>();
    for (;;) {
      const returnable = [...quantities(order.lines)].filter(([product]) => !missing.has(product));
      const entries = [
        ...this.#ofOpenOrder(found, lease),
        missing.size === 0
          ? this.#closed(order, lease)
          : parked(problemOf(missing), withoutReturned(found.item, order, missing)),
        ...returnable.map((line) => this.#returned(...line)),
      ];
      const refused = await transact(this.#documents, entries, { remainingMs });
      if (refused.length === 0) return missing.size === 0 ? "closed" : "parked";
      const gone = whatIsGone(refused);
      if (gone !== undefined) return gone;
      for (const entry of refused) missing.add(returnable[entry - firstStockEntry]?.[0] ?? "");
    }
  }

  /** Lists the orders that could not be closed, for the people who correct them, the earliest due first. 1 consistent query. */
  async parked(limit: number): Promise<readonly ParkedOrder[]> {
    const { Items = [] } = await this.#documents.send(
      new QueryCommand({
        TableName: this.#tableName,
        KeyConditionExpression: "pk = :parked",
        ExpressionAttributeValues: { ":parked": partitions.parked },
        ConsistentRead: true,
        Limit: limit,
      }),
    );
    return (Items as ParkedItem[]).map(({ sk, orderId, problem, parkedBy, fencingToken }) => {
      return { id: sk, orderId, problem, parkedBy, fencingToken };
    });
  }

  /** Puts one of these back among the open ones, as it was: 2 requests. Tells whether it was there. */
  async putBack(id: string, remainingMs: () => number): Promise<boolean> {
    return await putBack(this.#documents, this.#tableName, parkedOrderKey(id), { remainingMs });
  }

  /** The first entries of a transaction that removes an open order, under the lease. */
  #ofOpenOrder({ item: { pk, sk } }: Pick<FoundOrder, "item">, lease: Lease): TransactItems {
    const ConditionExpression = "attribute_exists(pk)";
    return [
      lease.conditionCheck({ format: "native" }),
      { Delete: { TableName: this.#tableName, Key: { pk, sk }, ConditionExpression } },
    ];
  }

  #closed({ orderId, lines, dueAt }: Order, lease: Lease): TransactItems[number] {
    return {
      Update: {
        TableName: this.#tableName,
        Key: closedOrderKey(orderId),
        // The count is added to and never set, so that a second closing would show.
        UpdateExpression:
          "SET orderId = :orderId, #lines = :lines, dueAt = :dueAt, " +
          "closedBy = :owner, fencingToken = :fencingToken ADD closings :one",
        ExpressionAttributeNames: { "#lines": "lines" },
        ExpressionAttributeValues: {
          ":orderId": orderId,
          ":lines": lines,
          ":dueAt": dueAt,
          ":owner": lease.owner,
          ":fencingToken": lease.fencingToken,
          ":one": 1,
        },
      },
    };
  }

  #returned(product: string, quantity: number): TransactItems[number] {
    return {
      Update: {
        TableName: this.#tableName,
        Key: stockKey(product),
        UpdateExpression: "ADD available :quantity",
        ConditionExpression: "attribute_type(available, :number)",
        ExpressionAttributeValues: { ":quantity": quantity, ":number": "N" },
      },
    };
  }
}

function parkedItem(
  { orderId, item: { sk } }: FoundOrder,
  item: FoundOrder["item"],
  problem: string,
  { owner, fencingToken }: Lease,
): ParkedItem {
  return { ...parkedOrderKey(sk), orderId, problem, parkedBy: owner, fencingToken, item };
}

function problemOf(missing: ReadonlySet<string>): string {
  const products = [...missing].map((product) => JSON.stringify(product)).join(", ");
  return `its stock cannot be given back: ${products} has no stock item with a number`;
}

/** The order's item with the lines alone whose stock is not given back, so that a later closing gives back no line twice. */
function withoutReturned(
  item: FoundOrder["item"],
  { lines }: Order,
  missing: ReadonlySet<string>,
): FoundOrder["item"] {
  const returned = lines.filter(({ product }) => !missing.has(product));
  if (returned.length === 0) return item;
  const earlier = Array.isArray(item.returnedLines) ? item.returnedLines : [];
  return {
    ...item,
    lines: lines.filter(({ product }) => missing.has(product)),
    returnedLines: [...earlier, ...returned],
  };
}

/** Whether the lease is gone, or else the open order. */
function whatIsGone(refused: readonly number[]): "fencedOff" | "notOpen" | undefined {
  if (refused.includes(leaseEntry)) return "fencedOff";
  return refused.includes(openEntry) ? "notOpen" : undefined;
}
