// A table whose settings the AWS SDK reads. Loaded only by commands about tables, like the SDK.

import {
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  ListTagsOfResourceCommand,
  type TableDescription,
  type Tag,
} from "@aws-sdk/client-dynamodb";
import { rejectionFor } from "@leasehold/client/internal";
import type { Call } from "../command.ts";
import { placeOf } from "../connection.ts";
import { regionWithCredentials, sdkClient } from "../sdk.ts";
import { isLoopback } from "./place.ts";

const defaultTimeoutMs = 5_000;

/** The engine's answer, or why there is none. */
export type Learnt<T> = { readonly value: T } | { readonly unknown: string };

/** How requests about one table are sent. */
export interface AskedTable {
  readonly tableName: string;
  readonly dynamodb: DynamoDBClient;
  /** Whether it is on an engine of this machine, which supports only some calls. */
  readonly isLocal: boolean;
  /** For people: the region, or the endpoint on this machine. */
  readonly region: string;
  /** Sends a request, within --timeout. Rejects with a LeaseError that names the table and the place. */
  ask<T>(
    send: (dynamodb: DynamoDBClient, options: { readonly abortSignal: AbortSignal }) => Promise<T>,
  ): Promise<T>;
}

/**
 * Uses the table that a call names, or the table of this name; with --verbose, says how many requests were sent.
 * Rejects with a CommandError (78) if no table is named or found, and without region or credentials.
 */
export async function withTable<T>(
  { global, env, clock, signal, terminal }: Call,
  named: string | undefined,
  use: (asked: AskedTable) => Promise<T>,
): Promise<T> {
  const place = await placeOf(named === undefined ? global : { ...global, table: named }, env, clock);
  const { tableName, endpoint } = place;
  const dynamodb = sdkClient(place);
  let sent = 0;
  dynamodb.middlewareStack.add(
    (next) => (args) => {
      sent += 1;
      return next(args);
    },
    { step: "finalizeRequest", priority: "low", name: "count" },
  );
  const region = await regionWithCredentials(dynamodb, env);
  const isLocal = isLoopback(endpoint);
  const ask: AskedTable["ask"] = async (send) => {
    const limit = AbortSignal.timeout(global.timeout ?? defaultTimeoutMs);
    const abortSignal = AbortSignal.any([signal, limit]);
    try {
      return await send(dynamodb, { abortSignal });
    } catch (error) {
      signal.throwIfAborted();
      throw await rejectionFor(error, { tableName, dynamodb }, abortSignal);
    }
  };
  try {
    return await use({ tableName, dynamodb, isLocal, region: (isLocal && endpoint) || region, ask });
  } finally {
    dynamodb.destroy();
    if (global.verbose) terminal.say(`${sent} requests by the SDK`);
  }
}

/** The settings of a table. */
export interface TableFacts {
  readonly table: TableDescription;
  /** The attribute of the time to live; undefined if it is off. */
  readonly ttl: Learnt<string | undefined>;
  readonly pointInTimeRecovery: Learnt<boolean>;
  readonly tags: Learnt<readonly Tag[]>;
}

/** Reads all settings of a table. Rejects if the table itself cannot be described. */
export async function factsOf(asked: AskedTable): Promise<TableFacts> {
  const { tableName } = asked;
  const { Table: table = {} } = await asked.ask((dynamodb, options) =>
    dynamodb.send(new DescribeTableCommand({ TableName: tableName }), options),
  );
  const { TableArn = "" } = table;
  const [ttl, pointInTimeRecovery, tags] = await Promise.all([
    learn(asked, "DescribeTimeToLive", async (dynamodb, options) => {
      const { TimeToLiveDescription: said } = await dynamodb.send(
        new DescribeTimeToLiveCommand({ TableName: tableName }),
        options,
      );
      return said?.TimeToLiveStatus?.startsWith("ENABL") ? said.AttributeName : undefined;
    }),
    learn(asked, "DescribeContinuousBackups", async (dynamodb, options) => {
      const { ContinuousBackupsDescription: said } = await dynamodb.send(
        new DescribeContinuousBackupsCommand({ TableName: tableName }),
        options,
      );
      return said?.PointInTimeRecoveryDescription?.PointInTimeRecoveryStatus === "ENABLED";
    }),
    learn(asked, "ListTagsOfResource", async (dynamodb, options) => {
      const command = new ListTagsOfResourceCommand({ ResourceArn: TableArn });
      return (await dynamodb.send(command, options)).Tags ?? [];
    }),
  ]);
  return { table, ttl, pointInTimeRecovery, tags };
}

/** Sends a request that engines and roles may refuse: a refusal is a finding, and does not end the command. */
async function learn<T>(
  asked: AskedTable,
  action: string,
  send: Parameters<typeof asked.ask<T>>[0],
): Promise<Learnt<T>> {
  try {
    return { value: await asked.ask(send) };
  } catch (error) {
    const refusal = refusalIn(error);
    if (refusal === "denied") return { unknown: `dynamodb:${action} is denied` };
    if (refusal === "unsupported") return { unknown: `this engine does not know ${action}` };
    throw error;
  }
}

/** The refusal in an error: the request is denied, or the engine does not support it. */
export function refusalIn(error: unknown): "denied" | "unsupported" | undefined {
  const { name, code, cause } = Object(error) as {
    readonly name?: unknown;
    readonly code?: unknown;
    readonly cause?: unknown;
  };
  if (name === "UnknownOperationException") return "unsupported";
  if (name === "AccessDeniedException") return "denied";
  return code === undefined || cause === undefined ? undefined : refusalIn(cause);
}
