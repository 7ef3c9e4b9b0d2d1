// The tasks of the AWS SDK: credentials of profiles, SSO, web identities and instance roles, and requests about tables.
// It is a separate module, so that only commands that need the SDK load it.

import {
  DescribeTableCommand,
  DynamoDBClient,
  ListTagsOfResourceCommand,
  paginateListTables,
} from "@aws-sdk/client-dynamodb";
import type { LeaseStore } from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import { lightStore } from "@leasehold/client/light";
import { CommandError, exitCodes, messageOf } from "./exit-codes.ts";
import { defined } from "./flags.ts";
import {
  hasTableTag,
  isLoopback,
  localCredentials,
  ownCommand,
  type TablePlace,
  type TableSize,
  tableTag,
} from "./table/place.ts";
import { shown } from "./terminal/text.ts";

export const credentialsFix = "set AWS_PROFILE or --profile, or log in: aws sso login";

const ofCredentials =
  /^(CredentialsProviderError|(ExpiredToken|(Incomplete|Invalid)Signature|MissingAuthenticationToken|UnrecognizedClient)Exception)$/;

/** Whether an SDK error says that AWS does not accept the caller's credentials, or not any more. */
function isOfCredentials(error: unknown): boolean {
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
    ...defined({ region, endpoint, profile, credentials: isLocal ? localCredentials : undefined }),
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
    ...defined({ endpoint: place.endpoint }),
  });
}

/** Tags are read table by table, several at a time. In an account with more tables, the user has to name one. */
const mostTables = 300;
const atOnce = 8;
const withinMs = 10_000;

const tag = `${tableTag.Key}=${tableTag.Value}`;
const advice = `give --table NAME, or set ${environmentNames.tableName}`;

/** Finds the tagged table's name. Throws a CommandError (78) if there is none, or more than one, or no answer. */
export async function findTable(
  place: Omit<TablePlace, "tableName" | "clock">,
  signal: AbortSignal,
): Promise<string> {
  const dynamodb = sdkClient(place);
  const own = ownCommand(place.env);
  const other = `to try without AWS: ${own} dev`;
  try {
    const region = isLoopback(place.endpoint) ? place.endpoint : await dynamodb.config.region();
    const found = await taggedTables(dynamodb, AbortSignal.any([signal, AbortSignal.timeout(withinMs)]));
    const [only] = found;
    if (only !== undefined && found.length === 1) return only;
    const finding =
      only === undefined
        ? `none at ${region} has the tag ${tag}`
        : `${found.length} at ${region} have the tag ${tag}: ${found.map(shown).join(", ")}`;
    const message = `no table is named, and ${finding}: ${advice}. To make one: ${own} table create NAME; ${other}`;
    throw new CommandError(message, exitCodes.configuration);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof CommandError) throw error;
    const failed = `looking for one with the tag ${tag} failed (${messageOf(error)})`;
    // AWS refuses such a caller also with a table's name.
    const fix = isOfCredentials(error) ? credentialsFix : advice;
    const message = `no table is named, and ${failed}: ${fix}; ${other}`;
    throw new CommandError(message, exitCodes.configuration, { cause: error });
  } finally {
    dynamodb.destroy();
  }
}

async function taggedTables(dynamodb: DynamoDBClient, abortSignal: AbortSignal): Promise<readonly string[]> {
  const names = await allTables(dynamodb, abortSignal);
  const [first] = names;
  if (first === undefined) return [];
  const { Table } = await dynamodb.send(new DescribeTableCommand({ TableName: first }), { abortSignal });
  // The ARNs of tables of one account and region differ only in the name.
  const prefix = (Table?.TableArn ?? "").slice(0, -first.length);
  const isTagged = async (name: string): Promise<boolean> => {
    const command = new ListTagsOfResourceCommand({ ResourceArn: prefix + name });
    return hasTableTag((await dynamodb.send(command, { abortSignal })).Tags);
  };
  const found: string[] = [];
  for (let at = 0; at < names.length; at += atOnce) {
    const some = names.slice(at, at + atOnce);
    const areTagged = await Promise.all(some.map(isTagged));
    found.push(...some.filter((_, index) => areTagged[index]));
  }
  return found;
}

async function allTables(client: DynamoDBClient, abortSignal: AbortSignal): Promise<readonly string[]> {
  const names: string[] = [];
  for await (const { TableNames = [] } of paginateListTables({ client }, {}, { abortSignal })) {
    names.push(...TableNames);
    if (names.length > mostTables) throw new Error(`there are more than ${mostTables} tables`);
  }
  return names;
}
