// The table without a given name: the one with the tag leasehold=true, if there is exactly one.

import {
  DescribeTableCommand,
  type DynamoDBClient,
  ListTablesCommand,
  ListTagsOfResourceCommand,
} from "@aws-sdk/client-dynamodb";
import { environmentNames } from "@leasehold/client/environment";
import { isLoopback, ownCommand, type TablePlace } from "../connection.ts";
import { CommandError, exitCodes, messageOf } from "../exit-codes.ts";
import { credentialsFix, isOfCredentials, sdkClient } from "../sdk.ts";
import { shown } from "../terminal/text.ts";
import { tableTag } from "./definition.ts";

/** Tags are read table by table, several at a time. In an account with more tables, the user has to name one. */
const mostTables = 300;
const atOnce = 8;
const withinMs = 10_000;

const tag = `${tableTag.Key}=${tableTag.Value}`;
const advice = `give --table NAME, or set ${environmentNames.tableName}`;

/** Finds the tagged table's name. Throws a CommandError (78) if there is none, or more than one, or no answer. */
export async function findTable(place: Omit<TablePlace, "tableName" | "clock">): Promise<string> {
  const dynamodb = sdkClient(place);
  const own = ownCommand(place.env);
  const other = `to try without AWS: ${own} dev`;
  try {
    const region = isLoopback(place.endpoint) ? place.endpoint : await dynamodb.config.region();
    const found = await taggedTables(dynamodb, AbortSignal.timeout(withinMs));
    const [only] = found;
    if (only !== undefined && found.length === 1) return only;
    const finding =
      only === undefined
        ? `none at ${region} has the tag ${tag}`
        : `${found.length} at ${region} have the tag ${tag}: ${found.map(shown).join(", ")}`;
    const message = `no table is named, and ${finding}: ${advice}. To make one: ${own} table create NAME; ${other}`;
    throw new CommandError(message, exitCodes.configuration);
  } catch (error) {
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
  const found: string[] = [];
  for (let at = 0; at < names.length; at += atOnce) {
    const some = names.slice(at, at + atOnce);
    const tags = await Promise.all(
      some.map(async (name) => {
        const command = new ListTagsOfResourceCommand({ ResourceArn: prefix + name });
        return (await dynamodb.send(command, { abortSignal })).Tags ?? [];
      }),
    );
    const isTagged = (index: number): boolean =>
      tags[index]?.some(({ Key, Value }) => Key === tableTag.Key && Value === tableTag.Value) ?? false;
    found.push(...some.filter((_, index) => isTagged(index)));
  }
  return found;
}

async function allTables(dynamodb: DynamoDBClient, abortSignal: AbortSignal): Promise<readonly string[]> {
  const names: string[] = [];
  let after: string | undefined;
  do {
    const command = new ListTablesCommand(after === undefined ? {} : { ExclusiveStartTableName: after });
    const page = await dynamodb.send(command, { abortSignal });
    names.push(...(page.TableNames ?? []));
    after = page.LastEvaluatedTableName;
    if (names.length > mostTables) throw new Error(`there are more than ${mostTables} tables`);
  } while (after !== undefined);
  return names;
}
