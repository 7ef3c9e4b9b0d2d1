// The tasks of the AWS SDK: credentials of profiles, SSO, web identities and instance roles, and requests about tables.
// It is a separate module, so that only commands that need the SDK load it.

import { DescribeTableCommand, DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { LeaseStore } from "@leasehold/client";
import { lightStore } from "@leasehold/client/light";
import { isLoopback, localCredentials, ownCommand, type TablePlace, type TableSize } from "./connection.ts";
import { CommandError, exitCodes, messageOf } from "./exit-codes.ts";

/** The advice about credentials. */
export const credentialsFix = "set AWS_PROFILE or --profile, or log in: aws sso login";

const ofCredentials =
  /^(CredentialsProviderError|(ExpiredToken|(Incomplete|Invalid)Signature|MissingAuthenticationToken|UnrecognizedClient)Exception)$/;

/** Whether an SDK error says that AWS does not accept the caller's credentials, or not any more. */
export function isOfCredentials(error: unknown): boolean {
  return error instanceof Error && ofCredentials.test(error.name);
}

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

/** The size of a table. Rejects as the SDK does. */
export async function sizeOf(place: TablePlace): Promise<TableSize> {
  const client = sdkClient(place);
  try {
    const { Table } = await client.send(new DescribeTableCommand({ TableName: place.tableName }));
    return { items: Table?.ItemCount ?? 0, bytes: Table?.TableSizeBytes ?? 0 };
  } finally {
    client.destroy();
  }
}

/**
 * The region that a client uses. Rejects with a CommandError (78), which says what to set, without region or
 * credentials.
 */
export async function regionWithCredentials(
  { config }: DynamoDBClient,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const found = async <T>(what: string, look: () => Promise<T>, advice: string): Promise<T> => {
    try {
      return await look();
    } catch (error) {
      const reason = messageOf(error);
      throw new CommandError(`no ${what} (${reason}): ${advice}`, exitCodes.configuration, { cause: error });
    }
  };
  const region = await found("region", () => config.region(), "give --region, or set AWS_REGION");
  const advice = `${credentialsFix}. To try without AWS: ${ownCommand(env)} dev`;
  await found("credentials", () => config.credentials(), advice);
  return region;
}

/** A store with the region and the credentials that the SDK finds. Rejects with a CommandError (78). */
export async function storeByProfile(place: TablePlace): Promise<LeaseStore> {
  const client = sdkClient(place);
  const region = await regionWithCredentials(client, place.env);
  return lightStore({
    tableName: place.tableName,
    region,
    clock: place.clock,
    credentials: () => client.config.credentials(),
    ...(place.endpoint === undefined ? {} : { endpoint: place.endpoint }),
  });
}
