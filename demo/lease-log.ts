import type { LeaseEvent } from "@leasehold/client";

/** A lease event of one instance. */
export interface LoggedLeaseEvent {
  readonly instance: string;
  /** Epoch milliseconds. */
  readonly at: number;
  readonly event: LeaseEvent;
}

/** A lease as its holder's log shows it. */
export interface Grant {
  readonly instance: string;
  /** The lease's sort key. */
  readonly place: string;
  readonly fencingToken: number;
  /** When the call for it was made: not after the lease began. */
  readonly since: number;
}

/** The leases that were granted, in the order of the log. */
export function grantsIn(log: readonly LoggedLeaseEvent[]): Grant[] {
  return log.flatMap(({ instance, at, event }) => {
    if (event.type !== "acquired") return [];
    const { place, fencingToken, waitedMs } = event;
    return [{ instance, place, fencingToken, since: at - waitedMs }];
  });
}

/** Counts the leases that began before the one before at the same place had been released or had expired. */
export function overlaps(log: readonly LoggedLeaseEvent[]): number {
  const places = Map.groupBy(grantsIn(log), ({ place }) => place);
  return [...places.values()].reduce((sum, grants) => sum + overlapsOf(grants, log), 0);
}

function overlapsOf(grants: readonly Grant[], log: readonly LoggedLeaseEvent[]): number {
  const inOrder = grants.toSorted((one, other) => one.fencingToken - other.fencingToken);
  return inOrder.filter(({ since }, index) => {
    const former = inOrder[index - 1];
    return former !== undefined && since < endOf(former, log);
  }).length;
}

/** A lease ends with its release, or else at the expiry that its successor found. */
function endOf({ place, fencingToken }: Grant, log: readonly LoggedLeaseEvent[]): number {
  const ends = log.flatMap(({ at, event }) => {
    if (event.type === "skew" || event.place !== place) return [];
    if (event.type === "released" && event.confirmed && event.fencingToken === fencingToken) return [at];
    if (event.type === "takeover" && event.from.fencingToken === fencingToken) return [event.from.expiresAt];
    return [];
  });
  return Math.min(...ends);
}

/**
 * The names of those whose leases were taken over. One who was not cut short is marked: nobody should have had to.
 *
 * @param wasCutShort whether a lease's holder was killed or frozen
 */
export function takenOver(
  log: readonly LoggedLeaseEvent[],
  wasCutShort: (instance: string, fencingToken: number) => boolean,
): string[] {
  return log.flatMap(({ event }) => {
    if (event.type !== "takeover") return [];
    const { owner, fencingToken } = event.from;
    return [wasCutShort(owner, fencingToken) ? owner : `${owner} (who was alive)`];
  });
}

/** Puts names into one cell of the audit. */
export function listed(names: readonly string[]): string {
  return names.length === 0 ? "nobody" : names.join(", ");
}
