// One reading of a whole table: every key, with the content of its items, by the service's time. It does not depend on
// a terminal: the console uses the same functions.

import type { Item, LeaseClient, LeaseItemError } from "@leasehold/client";
import type { KeyDetails } from "@leasehold/client/admin";
import {
  attributeNames,
  coreOf,
  everyItem,
  historySortKeyPrefix,
  ifOperational,
  KeyDetailsReader,
  leaseItemKey,
  pagesOf,
  scan,
} from "@leasehold/client/internal";
import { CommandError, exitCodes } from "../exit-codes.ts";
import type { TableSize } from "../table/place.ts";
import { durationText } from "../terminal/text.ts";
import { bytesOf, costText, dollarsText, type ReadCost, readCost, unitsText } from "./read-cost.ts";

/** The service's time in epoch milliseconds; before the first answer, the machine's own. */
export function serviceNow(client: LeaseClient): number {
  return coreOf(client).clock.now();
}

/** The service's time. 1 read, of this key, if no answer has told it: this machine's clock may be wrong. */
export async function toldNow(client: LeaseClient, key: string): Promise<number> {
  const { clock } = coreOf(client);
  if (!clock.isTold) await client.doneSlot(key);
  return clock.now();
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
  /** Tells the size of the table, for the price in the error of one that is too large. @default - no price */
  readonly describeTable?: () => Promise<TableSize | undefined>;
}

/** The default limit of items. */
export const usualMostItems = 100_000;
/** Items may be large: reading this much costs about a cent, and takes about a minute. */
const usualMostBytes = 256 * 1024 * 1024;

/**
 * Reads a table: 1 request for each megabyte of it, whatever the prefix is. The result may lag a moment behind.
 *
 * Rejects with an error for a table that is too large, and with a CommandError (78) for one of another schema.
 */
export async function readTable(client: LeaseClient, options: SnapshotOptions = {}): Promise<TableSnapshot> {
  const core = coreOf(client);
  const { clockSkewMs } = core.times;
  const { prefix = "", mostItems = usualMostItems, describeTable } = options;
  const mostBytes = Number.isFinite(mostItems) ? usualMostBytes : Number.POSITIVE_INFINITY;
  const readers = new Map<string, KeyDetailsReader>();
  /** By key, the time of the last answer that had items of it: reading a large table takes minutes. */
  const readAt = new Map<string, number>();
  const unreadable: LeaseItemError[] = [];
  let cost = readCost(0, 0);
  // Everything: the filter of a scan saves only transfer, and would hide the items that were paid for.
  const everything = everyItem();
  const page = (after: object) => scan(core, { ...everything, ...after });
  for await (const { items, next } of pagesOf(page)) {
    const now = core.clock.now();
    for (const item of items) {
      cost = readCost(cost.items + 1, cost.bytes + bytesOf(item));
      const { key, sortKey } = placeIn(item);
      if (!key.startsWith(prefix) || sortKey.startsWith(historySortKeyPrefix)) continue;
      const reader = readers.get(key) ?? new KeyDetailsReader(key, (error) => unreadable.push(error));
      reader.read(item);
      readers.set(key, reader);
      readAt.set(key, now);
    }
    if (next !== undefined && (cost.items >= mostItems || cost.bytes >= mostBytes)) {
      if (describeTable !== undefined) throw await tooLargeError(cost, describeTable);
      throw new Error(`${costText(cost)}, and there are more`);
    }
  }
  // A table without pk has shown nothing: the answer to a read by pk and sk distinguishes it from an empty table.
  if (cost.items === 0) await core.get({ key: leaseItemKey("leasehold"), consistent: false });
  const keys = [...readers].map(([key, reader]) =>
    reader.details({ nowMs: readAt.get(key) ?? core.clock.now(), clockSkewMs }),
  );
  return {
    readAt: core.clock.now(),
    keys: keys.sort((one, other) => (one.key < other.key ? -1 : 1)),
    unreadable: unreadable.map(({ key, sortKey, message }) => ({ key, sortKey, message })),
    cost,
  };
}

/** The place of an item. Throws a CommandError (78) for one that no lease table has. */
function placeIn(item: Item): { readonly key: string; readonly sortKey: string } {
  const { [attributeNames.partitionKey]: key, [attributeNames.sortKey]: sortKey } = item;
  if (typeof key === "string" && typeof sortKey === "string") return { key, sortKey };
  throw new CommandError(
    "this is no lease table: it has items without the texts pk and sk; leasehold table check tells more",
    exitCodes.configuration,
  );
}

/** The error of a table that is too large, with the cost of reading all of it. */
export async function tooLargeError(
  cost: ReadCost,
  describeTable: () => Promise<TableSize | undefined>,
): Promise<CommandError> {
  // A missing permission must not hide the cost of what was read.
  const size = await describeTable().catch(ifOperational(undefined));
  const all = size && readCost(Math.max(size.items, cost.items), Math.max(size.bytes, cost.bytes));
  const whole =
    all === undefined
      ? "there are more"
      : `the table has about ${all.items.toLocaleString("en-US")} items: reading all costs ${unitsText(all.units)} RCU, ${dollarsText(all.dollars)}`;
  const message = `stopped after ${costText(cost)}; ${whole}. --scan reads all; leasehold get KEY reads one key`;
  return new CommandError(message, exitCodes.usage);
}
