import { type DynamoDBClient, PutItemCommand } from "@aws-sdk/client-dynamodb";
import { toAttributeValues } from "@leasehold/client/internal";
import type { Recording } from "./recording.ts";

/** Writes the items of a history into a lease table. */
export function putHistory(dynamodb: Pick<DynamoDBClient, "send">, tableName: string): Recording["put"] {
  return async (item) => {
    await dynamodb.send(new PutItemCommand({ TableName: tableName, Item: toAttributeValues(item) }));
  };
}
