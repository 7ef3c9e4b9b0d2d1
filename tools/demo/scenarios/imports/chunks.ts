import { BatchWriteCommand, type DynamoDBDocumentClient, paginateQuery } from "@aws-sdk/lib-dynamodb";
import { doneKey, pendingKey, type TransferKind } from "../../../../functions/import-orders/schema.ts";
import type { DoneChunk } from "./evidence.ts";

/** How many chunks are imported; the workflow pauses between two of them. */
export const chunks = 10;
const ordersPerChunk = 3;

/** Writes the chunks of the import, and the order ids of the export. */
export async function seed(documents: DynamoDBDocumentClient, table: string): Promise<void> {
  const names = Array.from({ length: chunks }, (_, index) => `chunk-${String(index + 1).padStart(2, "0")}`);
  const ordersOf = (chunk: string) =>
    Array.from({ length: ordersPerChunk }, (_, index) => ({
      orderId: `${chunk}/${index + 1}`,
      product: "mug",
      quantity: index + 1,
    }));
  const imports = names.map((chunk) => ({ ...pendingKey("import", chunk), orders: ordersOf(chunk) }));
  const orderIds = names.flatMap((chunk) => ordersOf(chunk).map(({ orderId }) => orderId));
  const items = [...imports, { ...pendingKey("export", "all"), orderIds }];
  const puts = items.map((Item) => ({ PutRequest: { Item } }));
  await documents.send(new BatchWriteCommand({ RequestItems: { [table]: puts } }));
}

/** Reads what was transferred. */
export async function done(
  documents: DynamoDBDocumentClient,
  table: string,
  kind: TransferKind,
): Promise<DoneChunk[]> {
  const found: DoneChunk[] = [];
  const pages = paginateQuery(
    { client: documents },
    {
      TableName: table,
      KeyConditionExpression: "pk = :done",
      ExpressionAttributeValues: { ":done": doneKey(kind, "").pk },
      ConsistentRead: true,
    },
  );
  for await (const { Items = [] } of pages) {
    for (const { sk, by, fencingToken } of Items) found.push({ chunk: sk, by, fencingToken });
  }
  return found;
}
