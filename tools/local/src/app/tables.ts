// Creates the tables of the template, and deletes those with a suffix at the end.

import {
  CreateTableCommand,
  type CreateTableCommandInput,
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
  await dynamodb.send(new CreateTableCommand(createTableInput(spec)));
  const TableName = spec.name;
  const wait = { client: dynamodb, maxWaitTime: longestCreationSeconds, minDelay: 1, maxDelay: 1 };
  await waitUntilTableExists(wait, { TableName });
  if (spec.timeToLiveAttribute !== undefined) {
    const TimeToLiveSpecification = { AttributeName: spec.timeToLiveAttribute, Enabled: true };
    await dynamodb.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }));
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

function createTableInput(spec: TableSpec): CreateTableCommandInput {
  const { streamViewType } = spec;
  return {
    TableName: spec.name,
    BillingMode: "PAY_PER_REQUEST",
    AttributeDefinitions: spec.attributes.map(({ name, type }) => ({
      AttributeName: name,
      AttributeType: type,
    })),
    KeySchema: spec.key.map(({ name, type }) => ({ AttributeName: name, KeyType: type })),
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
