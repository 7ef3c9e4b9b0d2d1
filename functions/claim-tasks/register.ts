import { type DynamoDBDocumentClient, PutCommand } from "@aws-sdk/lib-dynamodb";
import { registerKey } from "./schema.ts";

/** Enters a set into the register, or renews its time: workers are started for it until it is drained. */
export async function register(
  documents: DynamoDBDocumentClient,
  tableName: string,
  set: string,
  now: number = Date.now(),
): Promise<void> {
  const Item = { ...registerKey(set), addedAt: now };
  await documents.send(new PutCommand({ TableName: tableName, Item }));
}
