import type { LeaseItemError } from "../base/errors.ts";
import { unlessUnreadable } from "../base/item-values.ts";
import type { LeaseRecord } from "../base/lease-record.ts";
import { readRecord } from "../base/record.ts";
import { attributeNames } from "../base/schema.ts";
import type { Item } from "../base/store.ts";
import { isPauseAlone, isSeatSortKey, seatsIn } from "../primitives/seats/seat.ts";

/**
 * Returns the leases of an item: one, or every seat of an item of seats. For seats that exist only for a pause it
 * returns none, because the lock shows the pause. Throws LeaseItemError.
 */
export function leasesIn(item: Item | undefined): readonly LeaseRecord[] {
  if (item !== undefined && isSeatSortKey(item[attributeNames.sortKey]))
    return isPauseAlone(item) ? [] : seatsIn(item);
  const record = readRecord(item);
  return record === undefined ? [] : [record];
}

/** Reads the leases among items. Reports an unreadable item, and leaves it out. */
export function* recordsIn(
  items: readonly Item[],
  onUnreadable: (error: LeaseItemError) => void,
): Generator<LeaseRecord, void, undefined> {
  for (const item of items) yield* unlessUnreadable(() => leasesIn(item), onUnreadable) ?? [];
}
