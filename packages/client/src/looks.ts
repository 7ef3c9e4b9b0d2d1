import { LeaseItemError } from "./errors/errors.ts";
import { callBudgetMs, type ProtocolContext } from "./protocol/context.ts";
import { type LeaseRecord, readRecord } from "./record.ts";
import { attributeNames, type ItemKey } from "./schema.ts";
import { isSeatSortKey } from "./seats/schema.ts";
import { seatsIn } from "./seats/seat.ts";
import type { Item, QueryRequest } from "./store.ts";

/** How one look at others' leases is made. */
export interface LookOptions {
  /** A consistent look sees every earlier write and costs twice as much as one that may lag. */
  readonly consistent: boolean;
  /** @default 10000 */
  readonly budgetMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** Called for an item that cannot be read, which is passed over then. @default - the look rejects with the error */
  readonly onUnreadable?: (error: LeaseItemError) => void;
}

/** Reads all leases that a query finds and that have not been released: 1 request for each megabyte of items. */
export async function lookAtAll(
  { table }: Pick<ProtocolContext, "table">,
  query: Pick<QueryRequest, "keyCondition" | "names" | "values">,
  { consistent, budgetMs = callBudgetMs, signal, onUnreadable }: LookOptions,
): Promise<LeaseRecord[]> {
  const records: LeaseRecord[] = [];
  let after: ItemKey | undefined;
  do {
    const request = { ...query, consistent, ...(after === undefined ? {} : { after }) };
    const page = await table.query(request, { withinMs: budgetMs, signal });
    records.push(...recordsIn(page.items, onUnreadable));
    after = page.next;
  } while (after !== undefined);
  return records;
}

/** Gives the leases that an item shows: one, or every seat of an item of seats. Throws LeaseItemError. */
export function leasesIn(item: Item | undefined): readonly LeaseRecord[] {
  if (isSeatSortKey(item?.[attributeNames.sortKey])) return seatsIn(item);
  const record = readRecord(item);
  return record === undefined ? [] : [record];
}

/** Reads the leases among items; an item that cannot be read is passed over where somebody is told of it. */
export function* recordsIn(
  items: readonly Item[],
  onUnreadable: LookOptions["onUnreadable"],
): Generator<LeaseRecord, void, undefined> {
  for (const item of items) {
    const found =
      onUnreadable === undefined ? leasesIn(item) : unlessUnreadable(() => leasesIn(item), onUnreadable);
    if (found !== undefined) yield* found;
  }
}

/** Reads an item; gives undefined for one that cannot be read, and tells of it. */
export function unlessUnreadable<T>(
  read: () => T,
  onUnreadable: (error: LeaseItemError) => void,
): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof LeaseItemError)) throw error;
    onUnreadable(error);
    return undefined;
  }
}

/** Makes what publishes that an item was passed over. */
export function unreadableIn({ publish }: Pick<ProtocolContext, "publish">): (error: LeaseItemError) => void {
  return ({ key, sortKey, attribute, message }) =>
    publish({ type: "unreadable", key, sortKey, attribute, message });
}
