import { type DynamoDBDocumentClient, paginateQuery } from "@aws-sdk/lib-dynamodb";
import type { Lease } from "@leasehold/client";
import { type TransactItems, transact } from "../support/transactions.ts";
import { type FoundOrder, type Order, type ParkedItem, quantities, readOrder } from "./order.ts";
import { closedOrderKey, parkedOrderKey, partitions, stockKey, timeSortKey } from "./schema.ts";

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
