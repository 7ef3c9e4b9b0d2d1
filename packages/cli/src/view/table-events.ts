// The changes of a table between two looks.

import { type DescribedLease, type LeaseChange, leaseChanges } from "@leasehold/client/admin";
import { holdEnds } from "./history.ts";
import { itemName, type TableSnapshot } from "./table-snapshot.ts";

/** One change. */
export interface TableEvent extends Omit<LeaseChange, "what"> {
  /** A change between two looks; `overdue`: a lease has expired, and was not released. */
  readonly what: LeaseChange["what"] | "overdue";
  /** How long it was held, for an ended hold. */
  readonly heldForMs: number | undefined;
  /** The new holder, for a takeover. */
  readonly successor: string | undefined;
}

/** The changes between two looks, in the order of time. A lease that begins and ends in between is not seen. */
export function tableEvents(before: TableSnapshot, after: TableSnapshot): readonly TableEvent[] {
  const names = new Set([...before.leaseItems.keys(), ...after.leaseItems.keys()]);
  const changes = [...names].flatMap((name) => {
    const [was, is] = [before.leaseItems.get(name), after.leaseItems.get(name)];
    // An item that the last look has not found may have existed without a lease.
    const found = leaseChanges(was, is, after.readAt);
    const successor = found.find(({ what }) => what === "acquired" || what === "paused")?.owner;
    return found.map((change) => eventOf(change, change.what === "takenOver" ? successor : undefined));
  });
  return [...changes, ...overdueSince(before, after)].sort((one, other) => one.at - other.at);
}

function eventOf(change: LeaseChange, successor: string | undefined): TableEvent {
  const heldForMs = holdEnds.includes(change.what) ? Math.max(0, change.at - change.acquiredAt) : undefined;
  return { ...change, heldForMs, successor };
}

/** Leases that have expired meanwhile. */
function overdueSince(before: TableSnapshot, after: TableSnapshot): readonly TableEvent[] {
  const overdueBefore = new Set(before.keys.flatMap(({ leases }) => leases.filter(isOverdue).map(leaseName)));
  return after.keys.flatMap(({ leases, readAt }) =>
    leases
      .filter((lease) => isOverdue(lease) && !overdueBefore.has(leaseName(lease)))
      .map((lease): TableEvent => {
        const { key, sortKey, owner, fencingToken, acquiredAt } = lease;
        return {
          ...{ key, sortKey, owner, fencingToken, acquiredAt },
          ...{ what: "overdue", at: readAt, reason: undefined, successor: undefined },
          heldForMs: readAt - acquiredAt,
        };
      }),
  );
}

function isOverdue({ state }: DescribedLease): boolean {
  return state === "expired";
}

function leaseName({ key, sortKey, token }: DescribedLease): string {
  return itemName(key, `${sortKey} ${token}`);
}
