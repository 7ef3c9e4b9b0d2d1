import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  type TableDescription,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { unlessAborted } from "../../base/abort.ts";
import { tableRules } from "../../base/check-options.ts";
import { checkOptions, duration, type Rules } from "../../base/check-values.ts";
import { type Clock, sleep, systemClock } from "../../base/clock.ts";
import { LeaseError, LeaseServiceError } from "../../base/errors.ts";
import type { DynamoDBSender } from "../../base/options.ts";
import { attributeNames } from "../../base/schema.ts";
import { ServiceClock } from "../../base/service-clock.ts";
import { TimedCall } from "../../base/timed-call.ts";
import { createDynamoDBClient } from "./client.ts";
import { LeaseTableError, locationOf, rejectionFor } from "./errors.ts";

/** Options of {@link createLeaseTable}. */
export interface CreateLeaseTableOptions {
  readonly tableName: string;
  /** @default - a client with region and credentials from the environment */
  readonly dynamodb?: DynamoDBSender;
  /** How long to wait until the table is active. @default 120000 */
  readonly waitMs?: number;
  /** @default - the machine's own */
  readonly clock?: Clock;
}

const createRules: Rules<CreateLeaseTableOptions> = { ...tableRules, waitMs: duration(1) };

const pollMs = 500;

/**
 * Creates the lease table if there is none: on demand, with ttl, and waits until it is active.
 *
 * Calling it again, or from several processes at once, changes nothing. Needs the permissions CreateTable,
 * DescribeTable, DescribeTimeToLive and UpdateTimeToLive. In production prefer infrastructure as code, which also
 * gives the table backups and protection from deletion.
 *
 * Rejects with InvalidOptionsError; with LeaseTableError if a table of that name has another key, or its ttl on
 * another attribute; with LeaseServiceError if it is not active in time; with LeaseConfigurationError.
 *
 * ```ts
 * await createLeaseTable({ tableName: "leases" });
 * ```
 */
export async function createLeaseTable(options: CreateLeaseTableOptions): Promise<void> {
  const given = checkOptions(options, createRules, "options", ["tableName"]);
  const { tableName, waitMs = 120_000 } = given;
  const clock = new ServiceClock(given.clock ?? systemClock, false, () => undefined);
  const own = given.dynamodb === undefined ? createDynamoDBClient() : undefined;
  const dynamodb = given.dynamodb ?? (own as DynamoDBClient);
  const budget = new TimedCall(clock, { withinMs: waitMs });
  try {
    await setUp({ dynamodb, tableName, signal: budget.signal }, clock);
  } finally {
    budget.end();
    own?.destroy();
  }
}

/** The new table, and the signal that limits the call. */
interface Setup {
  readonly dynamodb: DynamoDBSender;
  readonly tableName: string;
  readonly signal: AbortSignal;
}

async function setUp(setup: Setup, clock: Clock): Promise<void> {
  const { tableName, signal } = setup;
  try {
    // The SDK does not end for the signal while it fetches credentials.
    await unlessAborted(makeTable(setup, clock), signal);
  } catch (error) {
    if (error instanceof LeaseError) throw error;
    if (!signal.aborted) throw await rejectionFor(error, setup, signal);
    const text = `the table ${JSON.stringify(tableName)} is not ready in time: wait longer with waitMs`;
    throw new LeaseServiceError("LEASE_NO_ANSWER", text, { cause: error });
  }
}

async function makeTable(setup: Setup, clock: Clock): Promise<void> {
  await createIfMissing(setup);
  await untilActive(setup, clock);
  await enableTimeToLive(setup);
}

