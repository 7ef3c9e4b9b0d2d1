// Feeds one function from one stream: each shard in order, and after its parent.

import {
  DescribeStreamCommand,
  type DynamoDBStreamsClient,
  GetRecordsCommand,
  GetShardIteratorCommand,
  type Shard,
  type _Record as StreamRecord,
} from "@aws-sdk/client-dynamodb-streams";
import { systemClock } from "@leasehold/client";
import type { StreamMappingSpec } from "../assembly/types.ts";
import { type DeliveryPorts, deliver, type FailedBatch, pause } from "./delivery.ts";
import { type StreamEventRecord, toEventRecord } from "./event.ts";
import { compileFilters, type Filter } from "./filter.ts";

/** What a poller works with. */
interface StreamPollerOptions {
  readonly mapping: StreamMappingSpec;
  readonly client: DynamoDBStreamsClient;
  /** The ARN by which the engine knows the stream; the functions see the mapping's. */
  readonly engineStreamArn: string;
  readonly region: string;
  /** Rejects only when the function could not be invoked at all, and when the signal aborts. */
  readonly invoke: DeliveryPorts["invoke"];
  readonly onFailure: (batch: FailedBatch & { readonly shardId: string }) => void;
  /** Takes what goes wrong between here and the engine; the poller goes on. @default - dropped */
  readonly onError?: (error: unknown) => void;
  /** The pause after a read that brought nothing. @default 200 */
  readonly pollMs?: number;
  /** How often new shards are looked for. @default 10000 */
  readonly discoverMs?: number;
  /** The wait before the first retry of a batch. */
  readonly retryDelayMs: number;
}

/**
 * Feeds a function from a table's stream, as Lambda's event source mapping does: shards in parallel, the records of
 * each shard in order, one batch at a time, and a shard only after its parent.
 *
 * Throws UnsupportedFilterError for a filter that is not known here.
 */
export class StreamPoller {
  readonly #options: StreamPollerOptions;
  readonly #filter: Filter;
  readonly #stopping = new AbortController();
  readonly #shards = new Map<string, Promise<void>>();
  #discovery: Promise<void> | undefined;

  constructor(options: StreamPollerOptions) {
    this.#options = options;
    this.#filter = compileFilters(options.mapping.filters);
  }

  /** Resolves when it is in place: what is written afterwards reaches the function. */
  async start(): Promise<void> {
    const { signal } = this.#stopping;
    await this.#discover(this.#options.mapping.startingPosition, signal);
    this.#discovery = this.#keepDiscovering(signal);
  }

  /** Stops reading and resolves when nothing of it is under way; an invocation that has begun is told to abort. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#discovery;
    await Promise.all(this.#shards.values());
  }

  async #keepDiscovering(signal: AbortSignal): Promise<void> {
    // An engine may show the first shard only once there is a record.
    const discoverMs = this.#options.discoverMs ?? 10_000;
    while (!signal.aborted) {
      const waitMs = this.#shards.size === 0 ? this.#pollMs : discoverMs;
      await pause(systemClock, waitMs, signal);
      if (signal.aborted) return;
      try {
        // A shard that appears now has nothing from before the start.
        await this.#discover("TRIM_HORIZON", signal);
      } catch (error) {
        this.#report(error, signal);
      }
    }
  }

  async #discover(position: "TRIM_HORIZON" | "LATEST", signal: AbortSignal): Promise<void> {
    for (const shard of await this.#listShards(signal)) {
      const id = shard.ShardId;
      if (id === undefined || this.#shards.has(id)) continue;
      const reader = new ShardReader(this.#options.client, this.#options.engineStreamArn, id);
      await reader.open(position, signal);
      const parent = shard.ParentShardId === undefined ? undefined : this.#shards.get(shard.ParentShardId);
      const work = this.#consume(reader, parent, signal);
      this.#shards.set(
        id,
        work.catch((error: unknown) => this.#report(error, signal)),
      );
    }
  }

  async #listShards(signal: AbortSignal): Promise<Shard[]> {
    const shards: Shard[] = [];
    let last: string | undefined;
    do {
      const command = new DescribeStreamCommand({
        StreamArn: this.#options.engineStreamArn,
        ...(last === undefined ? {} : { ExclusiveStartShardId: last }),
      });
      const { StreamDescription } = await this.#options.client.send(command, { abortSignal: signal });
      shards.push(...(StreamDescription?.Shards ?? []));
      last = StreamDescription?.LastEvaluatedShardId;
    } while (last !== undefined);
    return shards;
  }

  async #consume(reader: ShardReader, parent: Promise<void> | undefined, signal: AbortSignal): Promise<void> {
    await parent;
    const { batchSize } = this.#options.mapping;
    let closed = false;
    while (!signal.aborted && !closed) {
      let records: readonly StreamEventRecord[] = [];
      try {
        const result = await reader.read(signal);
        closed = result.closed;
        records = this.#passing(result.records);
      } catch (error) {
        this.#report(error, signal);
      }
      for (let start = 0; start < records.length && !signal.aborted; start += batchSize)
        await this.#deliver(reader.shardId, records.slice(start, start + batchSize), signal);
      if (records.length === 0 && !closed) await pause(systemClock, this.#pollMs, signal);
    }
  }

  #passing(records: Awaited<ReturnType<ShardReader["read"]>>["records"]): StreamEventRecord[] {
    const source = { arn: this.#options.mapping.streamArn, region: this.#options.region };
    return records.map((record) => toEventRecord(record, source)).filter((record) => this.#filter(record));
  }

  #deliver(shardId: string, records: readonly StreamEventRecord[], signal: AbortSignal): Promise<void> {
    const { mapping, retryDelayMs, invoke, onFailure } = this.#options;
    const { retries, reportsItemFailures } = mapping;
    return deliver(
      records,
      { retries, reportsItemFailures, retryDelayMs },
      {
        invoke,
        onFailure: (batch) => onFailure({ ...batch, shardId }),
        signal,
      },
    );
  }

  get #pollMs(): number {
    return this.#options.pollMs ?? 200;
  }

  #report(error: unknown, signal: AbortSignal): void {
    if (!signal.aborted) this.#options.onError?.(error);
  }
}

/** Records of one shard, in order. */
interface ReadResult {
  readonly records: readonly StreamRecord[];
  /** Whether the shard has come to its end. */
  readonly closed: boolean;
}

/** The most that the service gives in one answer. */
const readLimit = 1000;

/** An iterator lives for 15 minutes, and records for 24 hours; DynamoDB Local on a busy machine loses a position sooner. */
const lostPosition: ReadonlySet<string> = new Set(["ExpiredIteratorException", "TrimmedDataAccessException"]);

/** Reads one shard of a table's stream from front to back. */
class ShardReader {
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
