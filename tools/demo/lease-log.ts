import type { LeaseEvent } from "@leasehold/client";
import type { Grant } from "./lease-history.ts";

/** A lease event of one instance. */
export interface LoggedLeaseEvent {
  readonly instance: string;
  /** Epoch milliseconds: when the instance came to write it down, which may be long after it happened. */
  readonly at: number;
  readonly event: LeaseEvent;
}

/** Whether a lease's holder was killed or frozen by the plan. */
export type WasCutShort = (owner: string, fencingToken: number) => boolean;

/**
 * Says which leases ran out while their holders were alive: those got too little time to renew them.
 *
 * @param grants with the names of instances as owners
 */
export function ranOut(
  grants: readonly Grant[],
  log: readonly LoggedLeaseEvent[],
  wasCutShort: WasCutShort,
): string[] {
  const noticed = log.flatMap(({ instance: owner, event }) =>
    event.type === "lost" ? [{ owner, fencingToken: event.fencingToken }] : [],
  );
  const taken = grants.flatMap(({ from }) => (from === undefined ? [] : [from]));
  const owners = [...noticed, ...taken].flatMap(({ owner, fencingToken }) =>
    wasCutShort(owner, fencingToken) ? [] : [owner],
  );
  return [...new Set(owners)].map(
    (owner) => `a lease of ${owner} ran out while it was alive: its renewals came too late`,
  );
}

/** When the last lease ends that these events tell of, as far as it was told. Epoch milliseconds. */
export function endOfLease(log: readonly LoggedLeaseEvent[]): number {
  const ends = log.flatMap(({ event }) =>
    event.type === "acquired" || event.type === "renewed" ? [event.expiresAt] : [],
  );
  return Math.max(...ends);
}
