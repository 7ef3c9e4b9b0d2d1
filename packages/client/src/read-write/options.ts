/** What callers ask of a read-write lock, and what its readers and writers have to fit beside. */
import type { HoldOptions, WaitOptions } from "../options/options.ts";
import type { WaitOrder } from "../protocol/wait-order.ts";
import { type Seat, type SeatKind, seatLimits } from "../seats/schema.ts";
import type { Bounds } from "../seats/seat-form.ts";
import type { SeatRule } from "../seats/seat-item.ts";

/** The most readers at a time. */
export const mostReaders: number = seatLimits.mostSeats;

/** Options of a {@link ReadWriteLock}. */
export interface ReadWriteOptions {
  /**
   * In which order readers and writers that wait are let in: `fair()` of `@leasehold/client/fair`, or none. Callers
   * whose objects have no order are let in past those that wait in one. @default - none
   */
  readonly order?: WaitOrder;
}

/** Options of a read lock that is not waited for: a lease's, without `slot` and `lockAtLeastForMs`. */
export type TryReadOptions = Omit<HoldOptions, "slot" | "lockAtLeastForMs">;
/** Options of a read lock: a lease's, without `slot` and `lockAtLeastForMs`. */
export type ReadOptions = Omit<WaitOptions, "slot" | "lockAtLeastForMs">;
/** Options of a write lock that is not waited for: a lease's, without `slot` and `lockAtLeastForMs`. */
export type TryWriteOptions = TryReadOptions;
/** Options of a write lock: a lease's, without `slot` and `lockAtLeastForMs`. */
export type WriteOptions = ReadOptions;

export const lockOptionNames: readonly (keyof TryReadOptions)[] = [
  "leaseDurationMs",
  "heartbeat",
  "owner",
  "data",
  "signal",
  "reentrant",
];

const mostIntents = 100;

/** How many of each kind may be there already; an intent is what a writer that waits keeps new readers out by. */
const besides: Readonly<Partial<Record<SeatKind, Bounds>>> = {
  read: { write: 0, intent: 0, read: mostReaders - 1 },
  write: { write: 0, read: 0 },
  intent: { intent: mostIntents - 1 },
};

const bounds = ({ kind }: Seat): Bounds => besides[kind] ?? {};

/** A reentrant owner may read beside its own write lock. */
export const readRule: SeatRule = { kind: "read", permits: 1, bounds, beside: "write" };
export const writeRule: SeatRule = { kind: "write", permits: 1, bounds };
export const intentRule: SeatRule = { kind: "intent", permits: 1, bounds };
