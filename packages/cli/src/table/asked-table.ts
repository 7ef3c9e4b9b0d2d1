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
import { longestTimerMs, rejectionFor } from "@leasehold/client/internal";
import type { Call } from "../command.ts";
import { placeOf } from "../connection.ts";
import { CommandError, exitCodes } from "../exit-codes.ts";
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
  readonly send: DynamoDBClient["send"];
  /** Sends a write to its settings. With --dry-run it is printed instead. */
  write(operation: string, command: { readonly input: object }): Promise<void>;
}

/**
 * Uses the table that a call names, or the table of this name; with --verbose, says how many requests were sent.
 * Rejects with a CommandError (78) if no table is named or found, and without region or credentials.
 */
export async function withTable<T>(
  call: Call,
  named: string | undefined,
  use: (asked: AskedTable) => Promise<T>,
): Promise<T> {
  const { global, env, signal, terminal } = call;
  const place = await placeOf(named === undefined ? global : { ...global, table: named }, call);
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
  // The SDK's overloads take each command by its own type.
  const send = async (command: DescribeTableCommand) => {
    const limit = AbortSignal.timeout(Math.min(global.timeout ?? defaultTimeoutMs, longestTimerMs));
    const abortSignal = AbortSignal.any([signal, limit]);
    try {
      return await dynamodb.send(command, { abortSignal });
    } catch (error) {
      signal.throwIfAborted();
      throw await rejectionFor(error, { tableName, dynamodb }, abortSignal);
    }
  };
  const write: AskedTable["write"] = async (operation, command) => {
    if (global["dry-run"]) {
      terminal.print(JSON.stringify({ operation, request: command.input }, undefined, 2));
      return;
    }
    try {
      await send(command as DescribeTableCommand);
    } catch (error) {
      if (refusalIn(error) !== "unsupported") throw error;
      const message = `the engine of the table ${tableName} does not know ${operation}: nothing is changed`;
      throw new CommandError(message, exitCodes.configuration, { cause: error });
    }
  };
  try {
    return await use({
      ...{ tableName, dynamodb, isLocal, region: (isLocal && endpoint) || region, write },
      send: send as DynamoDBClient["send"],
    });
  } finally {
    dynamodb.destroy();
    if (global.verbose) terminal.say(`${sent} requests by the SDK`);
  }
}

export interface TableFacts {
  readonly table: TableDescription;
  /** The attribute of the time to live; undefined if it is off. */
  readonly ttl: Learnt<string | undefined>;
  readonly pointInTimeRecovery: Learnt<boolean>;
  readonly tags: Learnt<readonly Tag[]>;
}

/** Reads all settings of a table. Rejects if the table itself cannot be described. */
export async function factsOf(asked: AskedTable): Promise<TableFacts> {
  const TableName = asked.tableName;
  const { Table: table = {} } = await asked.send(new DescribeTableCommand({ TableName }));
  const { TableArn: ResourceArn = "" } = table;
  const [ttl, pointInTimeRecovery, tags] = await Promise.all([
    learn("DescribeTimeToLive", () => timeToLiveOf(asked)),
    learn("DescribeContinuousBackups", async () => {
      const answer = await asked.send(new DescribeContinuousBackupsCommand({ TableName }));
      const { PointInTimeRecoveryDescription: said } = answer.ContinuousBackupsDescription ?? {};
      return said?.PointInTimeRecoveryStatus === "ENABLED";
    }),
    learn("ListTagsOfResource", async () => {
      return (await asked.send(new ListTagsOfResourceCommand({ ResourceArn }))).Tags ?? [];
    }),
  ]);
  return { table, ttl, pointInTimeRecovery, tags };
}

/** The attribute of a table's time to live; undefined if it is off. */
export async function timeToLiveOf({ tableName: TableName, send }: AskedTable): Promise<string | undefined> {
  const { TimeToLiveDescription: said } = await send(new DescribeTimeToLiveCommand({ TableName }));
  return said?.TimeToLiveStatus?.startsWith("ENABL") ? said.AttributeName : undefined;
}

/** Sends a request that engines and roles may refuse: a refusal is a finding, and does not end the command. */
async function learn<T>(action: string, ask: () => Promise<T>): Promise<Learnt<T>> {
  try {
    return { value: await ask() };
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
