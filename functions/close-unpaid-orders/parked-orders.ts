import { type DynamoDBDocumentClient, GetCommand, QueryCommand } from "@aws-sdk/lib-dynamodb";
import { transact } from "../support/transactions.ts";
import type { ParkedItem, ParkedOrder } from "./order.ts";
import { parkedOrderKey, partitions } from "./schema.ts";

/** The orders that could not be closed, for the people who correct them. */
export class ParkedOrders {
  readonly #documents: DynamoDBDocumentClient;
  readonly #tableName: string;

  constructor(documents: DynamoDBDocumentClient, tableName: string) {
    this.#documents = documents;
    this.#tableName = tableName;
  }

  /** Lists them, the earliest due first. 1 consistent query. */
  async list(limit: number): Promise<readonly ParkedOrder[]> {
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

  /** Puts one back among the open ones, as it was: 2 requests. Tells whether it was there. */
  async putBack(id: string, remainingMs: () => number): Promise<boolean> {
    const TableName = this.#tableName;
    const Key = parkedOrderKey(id);
    const { Item } = await this.#documents.send(new GetCommand({ TableName, Key, ConsistentRead: true }));
    if (Item === undefined) return false;
    const { item } = Item as ParkedItem;
    const entries = [
      { Delete: { TableName, Key, ConditionExpression: "attribute_exists(pk)" } },
      { Put: { TableName, Item: item, ConditionExpression: "attribute_not_exists(pk)" } },
    ];
    return (await transact(this.#documents, entries, { remainingMs })).length === 0;
  }
}
