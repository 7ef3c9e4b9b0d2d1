// One reading of a whole table: every key, with all that its items say of it. No terminal is known here: the console reads
// by the same functions.

import type { Item, LeaseClient, LeaseItemError } from "@leasehold/client";
import {
  attributeNames,
  everyItem,
  historySortKeyPrefix,
  internalsOf,
  KeyDetailsReader,
  leaseItemKey,
  pagesOf,
  unlessUnreadable,
} from "@leasehold/client/internal";
import { type KeyDetails, type LeaseSnapshot, snapshotOf } from "@leasehold/client/operator";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { bytesOf, costText, type ReadCost, readCost } from "./read-cost.ts";

/** A table as one scan has found it. */
export interface TableSnapshot {
  /** When it was read: epoch milliseconds of the service's clock. */
  readonly readAt: number;
  /** In the order of the keys. */
  readonly keys: readonly KeyDetails[];
  /** The fencing token that each item has given last, by the item's key: those of released locks too. */
  readonly fencingTokens: ReadonlyMap<string, number>;
  /** What each item has shown of its leases, by the item's key: to be compared with the next look. */
  readonly leaseItems: ReadonlyMap<string, LeaseSnapshot>;
  /** Items that are no leases of this package, though they have the place of one. */
  readonly unreadable: readonly Pick<LeaseItemError, "key" | "sortKey" | "message">[];
  readonly cost: ReadCost;
}

/** Which part of a table is wanted, and how much may be read for it. */
export interface SnapshotOptions {
  /** The text that keys begin with. @default - all keys */
  readonly prefix?: string | undefined;
  /** Reads no more than about this many items; Infinity for all. @default 100000 */
  readonly mostItems?: number;
  readonly signal?: AbortSignal;
}

/** More than this is not read unless the user has said so. */
export const usualMostItems = 100_000;
/** Items may be large: so much costs about a cent, and takes about a minute. */
const usualMostBytes = 256 * 1024 * 1024;

/** The table is larger than what may be read at once. */
export class TableTooLargeError extends Error {
  override readonly name = "TableTooLargeError";
  /** What was read until then. */
  readonly cost: ReadCost;

  constructor(cost: ReadCost) {
    super(`${costText(cost)}, and there are more`);
    this.cost = cost;
  }
}

/**
 * Reads a table: 1 request for each megabyte of it, whatever the prefix is. What it shows may lag a moment behind.
 *
 * Rejects with TableTooLargeError, and with a CommandError (78) for a table of another schema.
 */
export async function readTable(client: LeaseClient, options: SnapshotOptions = {}): Promise<TableSnapshot> {
  const { context } = internalsOf(client);
  const { prefix = "", mostItems = usualMostItems, signal } = options;
  const mostBytes = Number.isFinite(mostItems) ? usualMostBytes : Number.POSITIVE_INFINITY;
  const reading = new SnapshotReader(prefix, context.clockSkewMs);
  // Everything: the filter of a scan saves nothing but the way here, and would hide what was paid for.
  const everything = everyItem();
  const bounds = signal === undefined ? {} : { signal };
  const scan = (after: object) => context.table.scan({ ...everything, ...after }, bounds);
  for await (const { items, next } of pagesOf(scan)) {
    // By the time of its answer, for a large table takes minutes.
    reading.read(items, context.clock.now());
    const { cost } = reading;
    if (next !== undefined && (cost.items >= mostItems || cost.bytes >= mostBytes)) {
      throw new TableTooLargeError(cost);
    }
  }
  // A table without pk has shown nothing: its answer to a read by pk and sk tells it from an empty one.
  if (reading.cost.items === 0) {
    await context.table.get({ key: leaseItemKey("leasehold"), consistent: false });
  }
  return reading.snapshot(context.clock.now());
}

/** A key, and when its items were read. */
interface KeyReading {
  readonly reader: KeyDetailsReader;
  readonly readAt: number;
}

/** Sorts a table's items by their keys. */
class SnapshotReader {
  readonly #prefix: string;
  readonly #clockSkewMs: number;
  readonly #keys = new Map<string, KeyReading>();
  readonly #fencingTokens = new Map<string, number>();
  readonly #leaseItems = new Map<string, LeaseSnapshot>();
  readonly #unreadable: LeaseItemError[] = [];
  #items = 0;
  #bytes = 0;

  constructor(prefix: string, clockSkewMs: number) {
    this.#prefix = prefix;
    this.#clockSkewMs = clockSkewMs;
  }

  get cost(): ReadCost {
    return readCost(this.#items, this.#bytes);
  }

  read(items: readonly Item[], readAt: number): void {
    for (const item of items) {
      this.#items += 1;
      this.#bytes += bytesOf(item);
      this.#readItem(item, readAt);
    }
  }

  #readItem(item: Item, readAt: number): void {
    const { [attributeNames.partitionKey]: key, [attributeNames.sortKey]: sortKey } = item;
    if (typeof key !== "string" || typeof sortKey !== "string") {
      const message =
        "this is no lease table: it has items without the texts pk and sk; leasehold table check tells more";
      throw new CommandError(message, exitCodes.configuration);
    }
    if (!key.startsWith(this.#prefix) || sortKey.startsWith(historySortKeyPrefix)) return;
    const fencingToken = item[attributeNames.fence];
    if (typeof fencingToken === "number") this.#fencingTokens.set(itemName(key, sortKey), fencingToken);
    const seen = unlessUnreadable(() => snapshotOf(item), ignored);
    if (seen !== undefined) this.#leaseItems.set(itemName(key, sortKey), seen);
    const reader =
      this.#keys.get(key)?.reader ?? new KeyDetailsReader(key, (error) => this.#unreadable.push(error));
    reader.read(item);
    this.#keys.set(key, { reader, readAt });
  }

  snapshot(readAt: number): TableSnapshot {
    const clockSkewMs = this.#clockSkewMs;
    const keys = [...this.#keys.values()].map((one) =>
      one.reader.details({ nowMs: one.readAt, clockSkewMs }),
    );
    return {
      readAt,
      keys: keys.sort((one, other) => (one.key < other.key ? -1 : 1)),
      fencingTokens: this.#fencingTokens,
      leaseItems: this.#leaseItems,
      unreadable: this.#unreadable.map(({ key, sortKey, message }) => ({ key, sortKey, message })),
      cost: this.cost,
    };
  }
}

/** The reader of the key has reported it. */
function ignored(): void {}

/** One name for each item of a table. */
export function itemName(key: string, sortKey: string): string {
  return JSON.stringify([key, sortKey]);
}
