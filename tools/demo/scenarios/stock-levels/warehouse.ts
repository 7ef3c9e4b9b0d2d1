import { BatchWriteCommand, type DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { cacheKeyPrefix, movementsPartition } from "../../../../functions/resource-cache/schema.ts";
import type { GateRequest } from "../../gate.ts";
import { type Movement, movementsBefore, warehouse } from "./plan.ts";

/** The warehouse's own records. */
export class Warehouse {
  readonly #documents: DynamoDBDocumentClient;
  readonly #table: string;
  #count = 0;

  constructor(documents: DynamoDBDocumentClient, table: string) {
    this.#documents = documents;
    this.#table = table;
  }

  /** Writes down what has come in and gone out. */
  async move(movements: readonly Movement[] = []): Promise<void> {
    const puts = movements.map((movement) => {
      this.#count += 1;
      return {
        PutRequest: { Item: { pk: movementsPartition(warehouse), sk: `${this.#count}`, ...movement } },
      };
    });
    await this.#documents.send(new BatchWriteCommand({ RequestItems: { [this.#table]: puts } }));
  }
}

/** Whether a request reads the movements, which is how a computation begins. */
export function isComputation(request: GateRequest): boolean {
  return request.operation === "Query" && names(request, movementsPartition(warehouse));
}

/** Whether a request stores the levels: nothing else that is written under their key names a product. */
export function isStoring(request: GateRequest): boolean {
  const [{ product } = { product: "" }] = movementsBefore.cold ?? [];
  return (
    request.operation === "UpdateItem" &&
    names(request, cacheKeyPrefix + warehouse) &&
    JSON.stringify(request.body).includes(product)
  );
}

function names({ body }: GateRequest, value: string): boolean {
  return JSON.stringify(body).includes(JSON.stringify(value));
}
