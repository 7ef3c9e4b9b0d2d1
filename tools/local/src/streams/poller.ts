// Feeds one function from one stream: each shard in order, and after its parent.

import {
  DescribeStreamCommand,
  type DynamoDBStreamsClient,
  type Shard,
} from "@aws-sdk/client-dynamodb-streams";
import { type Clock, systemClock } from "@leasehold/client";
import type { StreamMappingSpec } from "../assembly/types.ts";
import { type DeliveryPorts, deliver, type FailedBatch, pause } from "./delivery.ts";
import { type StreamEventRecord, toEventRecord } from "./event.ts";
import { compileFilters, type Filter } from "./filter.ts";
import { ShardReader } from "./shard-reader.ts";

/** What a poller works with. */
export interface StreamPollerOptions {
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
  /** The wait before the first retry of a batch. @default 1000 */
  readonly retryDelayMs?: number;
  /** @default - the machine's own */
  readonly clock?: Clock;
}

/**
 * Feeds a function from a table's stream, as Lambda's event source mapping does: shards in parallel, the records of
 * each shard in order, one batch at a time, and a shard only after its parent.
 *
 * Throws UnsupportedFilterError for a filter that is not known here.
 */
export class StreamPoller {
  readonly #options: StreamPollerOptions;
  readonly #clock: Clock;
  readonly #filter: Filter;
  readonly #stopping = new AbortController();
  readonly #shards = new Map<string, Promise<void>>();
  #discovery: Promise<void> | undefined;

  constructor(options: StreamPollerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
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
      await pause(this.#clock, waitMs, signal);
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
    const { batchSize, batchingWindowMs } = this.#options.mapping;
    const pending: StreamEventRecord[] = [];
    let openSince = 0;
    let closed = false;
    while (!signal.aborted && !(closed && pending.length === 0)) {
      const fresh: StreamEventRecord[] = [];
      try {
        const result = await reader.read(signal);
        closed = result.closed;
        fresh.push(...this.#passing(result.records));
      } catch (error) {
        this.#report(error, signal);
      }
      if (pending.length === 0) openSince = this.#clock.monotonic();
      pending.push(...fresh);
      const due = closed || this.#clock.monotonic() - openSince >= batchingWindowMs;
      while (pending.length >= batchSize || (due && pending.length > 0)) {
        if (signal.aborted) return;
        await this.#deliver(reader.shardId, pending.splice(0, batchSize), signal);
      }
      if (fresh.length === 0 && !closed) await pause(this.#clock, this.#pollMs, signal);
    }
  }

  #passing(records: Awaited<ReturnType<ShardReader["read"]>>["records"]): StreamEventRecord[] {
    const source = { arn: this.#options.mapping.streamArn, region: this.#options.region };
    return records.map((record) => toEventRecord(record, source)).filter((record) => this.#filter(record));
  }

  #deliver(shardId: string, records: readonly StreamEventRecord[], signal: AbortSignal): Promise<void> {
    const { mapping, retryDelayMs, invoke, onFailure } = this.#options;
    const { retries, reportsItemFailures } = mapping;
    const rules = { retries, reportsItemFailures, ...(retryDelayMs === undefined ? {} : { retryDelayMs }) };
    return deliver(records, rules, {
      invoke,
      onFailure: (batch) => onFailure({ ...batch, shardId }),
      clock: this.#clock,
      signal,
    });
  }

  get #pollMs(): number {
    return this.#options.pollMs ?? 200;
  }

  #report(error: unknown, signal: AbortSignal): void {
    if (!signal.aborted) this.#options.onError?.(error);
  }
}
