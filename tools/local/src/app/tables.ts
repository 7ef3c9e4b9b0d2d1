// Creates the tables of the template, and deletes those with a suffix at the end.

import {
  CreateTableCommand,
  DeleteTableCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  UpdateTimeToLiveCommand,
  waitUntilTableExists,
} from "@aws-sdk/client-dynamodb";
import type { TableSpec } from "../assembly/types.ts";

const longestCreationSeconds = 120;

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
 * Creates a table as the template describes it, with stream and ttl, and waits until it is active.
 *
 * Always on demand: what the template provisions is a matter of the bill. Rejects with the SDK's error, such as
 * ResourceInUseException where the name is taken, and with the waiter's error if the table is not active after two minutes.
 *
 * @returns the engine's own ARN of the table's stream: what its stream API takes
 */
export async function createTable(dynamodb: DynamoDBClient, spec: TableSpec): Promise<string | undefined> {
  const { name: TableName, properties } = spec;
  const { AttributeDefinitions, KeySchema, StreamSpecification, TimeToLiveSpecification } = properties;
  const { StreamViewType } = StreamSpecification ?? {};
  await dynamodb.send(
    new CreateTableCommand({
      ...{ TableName, AttributeDefinitions, KeySchema, BillingMode: "PAY_PER_REQUEST" },
      ...(StreamViewType && { StreamSpecification: { StreamEnabled: true, StreamViewType } }),
    }),
  );
  const wait = { client: dynamodb, maxWaitTime: longestCreationSeconds, minDelay: 1, maxDelay: 1 };
  await waitUntilTableExists(wait, { TableName });
  if (TimeToLiveSpecification !== undefined) {
    const { AttributeName } = TimeToLiveSpecification;
    const timeToLive = { TableName, TimeToLiveSpecification: { AttributeName, Enabled: true } };
    await dynamodb.send(new UpdateTimeToLiveCommand(timeToLive));
  }
  return (await dynamodb.send(new DescribeTableCommand({ TableName }))).Table?.LatestStreamArn;
}

/** Deletes a table; one that is gone already is no error. */
async function deleteTable(dynamodb: DynamoDBClient, name: string): Promise<void> {
  try {
    await dynamodb.send(new DeleteTableCommand({ TableName: name }));
  } catch (error) {
    if ((error as Error).name !== "ResourceNotFoundException") throw error;
  }
}
