/** The state of a lease by its record and a moment: pure functions, for tools that show leases. */
import type { LeaseRecord } from "./lease-record.ts";

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
