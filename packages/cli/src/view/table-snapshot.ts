// One reading of a whole table: every key, with the content of its items, by the service's time. It does not depend on
// a terminal: the console uses the same functions.

import type { Item, LeaseClient, LeaseItemError } from "@leasehold/client";
import type { KeyDetails } from "@leasehold/client/admin";
import {
  attributeNames,
  coreOf,
  everyItem,
  historySortKeyPrefix,
  KeyDetailsReader,
  leaseItemKey,
  pagesOf,
  scan,
} from "@leasehold/client/internal";
import { CommandError, exitCodes } from "../exit-codes.ts";
import { durationText } from "../terminal/text.ts";
import { bytesOf, costText, type ReadCost, readCost } from "./read-cost.ts";

/** The service's time in epoch milliseconds; before the first answer, the machine's own. */
export function serviceNow(client: LeaseClient): number {
  return coreOf(client).clock.now();
}

/** The least that this machine's clock is ahead of the service's; negative for behind, 0 if they may agree. */
function machineAheadMs(client: LeaseClient): number {
  const ahead = coreOf(client).clock.ahead();
  if (ahead === undefined) return 0;
  if (ahead.minMs > 0) return -ahead.minMs;
  return ahead.maxMs < 0 ? -ahead.maxMs : 0;
}

/** A notice if this machine's clock is off by more than the allowance; otherwise undefined. */
export function clockNotice(client: LeaseClient): string | undefined {
  const aheadMs = machineAheadMs(client);
  if (Math.abs(aheadMs) <= coreOf(client).times.clockSkewMs) return undefined;
  const off = `${durationText(Math.abs(aheadMs))} ${aheadMs > 0 ? "ahead of" : "behind"}`;
  return `this machine's clock is ${off} DynamoDB's; all times here are told by DynamoDB's`;
}

/** A table as one scan shows it. */
export interface TableSnapshot {
  /** When it was read: epoch milliseconds of the service's clock. */
  readonly readAt: number;
  /** In the order of the keys. */
  readonly keys: readonly KeyDetails[];
  /** Items in the place of a lease that are no leases of this package. */
  readonly unreadable: readonly Pick<LeaseItemError, "key" | "sortKey" | "message">[];
  readonly cost: ReadCost;
}

/** The part of a table to read, and the limit of the read. */
export interface SnapshotOptions {
  /** The prefix of the keys. @default - all keys */
  readonly prefix?: string | undefined;
  /** Reads no more than about this many items; Infinity for all. @default 100000 */
  readonly mostItems?: number;
  readonly signal?: AbortSignal;
}

/** The default limit of items. */
export const usualMostItems = 100_000;
/** Items may be large: reading this much costs about a cent, and takes about a minute. */
const usualMostBytes = 256 * 1024 * 1024;

/** The table exceeds the limit of one reading. */
export class TableTooLargeError extends Error {
  override readonly name = "TableTooLargeError";
  /** The cost so far. */
  readonly cost: ReadCost;

  constructor(cost: ReadCost) {
    super(`${costText(cost)}, and there are more`);
    this.cost = cost;
  }
}

/**
 * Reads a table: 1 request for each megabyte of it, whatever the prefix is. The result may lag a moment behind.
 *
 * Rejects with TableTooLargeError, and with a CommandError (78) for a table of another schema.
 */
export async function readTable(client: LeaseClient, options: SnapshotOptions = {}): Promise<TableSnapshot> {
  const core = coreOf(client);
  const { prefix = "", mostItems = usualMostItems, signal } = options;
  const mostBytes = Number.isFinite(mostItems) ? usualMostBytes : Number.POSITIVE_INFINITY;
  const reading = new SnapshotReader(prefix, core.times.clockSkewMs);
  // Everything: the filter of a scan saves only transfer, and would hide the items that were paid for.
  const everything = everyItem();
  const page = (after: object) => scan(core, { ...everything, ...after }, { signal });
  for await (const { items, next } of pagesOf(page)) {
    // By the time of this answer, because reading a large table takes minutes.
    reading.read(items, core.clock.now());
    const { cost } = reading;
    if (next !== undefined && (cost.items >= mostItems || cost.bytes >= mostBytes)) {
      throw new TableTooLargeError(cost);
    }
  }
  // A table without pk has shown nothing: the answer to a read by pk and sk distinguishes it from an empty table.
  if (reading.cost.items === 0) {
    await core.get({ key: leaseItemKey("leasehold"), consistent: false });
  }
  return reading.snapshot(core.clock.now());
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
      unreadable: this.#unreadable.map(({ key, sortKey, message }) => ({ key, sortKey, message })),
      cost: this.cost,
    };
  }
}