async function createIfMissing({ dynamodb, tableName, signal }: Setup): Promise<void> {
  const { partitionKey, sortKey } = attributeNames;
  const command = new CreateTableCommand({
    TableName: tableName,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: [
      { AttributeName: partitionKey, AttributeType: "S" },
      { AttributeName: sortKey, AttributeType: "S" },
    ],
    KeySchema: [
      { AttributeName: partitionKey, KeyType: "HASH" },
      { AttributeName: sortKey, KeyType: "RANGE" },
    ],
  });
  try {
    await dynamodb.send(command, { abortSignal: signal });
  } catch (error) {
    if ((error as Error).name !== "ResourceInUseException") throw error;
  }
}

async function untilActive(setup: Setup, clock: Clock): Promise<void> {
  for (;;) {
    const table = await describeTable(setup);
    if (table !== undefined) await checkKeySchema(table, setup);
    // One that was being deleted is gone, or the new one is not found yet.
    else await createIfMissing(setup);
    if (table?.TableStatus === "ACTIVE" || table?.TableStatus === "UPDATING") return;
    await sleep(clock, pollMs, setup.signal);
  }
}

async function describeTable({ dynamodb, tableName, signal }: Setup): Promise<TableDescription | undefined> {
  try {
    const command = new DescribeTableCommand({ TableName: tableName });
    return (await dynamodb.send(command, { abortSignal: signal })).Table;
  } catch (error) {
    if ((error as Error).name === "ResourceNotFoundException") return undefined;
    throw error;
  }
}

async function checkKeySchema(table: TableDescription, { tableName, dynamodb }: Setup): Promise<void> {
  const typeOf = (name: string | undefined): string | undefined =>
    table.AttributeDefinitions?.find((definition) => definition.AttributeName === name)?.AttributeType;
  const found = (table.KeySchema ?? [])
    .map((key) => `${key.AttributeName} (${typeOf(key.AttributeName)})`)
    .join(" and ");
  const wanted = `${attributeNames.partitionKey} (S) and ${attributeNames.sortKey} (S)`;
  if (found === wanted) return;
  const name = `the table ${JSON.stringify(tableName)}${await locationOf(dynamodb)}`;
  const text = `${name} exists with the key ${found}; a lease table's is ${wanted}: choose another name`;
  throw new LeaseTableError("LEASE_TABLE_MISMATCH", text, { tableName });
}

async function enableTimeToLive(setup: Setup): Promise<void> {
  if (await hasTimeToLive(setup)) return;
  const { dynamodb, tableName, signal } = setup;
  const command = new UpdateTimeToLiveCommand({
    TableName: tableName,
    TimeToLiveSpecification: { AttributeName: attributeNames.timeToLive, Enabled: true },
  });
  try {
    await dynamodb.send(command, { abortSignal: signal });
  } catch (error) {
    // A concurrent caller was faster, perhaps with another attribute.
    if (!/already enabled/i.test((error as Error).message) || !(await hasTimeToLive(setup))) throw error;
  }
}

/** Whether the table's ttl is on. Throws LeaseTableError if its ttl attribute is not the lease table's. */
async function hasTimeToLive({ dynamodb, tableName, signal }: Setup): Promise<boolean> {
  const command = new DescribeTimeToLiveCommand({ TableName: tableName });
  const { TimeToLiveDescription: current } = await dynamodb.send(command, { abortSignal: signal });
  const isOn = current?.TimeToLiveStatus === "ENABLED" || current?.TimeToLiveStatus === "ENABLING";
  const { timeToLive } = attributeNames;
  if (!isOn || current.AttributeName === timeToLive) return isOn;
  const name = `the table ${JSON.stringify(tableName)}${await locationOf(dynamodb)}`;
  const text =
    `${name} has its time to live on the attribute ${JSON.stringify(current.AttributeName)}; a lease table's is on ` +
    `${JSON.stringify(timeToLive)}, in epoch seconds: turn it off (UpdateTimeToLive, which DynamoDB takes once an hour) ` +
    "and call createLeaseTable() again, or choose another name";
  throw new LeaseTableError("LEASE_TABLE_MISMATCH", text, { tableName });
}
