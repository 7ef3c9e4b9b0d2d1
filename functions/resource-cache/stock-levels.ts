import { type DynamoDBDocumentClient, paginateQuery } from "@aws-sdk/lib-dynamodb";
import { movementsPartition } from "./schema.ts";

/** How much of each product a warehouse has. */
export type StockLevels = Readonly<Record<string, number>>;

/** The movements of goods, from which stock levels follow. */
export class StockMovements {
  readonly #documents: DynamoDBDocumentClient;
  readonly #tableName: string;

  constructor(documents: DynamoDBDocumentClient, tableName: string) {
    this.#documents = documents;
    this.#tableName = tableName;
  }

  /** Adds up all movements of a warehouse, page by page: as slow as it has movements. Stops when the signal aborts. */
  async levels(warehouse: string, signal: AbortSignal): Promise<StockLevels> {
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
}
