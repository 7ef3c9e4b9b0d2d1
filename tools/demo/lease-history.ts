import type { LeaseRecord } from "@leasehold/client/record";

/** One write of a lease item: the leases that the item showed before it and after it. */
export interface LeaseChange {
  /** Undefined when the lease had no holder. */
  readonly before: LeaseRecord | undefined;
  /** Undefined where the write ended the lease. */
  readonly after: LeaseRecord | undefined;
}

/** A lease as the table shows it. Times are epoch milliseconds. */
export interface GrantedLease {
  readonly owner: string;
  readonly fencingToken: number;
  readonly expiresAt: number;
}

/** A lease that was granted. */
export interface Grant extends GrantedLease {
  readonly sortKey: string;
  /** When the request that got it was sent: not before the lease was free. */
  readonly acquiredAt: number;
  /** The lease that still stood in the item and was taken over; undefined where it had been released. */
  readonly from: GrantedLease | undefined;
}

/**
 * Finds the grants under one key, in the order in which the table made them.
 *
 * The table's stream is the evidence, and no clock orders it. A process may learn late of its grant or its release:
 * that changes nothing here. Times count for takeovers alone. The taker records when it sent the request, which no
 * delay can make earlier, and the holder recorded how long its lease lasts.
 *
 * @param changes every write of the table, in the order of its stream
 */
export function grantsIn(changes: readonly LeaseChange[], key: string): Grant[] {
  return changes.flatMap(({ before, after }) => {
    if (after === undefined || after.key !== key || after.inCooldown || after.token === before?.token)
      return [];
    const { sortKey, owner, fencingToken, acquiredAt, expiresAt } = after;
    const from = before === undefined || before.inCooldown ? undefined : leaseOf(before);
    return [{ sortKey, owner, fencingToken, acquiredAt, expiresAt, from }];
  });
}

/**
 * Counts the leases that overlapped another one: leases that were taken over before they had ended, and grants that
 * came after one with a larger fencing token, which bring an old holder back.
 */
export function overlaps(grants: readonly Grant[]): number {
  const largest = new Map<string, number>();
  return grants.filter(({ sortKey, fencingToken, acquiredAt, from }) => {
    const grew = fencingToken > (largest.get(sortKey) ?? 0);
    if (grew) largest.set(sortKey, fencingToken);
    return !grew || (from !== undefined && acquiredAt < from.expiresAt);
  }).length;
}

/**
 * The owners whose leases were taken over. A lease that expired although its holder lived is marked.
 *
 * @param wasCutShort whether a lease's holder was killed or frozen
 */
export function takenOver(
  grants: readonly Grant[],
  wasCutShort: (owner: string, fencingToken: number) => boolean,
): string[] {
  return grants.flatMap(({ from }) => {
    if (from === undefined) return [];
    const { owner, fencingToken } = from;
    return [wasCutShort(owner, fencingToken) ? owner : `${owner} (who was alive)`];
  });
}

function leaseOf({ owner, fencingToken, expiresAt }: LeaseRecord): GrantedLease {
  return { owner, fencingToken, expiresAt };
}
