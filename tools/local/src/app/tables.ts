// Creates the tables of the template, and deletes those with a suffix at the end.

import {
  CreateTableCommand,
  type CreateTableCommandInput,
  DeleteTableCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  type TableDescription,
  UpdateTimeToLiveCommand,
} from "@aws-sdk/client-dynamodb";
import { systemClock } from "@leasehold/client";
import type { IndexSpec, KeyPart, TableSpec } from "../assembly/types.ts";

const pollMs = 200;
const waitMs = 120_000;

/** Creates every table of the template, and gives the engine's stream ARNs by table name. */
export async function createTables(
  tables: readonly TableSpec[],
  dynamodb: DynamoDBClient,
  removeAtEnd: boolean,
  cleanups: AsyncDisposableStack,
): Promise<ReadonlyMap<string, string>> {
  const streams = new Map<string, string>();
  const created = await Promise.allSettled(
    tables.map(async (spec) => {
      if (removeAtEnd) cleanups.defer(() => deleteTable(dynamodb, spec.name));
      const engineStreamArn = await createTable(dynamodb, spec);
      if (engineStreamArn !== undefined) streams.set(spec.name, engineStreamArn);
    }),
  );
  // All have settled, so that none is created after a failed start was cleaned up.
  for (const result of created) if (result.status === "rejected") throw result.reason;
  return streams;
}

/**
 * Creates a table as the template describes it, with indexes, stream and ttl, and waits until it is active.
 *
 * Always on demand: what the template provisions is a matter of the bill. Rejects with the SDK's error, such as
 * ResourceInUseException where the name is taken, and with an Error if the table is not active after two minutes.
 *
 * @returns the engine's own ARN of the table's stream: what its stream API takes
 */
export async function createTable(dynamodb: DynamoDBClient, spec: TableSpec): Promise<string | undefined> {
  await dynamodb.send(new CreateTableCommand(createTableInput(spec)));
  const table = await untilActive(dynamodb, spec.name);
  if (spec.timeToLiveAttribute !== undefined) {
    const TimeToLiveSpecification = { AttributeName: spec.timeToLiveAttribute, Enabled: true };
    await dynamodb.send(new UpdateTimeToLiveCommand({ TableName: spec.name, TimeToLiveSpecification }));
  }
  return table.LatestStreamArn;
}

/** Deletes a table; one that is gone already is no error. */
async function deleteTable(dynamodb: DynamoDBClient, name: string): Promise<void> {
  try {
    await dynamodb.send(new DeleteTableCommand({ TableName: name }));
  } catch (error) {
    if ((error as Error).name !== "ResourceNotFoundException") throw error;
  }
}

function createTableInput(spec: TableSpec): CreateTableCommandInput {
  const { streamViewType } = spec;
  return {
    TableName: spec.name,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: spec.attributes.map(({ name, type }) => ({
      AttributeName: name,
      AttributeType: type,
    })),
    KeySchema: keySchema(spec.key),
    ...(spec.globalIndexes.length > 0 ? { GlobalSecondaryIndexes: spec.globalIndexes.map(index) } : {}),
    ...(spec.localIndexes.length > 0 ? { LocalSecondaryIndexes: spec.localIndexes.map(index) } : {}),
    ...(streamViewType === undefined
      ? {}
      : {
          StreamSpecification: {
            StreamEnabled: true,
            StreamViewType: streamViewType as "NEW_AND_OLD_IMAGES",
          },
        }),
  };
}

function keySchema(key: readonly KeyPart[]): { AttributeName: string; KeyType: "HASH" | "RANGE" }[] {
  return key.map(({ name, type }) => ({ AttributeName: name, KeyType: type }));
}

function index({ name, key, projection, nonKeyAttributes }: IndexSpec): {
  IndexName: string;
  KeySchema: ReturnType<typeof keySchema>;
  Projection: { ProjectionType: IndexSpec["projection"]; NonKeyAttributes?: string[] };
} {
  const included = nonKeyAttributes.length > 0 ? { NonKeyAttributes: [...nonKeyAttributes] } : {};
  return {
    IndexName: name,
    KeySchema: keySchema(key),
    Projection: { ProjectionType: projection, ...included },
  };
}

async function untilActive(dynamodb: DynamoDBClient, name: string): Promise<TableDescription> {
  const deadline = systemClock.monotonic() + waitMs;
  for (;;) {
    const { Table: table } = await dynamodb.send(new DescribeTableCommand({ TableName: name }));
    if (table?.TableStatus === "ACTIVE") return table;
    if (systemClock.monotonic() > deadline) {
      throw new Error(
        `the table ${name} is not active after ${waitMs / 1000} s: it is ${table?.TableStatus}`,
      );
    }
    await new Promise<void>((resolve) => systemClock.schedule(resolve, pollMs));
  }
}
