import { type AttributeValue, DescribeTableCommand, type DynamoDBClient } from "@aws-sdk/client-dynamodb";
import {
  DescribeStreamCommand,
  type DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
} from "@aws-sdk/client-dynamodb-streams";
import { unmarshall } from "@aws-sdk/util-dynamodb";
import { type LeaseRecord, readRecord } from "@leasehold/client/record";
import type { LeaseChange } from "./lease-history.ts";

type Image = Record<string, AttributeValue> | undefined;

/** Reads every write of a lease table from its stream, in the order in which the table made them. */
export async function leaseChanges(
  dynamodb: DynamoDBClient,
  streams: DynamoDBStreamsClient,
  tableName: string,
): Promise<LeaseChange[]> {
  const { Table } = await dynamodb.send(new DescribeTableCommand({ TableName: tableName }));
  const StreamArn = Table?.LatestStreamArn;
  const { StreamDescription } = await streams.send(new DescribeStreamCommand({ StreamArn }));
  const changes: LeaseChange[] = [];
  // A shard comes after its parent, and an item is in one of them.
  for (const { ShardId } of StreamDescription?.Shards ?? []) {
    const start = { StreamArn, ShardId, ShardIteratorType: "TRIM_HORIZON" } as const;
    let { ShardIterator } = await streams.send(new GetShardIteratorCommand(start));
    while (ShardIterator !== undefined) {
      const { Records = [], NextShardIterator } = await streams.send(
        new GetRecordsCommand({ ShardIterator }),
      );
      for (const { dynamodb: change } of Records) {
        changes.push({ before: leaseIn(change?.OldImage), after: leaseIn(change?.NewImage) });
      }
      // An open shard has no end: an empty answer says that this was all.
      ShardIterator = Records.length === 0 ? undefined : NextShardIterator;
    }
  }
  return changes;
}

function leaseIn(image: Image): LeaseRecord | undefined {
  return readRecord(image && unmarshall(image));
}
