// Reads one shard in order. An iterator that has expired is replaced by one at the same position.

import {
  type DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  type _Record as StreamRecord,
} from "@aws-sdk/client-dynamodb-streams";

/** Records of one shard, in order. */
export interface ReadResult {
  readonly records: readonly StreamRecord[];
  /** Whether the shard has come to its end. */
  readonly closed: boolean;
}

/** The most that the service gives in one answer. */
const readLimit = 1000;

/** An iterator lives for 15 minutes, and records for 24 hours: a sleeping laptop outlives both. */
const lostPosition: ReadonlySet<string> = new Set(["ExpiredIteratorException", "TrimmedDataAccessException"]);

/** Reads one shard of a table's stream from front to back. */
export class ShardReader {
  readonly shardId: string;
  readonly #client: DynamoDBStreamsClient;
  readonly #streamArn: string;
  #iterator: string | undefined;
  #lastSequenceNumber: string | undefined;

  constructor(client: DynamoDBStreamsClient, streamArn: string, shardId: string) {
    this.#client = client;
    this.#streamArn = streamArn;
    this.shardId = shardId;
  }

  /** Finds its position. Records that are written after this has resolved are all read. */
  async open(position: "TRIM_HORIZON" | "LATEST", signal: AbortSignal): Promise<void> {
    this.#iterator = await this.#iteratorAt({ ShardIteratorType: position }, signal);
  }

  /** Reads what there is now. */
  async read(signal: AbortSignal): Promise<ReadResult> {
    if (this.#iterator === undefined) return { records: [], closed: true };
    const command = new GetRecordsCommand({ ShardIterator: this.#iterator, Limit: readLimit });
    try {
      const { Records: records = [], NextShardIterator: next } = await this.#client.send(command, {
        abortSignal: signal,
      });
      this.#lastSequenceNumber = records.at(-1)?.dynamodb?.SequenceNumber ?? this.#lastSequenceNumber;
      this.#iterator = next;
      return { records, closed: next === undefined };
    } catch (error) {
      if (!lostPosition.has((error as Error).name)) throw error;
      this.#iterator = await this.#resume((error as Error).name, signal);
      return { records: [], closed: false };
    }
  }

  #resume(reason: string, signal: AbortSignal): Promise<string | undefined> {
    const last = this.#lastSequenceNumber;
    return last === undefined || reason === "TrimmedDataAccessException"
      ? this.#iteratorAt({ ShardIteratorType: "TRIM_HORIZON" }, signal)
      : this.#iteratorAt({ ShardIteratorType: "AFTER_SEQUENCE_NUMBER", SequenceNumber: last }, signal);
  }

  async #iteratorAt(
    position: {
      readonly ShardIteratorType: "TRIM_HORIZON" | "LATEST" | "AFTER_SEQUENCE_NUMBER";
      readonly SequenceNumber?: string;
    },
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const command = new GetShardIteratorCommand({
      StreamArn: this.#streamArn,
      ShardId: this.shardId,
      ...position,
    });
    return (await this.#client.send(command, { abortSignal: signal })).ShardIterator;
  }
}
