/**
 * The content of an item of seats. Several leases share one item, so that one condition can limit their number. Each
 * lease has a seat, and the item counts what the seats take. A counter always equals the sum over the seats of its
 * kind.
 */

import type { SeatKind } from "../../base/lease-record.ts";

export type { Seat, SeatKind } from "../../base/lease-record.ts";

/** Sort keys of the items of seats: a semaphore's permits, and a read-write lock's readers and writers. */
export const seatSortKeys = { semaphore: "semaphore", readWrite: "read-write" } as const;

/** Whether the leases at a sort key are seats of one item. */
export function isSeatSortKey(sortKey: unknown): boolean {
  return sortKey === seatSortKeys.semaphore || sortKey === seatSortKeys.readWrite;
}

/** N: how much the seats of each kind take together. */
export const seatCounters: Readonly<Record<SeatKind, string>> = {
  permit: "permits",
  read: "readers",
  write: "writers",
  intent: "intents",
};

/** N: the `permits` of the last admitted caller's semaphore; informational. */
export const permitsOfAttribute = "permitsOf";

/** Limits of an item of seats. */
export const seatLimits = {
  /** A seat takes about 200 bytes of the item's 400 KB, and more with a long owner or a payload. */
  mostSeats: 1000,
  /** Our own limit: every write of the item is billed for the payloads of all seats. */
  dataBytes: 4096,
  /** Enough for one renewal a second for 31 years, and a tenth of what a seat's text has room for. */
  handleVersion: 1_000_000_000,
  /** DynamoDB allows 300 operators and 4 KB in an expression. */
  passedPerWrite: 60,
} as const;
