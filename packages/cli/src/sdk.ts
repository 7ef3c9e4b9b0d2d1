// What only the AWS SDK does: credentials of profiles, SSO, web identities and instance roles, and requests about tables.
// A module of its own, so that a command that does not need it does not load it.

import { DescribeTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { LeaseStore } from "@leasehold/client";
import { lightStore } from "@leasehold/client/light";
import { isLoopback, localCredentials, type TablePlace, type TableSize } from "./connection.ts";
import { CommandError, exitCodes } from "./exit-codes.ts";

/** A DynamoDB client of the AWS SDK, for a table's settings. */
export function sdkClient({
  region,
  endpoint,
  profile,
  env,
}: Omit<TablePlace, "tableName" | "clock">): DynamoDBClient {
  const isLocal = isLoopback(endpoint) && profile === undefined && !env.AWS_ACCESS_KEY_ID;
  return new DynamoDBClient({
    ...(region === undefined ? {} : { region }),
    ...(endpoint === undefined ? {} : { endpoint }),
    ...(profile === undefined ? {} : { profile }),
    ...(isLocal ? { credentials: localCredentials } : {}),
  });
}

/** How large a table is. Rejects as the SDK does. */
export async function sizeOf(place: TablePlace): Promise<TableSize> {
  const client = sdkClient(place);
  try {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: place.tableName }));
    return { items: Table?.ItemCount ?? 0, bytes: Table?.TableSizeBytes ?? 0 };
  } finally {
    client.destroy();
  }
}

/** A store with the region and the credentials that the SDK finds. Throws a CommandError (78). */
export async function storeByProfile(place: TablePlace): Promise<LeaseStore> {
  const { config } = sdkClient(place);
  const found = async <T>(what: string, look: () => Promise<T>): Promise<T> => {
    try {
      return await look();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new CommandError(`no ${what}: ${reason}`, exitCodes.configuration, { cause: error });
    }
  };
  const region = await found("region", () => config.region());
  await found("credentials", () => config.credentials());
  return lightStore({
    tableName: place.tableName,
    region,
    clock: place.clock,
    credentials: () => config.credentials(),
    ...(place.endpoint === undefined ? {} : { endpoint: place.endpoint }),
  });
}
