import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { TableSpec } from "../assembly/types.ts";
import { createTable, deleteTable } from "../tables/create.ts";
import type { Cleanups } from "./cleanups.ts";

/** Creates every table of the template and gives the engine's stream ARNs by table name. */
export async function createTables(
  tables: readonly TableSpec[],
  dynamodb: DynamoDBClient,
  removeAtEnd: boolean,
  cleanups: Cleanups,
): Promise<ReadonlyMap<string, string>> {
  const streams = new Map<string, string>();
  const created = await Promise.allSettled(
    tables.map(async (spec) => {
      if (removeAtEnd) cleanups.add(() => deleteTable(dynamodb, spec.name));
      const { engineStreamArn } = await createTable(dynamodb, spec);
      if (engineStreamArn !== undefined) streams.set(spec.name, engineStreamArn);
    }),
  );
  // All have settled, so that none is created after a failed start was cleaned up.
  for (const result of created) if (result.status === "rejected") throw result.reason;
  return streams;
}
