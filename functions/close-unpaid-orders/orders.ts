import { type DynamoDBDocumentClient, paginateQuery } from "@aws-sdk/lib-dynamodb";
import type { Lease } from "@leasehold/client";
import { type TransactItems, transact } from "../support/transactions.ts";
import { type FoundOrder, type Order, type ParkedItem, quantities, readOrder } from "./order.ts";
import { closedOrderKey, parkedOrderKey, partitions, stockKey, timeSortKey } from "./schema.ts";

/**
 * The result of an attempt to close an order.
 *
 * - `closed`: it is closed, and its stock is given back.
 * - `parked`: it cannot be closed as it is. It is kept apart with the reason, and does not block other orders.
 * - `notOpen`: it was closed before, or it was paid; nothing was changed.
 * - `fencedOff`: the lease is gone; nothing was changed.
 */
export type CloseResult = "closed" | "parked" | "notOpen" | "fencedOff";

/** The first entries of a closing and of a parking. */
const leaseEntry = 0;
const openEntry = 1;
/** In a closing, the closed order and the stock of each product follow. */
const firstStockEntry = 3;

/** The orders and the stock of a shop, as far as closing orders is concerned. */
export class OrderBook {
  readonly #documents: DynamoDBDocumentClient;
  readonly #tableName: string;

  constructor(documents: DynamoDBDocumentClient, tableName: string) {
    this.#documents = documents;
    this.#tableName = tableName;
  }

  /** Goes through the open orders whose payment was due before a time, the longest overdue first, page by page. */
  async *unpaid(dueBefore: number): AsyncGenerator<FoundOrder, void, undefined> {
    const pages = paginateQuery(
      { client: this.#documents },
      {
        TableName: this.#tableName,
        KeyConditionExpression: "pk = :open AND sk < :dueBefore",
        ExpressionAttributeValues: { ":open": partitions.open, ":dueBefore": timeSortKey(dueBefore) },
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
   * is parked under the same lease: otherwise it would come first in every run.
   */
  async close(found: FoundOrder, lease: Lease, remainingMs: () => number): Promise<CloseResult> {
    const order = readOrder(found);
    if ("problem" in order) return await this.#park(found, order.problem, lease, remainingMs);
    const stock = [...quantities(order.lines)];
    const entries = [
      ...this.#ofOpenOrder(found, lease),
      this.#closed(order, lease),
      ...stock.map((line) => this.#returned(...line)),
    ];
    const refused = await transact(this.#documents, entries, { remainingMs });
    if (refused.length === 0) return "closed";
    const gone = whatIsGone(refused);
    if (gone !== undefined) return gone;
    const missing = refused.map((entry) => JSON.stringify(stock[entry - firstStockEntry]?.[0]));
    const problem = `its stock cannot be given back: ${missing.join(", ")} has no stock item with a number`;
    return await this.#park(found, problem, lease, remainingMs);
  }

  async #park(
    { orderId, item }: FoundOrder,
    problem: string,
    lease: Lease,
    remainingMs: () => number,
  ): Promise<CloseResult> {
    const parked: ParkedItem = {
      ...parkedOrderKey(item.sk),
      orderId,
      problem,
      parkedBy: lease.owner,
      fencingToken: lease.fencingToken,
      item,
    };
    const entries = [
      ...this.#ofOpenOrder({ item }, lease),
      { Put: { TableName: this.#tableName, Item: parked } },
    ];
    return whatIsGone(await transact(this.#documents, entries, { remainingMs })) ?? "parked";
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

/** Whether the lease is gone, or else the open order. */
function whatIsGone(refused: readonly number[]): "fencedOff" | "notOpen" | undefined {
  if (refused.includes(leaseEntry)) return "fencedOff";
  return refused.includes(openEntry) ? "notOpen" : undefined;
}
