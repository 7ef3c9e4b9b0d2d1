/** A lease as the table shows it, and its state at a moment. */

/** A lock's state as the table shows it while its lease has not been released. */
export interface LeaseRecord {
  /** The lock's name. */
  readonly key: string;
  /** The sort key under the lock's name: "lease", or that of the permit, reader, run or task. */
  readonly sortKey: string;
  /** Readable label of the holder. */
  readonly owner: string;
  /** Unique id of the acquisition; `forceRelease` wants it. */
  readonly token: string;
  /** Grows with every write of this token. */
  readonly version: number;
  /** Grows with every acquisition of the key. */
  readonly fencingToken: number;
  /** Epoch milliseconds of the holder's clock. */
  readonly acquiredAt: number;
  /** Epoch milliseconds of the service's clock; of the holder's, with `ownClock`. */
  readonly expiresAt: number;
  /**
   * True if the service had not told the holder its time. Then `expiresAt` means nothing to other machines, and callers
   * take the lease over only after they have observed it unchanged for `leaseDurationMs` and a little more.
   */
  readonly ownClock?: boolean | undefined;
  readonly leaseDurationMs: number;
  /** Whether the lock was released early and is in its cooldown (`lockAtLeastForMs`) until `expiresAt`. */
  readonly inCooldown: boolean;
  /** Whether it was acquired with `reentrant`: then the same owner can acquire it again. */
  readonly reentrant: boolean;
  /** The holder's payload, if it stored one; also undefined if `invalidData` is present. */
  readonly data: unknown;
  /**
   * The stored text in place of a payload, if it is not JSON: another program or a person has written it. The lease
   * itself is valid.
   */
  readonly invalidData?: string;
  /** Why the holder was asked to stop, if it was. */
  readonly revocation: string | undefined;
  /** What the lease takes of an item that several leases share: one or more permits, a read lock or a write lock. */
  readonly seat?: Seat;
  /** Present while an operator keeps the lock closed on purpose, until `expiresAt`: nothing is stuck. */
  readonly pause?: Pause;
}

/** The kind of a seat. A writer that waits for readers to leave has an `intent`, which keeps new readers out. */
export type SeatKind = "permit" | "read" | "write" | "intent";

/** What a seat takes of its item. */
export interface Seat {
  readonly kind: SeatKind;
  /** How many permits it takes; 1 for every other kind. */
  readonly permits: number;
}

/** The operator who keeps a lock closed on purpose, and the reason. */
export interface Pause {
  readonly by: string;
  readonly reason: string;
}

/** How a lease can end, as the item remembers it. */
export type LeaseEnd = "released" | "completed" | "broken" | "takenOver";

/** The last holder before the present one, or before the lock became free. */
export interface LastHolder {
  readonly owner: string;
  /** Epoch milliseconds of that holder's clock. */
  readonly acquiredAt: number;
  /** Epoch milliseconds: when it was released or broken; for an expired lease, when another caller took it over. */
  readonly endedAt: number;
  /** `completed`: released, and its slot is done. `takenOver`: it was not released, and another caller took it over. */
  readonly end: LeaseEnd;
}

/**
 * The state of a lease at a moment.
 *
 * - `held`: it has not expired.
 * - `stopping`: the same, and its holder was asked to stop.
 * - `grace`: it has expired, but by less than `clockSkewMs`, or by the holder's own clock alone: no caller takes it
 *   over yet.
 * - `expired`: it has expired and was not released: the next caller takes it over.
 * - `cooldown`: it was released, and the lock stays closed until `expiresAt` (`lockAtLeastForMs`).
 * - `paused`: an operator keeps the lock closed until `expiresAt`.
 * - `free`: a cooldown or a pause that is over: the next caller gets the lock.
 */
export type LeaseState = "held" | "stopping" | "grace" | "expired" | "cooldown" | "paused" | "free";

/** The moment for which {@link leaseState} judges. */
export interface LeaseStateOptions {
  /** Epoch milliseconds, by a clock that is within `clockSkewMs` of the service's. */
  readonly nowMs: number;
  /** The client's allowance for different clocks. Infinity: no lease counts as expired by the time alone. */
  readonly clockSkewMs: number;
}

/** Returns a record's state, by the time alone. Sends nothing. */
export function leaseState(
  {
    expiresAt,
    ownClock = false,
    inCooldown,
    pause,
    revocation,
  }: Pick<LeaseRecord, "expiresAt" | "ownClock" | "inCooldown" | "pause" | "revocation">,
  { nowMs, clockSkewMs }: LeaseStateOptions,
): LeaseState {
  const isOver = nowMs > expiresAt + clockSkewMs;
  if (pause !== undefined || inCooldown) return isOver ? "free" : pause === undefined ? "cooldown" : "paused";
  if (nowMs > expiresAt) return isOver && !ownClock ? "expired" : "grace";
  return revocation === undefined ? "held" : "stopping";
}

/** When a lease was renewed last, or acquired if it was never renewed; in epoch milliseconds of its holder's clock. */
export function renewedAt({
  expiresAt,
  leaseDurationMs,
}: Pick<LeaseRecord, "expiresAt" | "leaseDurationMs">): number {
  return expiresAt - leaseDurationMs;
}
