import { type DynamoDBDocumentClient, paginateQuery } from "@aws-sdk/lib-dynamodb";
import type { Lease } from "@leasehold/client";
import { type TransactItems, transact } from "../support/transactions.ts";
import { closedOrderKey, openOrderKey, partitions, stockKey, timeSortKey } from "./schema.ts";

/** An order that holds stock until its payment is due. */
export interface Order {
  readonly orderId: string;
  readonly product: string;
  readonly quantity: number;
  /** Epoch milliseconds. */
  readonly dueAt: number;
}

/**
 * What became of an attempt to close an order.
 *
 * - `closed`: it is closed, and its stock is given back.
 * - `notOpen`: somebody closed it before, or it was paid; nothing was changed.
 * - `fencedOff`: the lease is gone; nothing was changed.
 */
export type CloseResult = "closed" | "notOpen" | "fencedOff";

/** The orders and the stock of a shop, as far as closing orders is concerned. */
export class OrderBook {
  readonly #documents: DynamoDBDocumentClient;
  readonly #tableName: string;

  constructor(documents: DynamoDBDocumentClient, tableName: string) {
    this.#documents = documents;
    this.#tableName = tableName;
  }

  /** Goes through the open orders whose payment was due before a time, the longest overdue first, page by page. */
  async *unpaid(dueBefore: number): AsyncGenerator<Order, void, undefined> {
    const pages = paginateQuery(
      { client: this.#documents },
      {
        TableName: this.#tableName,
        KeyConditionExpression: "pk = :open AND sk < :dueBefore",
        ExpressionAttributeValues: { ":open": partitions.open, ":dueBefore": timeSortKey(dueBefore) },
        ConsistentRead: true,
      },
    );
    for await (const { Items = [] } of pages) yield* Items as Order[];
  }

  /**
   * Closes an order and gives its stock back, in one transaction that the lease has to survive.
   *
   * Either all of it happens or nothing, so an instance may die at any time, and one that was frozen for longer than
   * its lease changes nothing however late it wakes. A repeated trigger finds it closed.
   */
  async close(order: Order, lease: Lease): Promise<CloseResult> {
    const items = [lease.conditionCheck({ format: "native" }), ...this.#closing(order, lease)];
    const refused = await transact(this.#documents, items, 2);
    if (refused === undefined) return "closed";
    return refused === 0 ? "fencedOff" : "notOpen";
  }

  #closing(order: Order, lease: Lease): TransactItems {
    const { orderId, product, quantity, dueAt } = order;
    const TableName = this.#tableName;
    return [
      {
        Delete: { TableName, Key: openOrderKey(order), ConditionExpression: "attribute_exists(pk)" },
      },
      {
        Update: {
          TableName,
          Key: closedOrderKey(orderId),
          // The count is added to and never set, so that a second closing would show.
          UpdateExpression:
            "SET orderId = :orderId, product = :product, quantity = :quantity, dueAt = :dueAt, " +
            "closedBy = :owner, fencingToken = :fencingToken ADD closings :one",
          ExpressionAttributeValues: {
            ":orderId": orderId,
            ":product": product,
            ":quantity": quantity,
            ":dueAt": dueAt,
            ":owner": lease.owner,
            ":fencingToken": lease.fencingToken,
            ":one": 1,
          },
        },
      },
      {
        Update: {
          TableName,
          Key: stockKey(product),
          UpdateExpression: "ADD available :quantity",
          ConditionExpression: "attribute_exists(pk)",
          ExpressionAttributeValues: { ":quantity": quantity },
        },
      },
    ];
  }
}
