// Feeds one function from one stream: each shard in order, and after its parent.

import { DescribeStreamCommand, type DynamoDBStreamsClient } from "@aws-sdk/client-dynamodb-streams";
import { systemClock } from "@leasehold/client";
import type { StreamMappingSpec } from "../assembly/types.ts";
import { type DeliveryPorts, deliver, type FailedBatch, pause } from "./delivery.ts";
import { type StreamEventRecord, toEventRecord } from "./event.ts";
import { compileFilters, type Filter } from "./filter.ts";
import { openShard, readShard, type ShardPlace } from "./shard.ts";

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
    const { client, engineStreamArn: StreamArn } = this.#options;
    const { StreamDescription } = await client.send(new DescribeStreamCommand({ StreamArn }), {
      abortSignal: signal,
    });
    for (const { ShardId, ParentShardId = "" } of StreamDescription?.Shards ?? []) {
      if (ShardId === undefined || this.#shards.has(ShardId)) continue;
      const place = { client, StreamArn, ShardId, signal };
      const iterator = await openShard(place, position);
      const work = this.#consume(place, iterator, this.#shards.get(ParentShardId));
      this.#shards.set(
        ShardId,
        work.catch((error: unknown) => this.#report(error, signal)),
      );
    }
  }

  async #consume(
    place: ShardPlace,
    iterator: string | undefined,
    parent: Promise<void> | undefined,
  ): Promise<void> {
    await parent;
    const { signal } = place;
    const { batchSize, streamArn: arn } = this.#options.mapping;
    const source = { arn, region: this.#options.region };
    for await (const found of readShard(place, iterator, (error) => this.#report(error, signal))) {
      const records = found.map((record) => toEventRecord(record, source)).filter(this.#filter);
      for (let start = 0; start < records.length && !signal.aborted; start += batchSize)
        await this.#deliver(place.ShardId, records.slice(start, start + batchSize), signal);
      if (records.length === 0) await pause(systemClock, this.#pollMs, signal);
      if (signal.aborted) return;
    }
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
