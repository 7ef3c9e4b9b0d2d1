/** The measurements of a store besides its conformance: latency, the throughput of one item, the largest batch. */
import { systemClock } from "../../base/clock.ts";
import { LeaseError } from "../../base/errors.ts";
import { utf8Bytes } from "../../base/schema.ts";
import {
  type CallOptions,
  type Item,
  type LeaseStore,
  mostUpdatesTogether,
  type UpdateRequest,
} from "../../base/store.ts";
import type { CheckTable } from "./check.ts";
import { observed } from "./observed.ts";

const writesInTurn = 100;
const writesAtOnce = 200;
const measuringWriters = 10;

/** The measurements of a store. */
export interface ConformanceMeasurements {
  /** How long one conditional write of one item took, in milliseconds. */
  readonly writeMs: { readonly p50: number; readonly p99: number; readonly of: number };
  /** Conditional writes of one item a second, by 10 writers at the same time. */
  readonly writesPerSecond: number;
  /** How many writes of different items one request took; 1 if they are sent one by one. */
  readonly largestBatch: number;
  /** How far the service's clock is ahead of this machine's; undefined where the answers tell no time. */
  readonly clockOffset: ClockOffset | undefined;
}

/** Measures on the table's own items. */
export async function measure(
  table: CheckTable,
  signal: AbortSignal | undefined,
): Promise<Omit<ConformanceMeasurements, "clockOffset">> {
  const countUp = { set: "#n = if_not_exists(#n, 0) + 1" };
  const times: number[] = [];
  for (let turn = 0; turn < writesInTurn; turn += 1) {
    signal?.throwIfAborted();
    times.push(await timed(() => table.write("latency", countUp)));
  }
  times.sort((one, other) => one - other);
  const rank = (share: number): number => times[Math.ceil(share * times.length) - 1] ?? 0;
  const tookMs = await timed(async () => {
    const each = Array.from({ length: writesAtOnce / measuringWriters });
    await Promise.all(
      Array.from({ length: measuringWriters }, async () => {
        for (const _ of each) await table.write("throughput", countUp);
      }),
    );
  });
  return {
    writeMs: { p50: rank(0.5), p99: rank(0.99), of: times.length },
    writesPerSecond: (writesAtOnce / tookMs) * 1_000,
    largestBatch: await largestBatch(table),
  };
}

async function largestBatch(table: CheckTable): Promise<number> {
  const names = Array.from({ length: mostUpdatesTogether }, (_, index) => `batch${index}`);
  // A batch changes existing items; a new item needs a separate write.
  for (const sk of names) await table.put(sk, { n: 1 });
  const requests = names.map((sk) => table.writeOf(sk, { set: "#n = 2", when: "#n = 1" }).request());
  const results = await table.store.updateMany(requests, table.call);
  const taken = results.filter((result) => result !== undefined && !(result instanceof LeaseError));
  return Math.max(1, taken.length);
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = systemClock.monotonic();
  await work();
  return systemClock.monotonic() - startedAt;
}

const bytesPerWriteUnit = 1_024;
const bytesPerReadUnit = 4_096;
const bytesOfNumber = 8;

/** The calls of a store, and their approximate cost in DynamoDB's capacity units. */
export interface ConformanceCost {
  /** Calls of the store. Many writes in one call can be several requests. */
  readonly calls: number;
  /** Write capacity units: those of refused writes too. */
  readonly writeUnits: number;
  /** Read capacity units, without what a filter leaves out. */
  readonly readUnits: number;
}

/** Bounds of how far the service's clock is ahead of this machine's, in milliseconds. */
export interface ClockOffset {
  readonly leastMs: number;
  readonly mostMs: number;
}

/** Counts the requests of a store, estimates their cost, and notes the time in their answers. */
export class Meter {
  /** The store whose requests are counted. */
  readonly store: LeaseStore;
  /** The largest size of each item in bytes: DynamoDB counts a write by the larger of both states. */
  readonly #bytes = new Map<string, number>();
  #cost: ConformanceCost = { calls: 0, writeUnits: 0, readUnits: 0 };
  #offset: ClockOffset | undefined;

  constructor(store: LeaseStore) {
    this.store = observed(store, {
      writing: (writes, isTransaction) => {
        const units = sum(writes.map((write) => this.#writeUnits(write)));
        this.#count({ writeUnits: isTransaction ? 2 * units : units });
      },
      read: (items, isConsistent) => this.#count({ readUnits: readUnits(items, isConsistent) }),
      options: (call) => this.#timed(call),
    });
  }

  /** The requests so far. */
  get cost(): ConformanceCost {
    return this.#cost;
  }

  /** The service's time by the answers; undefined if they told no time. */
  get clockOffset(): ClockOffset | undefined {
    return this.#offset;
  }

  #count({ writeUnits = 0, readUnits: read = 0 }: Partial<ConformanceCost>): void {
    const { calls, ...units } = this.#cost;
    this.#cost = {
      calls: calls + 1,
      writeUnits: units.writeUnits + writeUnits,
      readUnits: units.readUnits + read,
    };
  }

  #writeUnits({ key, values }: Pick<UpdateRequest, "key" | "values">): number {
    const id = JSON.stringify([key.pk, key.sk]);
    const bytes = Math.max(this.#bytes.get(id) ?? 0, bytesOf({ ...values, ...key }));
    this.#bytes.set(id, bytes);
    return Math.ceil(bytes / bytesPerWriteUnit);
  }

  /** Every answer narrows the bounds. If the bounds cross, the service's clocks differ: then the last answer counts. */
  #timed(call: CallOptions): CallOptions {
    return {
      signal: call.signal,
      isCurrent: call.isCurrent,
      timed: () => {
        const answered = call.timed?.();
        const sentAt = systemClock.now();
        return (time) => {
          answered?.(time);
          if (time === undefined) return;
          const newest = { leastMs: time.earliest - systemClock.now(), mostMs: time.latest - sentAt };
          const known = this.#offset ?? newest;
          const both = {
            leastMs: Math.max(known.leastMs, newest.leastMs),
            mostMs: Math.min(known.mostMs, newest.mostMs),
          };
          this.#offset = both.leastMs > both.mostMs ? newest : both;
        };
      },
    };
  }
}

function readUnits(items: readonly Item[], isConsistent: boolean): number {
  const units = Math.max(1, Math.ceil(sum(items.map(bytesOf)) / bytesPerReadUnit));
  return isConsistent ? units : units / 2;
}

function bytesOf(item: Item): number {
  const bytes = Object.entries(item).map(
    ([name, value]) => utf8Bytes(name) + (typeof value === "string" ? utf8Bytes(value) : bytesOfNumber),
  );
  return sum(bytes);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
