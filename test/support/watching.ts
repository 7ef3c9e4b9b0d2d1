import type { LeaseRecord } from "@leasehold/client";

/** How long an observer has to watch a record before it calls its holder dead: a lease, and a margin for clocks' rates. */
export function watchedMs(leaseDurationMs: number): number {
  return leaseDurationMs * 1.0025;
}

/**
 * When a lease that nobody renews any more may be taken over first, in epoch milliseconds, by one who did not see it before
 * `unseenUntil`: at its expiry, or after watching it for all of its time. The second comes up to a second before the first,
 * for a holder only knows the service's time to the second, and writes the later end.
 */
export function takeableAt(lease: LeaseRecord | undefined, unseenUntil: number): number {
  if (lease === undefined) throw new Error("nobody holds the lock");
  return Math.min(lease.expiresAt, unseenUntil + lease.leaseDurationMs);
}
