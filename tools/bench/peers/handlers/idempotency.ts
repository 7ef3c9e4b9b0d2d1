/** A handler that Powertools makes idempotent, as its documentation shows. */
import { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
import { DynamoDBPersistenceLayer } from "@aws-lambda-powertools/idempotency/dynamodb";
import type { Context } from "aws-lambda";

const persistenceStore = new DynamoDBPersistenceLayer({ tableName: "idempotency" });
const config = new IdempotencyConfig({ eventKeyJmesPath: "key" });

export const handler = makeIdempotent(async (_event: { readonly key: string }, _context: Context) => "done", {
  persistenceStore,
  config,
});
