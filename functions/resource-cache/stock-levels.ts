import { ConditionalCheckFailedException } from "@aws-sdk/client-dynamodb";
import { type DynamoDBDocumentClient, GetCommand, PutCommand, paginateQuery } from "@aws-sdk/lib-dynamodb";
import type { Lease } from "@leasehold/client";
import type { Cached, CacheStore } from "./cache.ts";
import { fenceAttribute, levelsKey, movementsPartition } from "./schema.ts";

/** How much of each product a warehouse has. */
export type StockLevels = Readonly<Record<string, number>>;

/** The stock levels of warehouses: what they are computed from, and where they are kept. */
export class StockLevelBook implements CacheStore<StockLevels> {
  readonly #documents: DynamoDBDocumentClient;
  readonly #tableName: string;

  constructor(documents: DynamoDBDocumentClient, tableName: string) {
    this.#documents = documents;
    this.#tableName = tableName;
  }

  /** Adds up all movements of a warehouse, page by page: as slow as it has movements. */
  async compute(warehouse: string, signal: AbortSignal): Promise<StockLevels> {
    const levels = new Map<string, number>();
    const pages = paginateQuery(
      { client: this.#documents },
      {
        TableName: this.#tableName,
        KeyConditionExpression: "pk = :movements",
        ExpressionAttributeValues: { ":movements": movementsPartition(warehouse) },
      },
    );
    for await (const { Items = [] } of pages) {
      signal.throwIfAborted();
      for (const { product, quantity } of Items as { product: string; quantity: number }[]) {
        levels.set(product, (levels.get(product) ?? 0) + quantity);
      }
    }
    return Object.fromEntries(levels);
  }

  async look(warehouse: string): Promise<Cached<StockLevels> | undefined> {
    const { Item } = await this.#documents.send(
      new GetCommand({ TableName: this.#tableName, Key: levelsKey(warehouse), ConsistentRead: true }),
    );
    return Item === undefined ? undefined : { value: Item.levels, computedAt: Item.computedAt };
  }

  async store(warehouse: string, { value, computedAt }: Cached<StockLevels>, lease: Lease): Promise<boolean> {
    const {
      attributes,
      UpdateExpression: _forUpdates,
      ...condition
    } = lease.fence({
      attribute: fenceAttribute,
      format: "native",
    });
    const Item = { ...levelsKey(warehouse), levels: value, computedAt, ...attributes };
    try {
      await this.#documents.send(new PutCommand({ TableName: this.#tableName, Item, ...condition }));
      return true;
    } catch (error) {
      if (error instanceof ConditionalCheckFailedException) return false;
      throw error;
    }
  }
}
