import type { DynamoDBSender } from "../../base/options.ts";

/** Whether the commands of a user's client take plain values. */
export function isDocumentClient(dynamodb: DynamoDBSender): boolean {
  // Only the document client's class has a static method that makes it from another client. It also marks that client's
  // config.
  return typeof (dynamodb.constructor as Partial<{ from: unknown }>).from === "function";
}
