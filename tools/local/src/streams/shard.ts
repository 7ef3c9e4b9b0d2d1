// Reads one shard of a table's stream from front to back.

import {
  type DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  type GetShardIteratorInput,
  type _Record as StreamRecord,
} from "@aws-sdk/client-dynamodb-streams";

/** A shard, and how long it is read. */
export interface ShardPlace {
  readonly client: DynamoDBStreamsClient;
  readonly StreamArn: string;
  readonly ShardId: string;
  readonly signal: AbortSignal;
}

/** Finds a position: what is written after this has resolved is read from `LATEST`, and all that there is from `TRIM_HORIZON`. */
export async function openShard(
  { client, StreamArn, ShardId, signal: abortSignal }: ShardPlace,
  ShardIteratorType: GetShardIteratorInput["ShardIteratorType"],
  SequenceNumber?: string,
): Promise<string | undefined> {
  const command = new GetShardIteratorCommand({ StreamArn, ShardId, ShardIteratorType, SequenceNumber });
  return (await client.send(command, { abortSignal })).ShardIterator;
}

/** An iterator lives for 15 minutes, and records for 24 hours; DynamoDB Local on a busy machine loses a position sooner. */
const lostPosition: ReadonlySet<string> = new Set(["ExpiredIteratorException", "TrimmedDataAccessException"]);

/**
 * Reads a shard from an iterator on: gives the records of each answer, none where there was nothing new, and ends with the
 * shard or the signal. What goes wrong is reported, and tried again.
 */
export async function* readShard(
  place: ShardPlace,
  iterator: string | undefined,
  report: (error: unknown) => void,
): AsyncGenerator<readonly StreamRecord[]> {
  const { client, signal } = place;
  let [next, last] = [iterator, undefined as string | undefined];
  while (next !== undefined && !signal.aborted) {
    let records: readonly StreamRecord[] = [];
    try {
      // As many as the service gives in one answer.
      const command = new GetRecordsCommand({ ShardIterator: next, Limit: 1000 });
      const answer = await client.send(command, { abortSignal: signal });
      records = answer.Records ?? [];
      last = records.at(-1)?.dynamodb?.SequenceNumber ?? last;
      next = answer.NextShardIterator;
    } catch (error) {
      const { name } = error as Error;
      if (!lostPosition.has(name)) report(error);
      else {
        const isTrimmed = last === undefined || name === "TrimmedDataAccessException";
        const again = openShard(
          place,
          isTrimmed ? "TRIM_HORIZON" : "AFTER_SEQUENCE_NUMBER",
          isTrimmed ? undefined : last,
        );
        const lost = next;
        next = await again.catch((failed: unknown) => {
          report(failed);
          return lost;
        });
      }
    }
    yield records;
  }
}
