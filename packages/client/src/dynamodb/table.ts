import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  type TableDescription,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { LeaseError, LeaseServiceError, LeaseTableError } from "../errors.ts";
import type { DynamoDBSender } from "../options.ts";
import { checkTableName } from "../options-check.ts";
import { attributeNames } from "../schema.ts";
import { type Clock, sleep, systemClock } from "../time/clock.ts";
import { checkDuration, checkKnown } from "../validation.ts";
import { createDynamoDBClient } from "./client.ts";
import { toLeaseError } from "./errors.ts";

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

const pollMs = 500;

/**
 * Creates the lease table where there is none: on demand, with ttl, and waits until it is active.
 *
 * Calling it again, or from several processes at once, changes nothing. Needs the permissions CreateTable,
 * DescribeTable, DescribeTimeToLive and UpdateTimeToLive. In production prefer infrastructure as code, which also
 * gives the table backups and protection from deletion.
 *
 * Rejects with InvalidOptionsError; with LeaseTableError if a table of that name has another key; with
 * LeaseServiceError if it is not active in time; with LeaseConfigurationError.
 *
 * ```ts
 * await createLeaseTable({ tableName: "leases" });
 * ```
 */
export async function createLeaseTable(options: CreateLeaseTableOptions): Promise<void> {
  checkKnown(options, ["tableName", "dynamodb", "waitMs", "clock"], "options");
  const tableName = checkTableName(options.tableName);
  const waitMs = checkDuration("waitMs", options.waitMs ?? 120_000, 1);
  const clock = options.clock ?? systemClock;
  const own = options.dynamodb === undefined ? createDynamoDBClient() : undefined;
  const dynamodb = options.dynamodb ?? (own as DynamoDBClient);
  const noSignal = new AbortController().signal;
  try {
    await createIfMissing(dynamodb, tableName);
    await untilActive(dynamodb, tableName, clock, clock.monotonic() + waitMs);
    await enableTimeToLive(dynamodb, tableName);
  } catch (error) {
    throw error instanceof LeaseError ? error : toLeaseError(error, tableName, noSignal, undefined);
  } finally {
    own?.destroy();
  }
}

async function createIfMissing(dynamodb: DynamoDBSender, tableName: string): Promise<void> {
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
    await dynamodb.send(command);
  } catch (error) {
    if ((error as Error).name !== "ResourceInUseException") throw error;
  }
}

async function untilActive(
  dynamodb: DynamoDBSender,
  tableName: string,
  clock: Clock,
  deadline: number,
): Promise<void> {
  for (;;) {
    // A table that was created a moment ago may not be found yet.
    const table = await describe(dynamodb, tableName);
    if (table !== undefined) checkKeySchema(table, tableName);
    if (table?.TableStatus === "ACTIVE" || table?.TableStatus === "UPDATING") return;
    if (clock.monotonic() >= deadline) {
      const text = `the table ${JSON.stringify(tableName)} is ${table?.TableStatus ?? "not there yet"}: wait longer with waitMs`;
      throw new LeaseServiceError("LEASE_NO_ANSWER", text);
    }
    await sleep(clock, pollMs);
  }
}

async function describe(dynamodb: DynamoDBSender, tableName: string): Promise<TableDescription | undefined> {
  try {
    return (await dynamodb.send(new DescribeTableCommand({ TableName: tableName }))).Table;
  } catch (error) {
    if ((error as Error).name === "ResourceNotFoundException") return undefined;
    throw error;
  }
}

function checkKeySchema(table: TableDescription, tableName: string): void {
  const typeOf = (name: string | undefined): string | undefined =>
    table.AttributeDefinitions?.find((definition) => definition.AttributeName === name)?.AttributeType;
  const found = (table.KeySchema ?? [])
    .map((key) => `${key.AttributeName} (${typeOf(key.AttributeName)})`)
    .join(" and ");
  const wanted = `${attributeNames.partitionKey} (S) and ${attributeNames.sortKey} (S)`;
  if (found === wanted) return;
  const text = `the table ${JSON.stringify(tableName)} exists with the key ${found}; a lease table's is ${wanted}: choose another name`;
  throw new LeaseTableError("LEASE_TABLE_MISMATCH", tableName, text);
}

async function enableTimeToLive(dynamodb: DynamoDBSender, tableName: string): Promise<void> {
  const { TimeToLiveDescription: current } = await dynamodb.send(
    new DescribeTimeToLiveCommand({ TableName: tableName }),
  );
  if (current?.TimeToLiveStatus === "ENABLED" || current?.TimeToLiveStatus === "ENABLING") return;
  const command = new UpdateTimeToLiveCommand({
    TableName: tableName,
    TimeToLiveSpecification: { AttributeName: attributeNames.timeToLive, Enabled: true },
  });
  try {
    await dynamodb.send(command);
  } catch (error) {
    // Another caller was quicker.
    if (!/already enabled/i.test((error as Error).message)) throw error;
  }
}
