import type { DynamoDBSender } from "../options/options.ts";

/** Tells in which form the commands of a user's client take values. */
export function isDocumentClient(dynamodb: DynamoDBSender): boolean {
  // Only the document client is made by a static method from another client; it marks that client's config, too.
  return typeof (dynamodb.constructor as Partial<{ from: unknown }>).from === "function";
}
