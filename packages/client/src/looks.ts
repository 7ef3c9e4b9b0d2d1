import type { Core } from "./core/core.ts";
import { LeaseItemError } from "./errors/errors.ts";
import { type LeaseRecord, readRecord } from "./record.ts";
import { attributeNames } from "./schema.ts";
import { isSeatSortKey } from "./seats/schema.ts";
import { isPauseAlone, seatsIn } from "./seats/seat.ts";
import type { Item } from "./store.ts";

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

/** Reads an item. Reports an unreadable item, and returns undefined. */
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

/** Returns a function that publishes `unreadable` for an item that was left out. */
export function unreadableIn(core: Pick<Core, "publish">): (error: LeaseItemError) => void {
  return ({ key, sortKey, attribute, message }) =>
    core.publish({ type: "unreadable", key, sortKey, attribute, message });
}
