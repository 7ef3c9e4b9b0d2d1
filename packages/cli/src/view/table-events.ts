// What has happened in a table between two looks.

import { type DescribedLease, type LeaseChange, leaseChanges } from "@leasehold/client/operator";
import { itemName, type TableSnapshot } from "./table-snapshot.ts";

/** One thing that has happened. */
export interface TableEvent extends Omit<LeaseChange, "what"> {
  /** What the table shows between two looks; `lapsed`: a lease's time is over, and it was not released. */
  readonly what: LeaseChange["what"] | "lapsed";
  /** For how long it was held, of what has ended. */
  readonly heldForMs: number | undefined;
  /** Who takes its place, of a takeover. */
  readonly successor: string | undefined;
}

const ends: ReadonlySet<string> = new Set([
  ...(["released", "completed", "resumed", "broken", "takenOver", "expired", "gone", "lapsed"] as const),
]);

/** What has happened between two looks, in the order of time. What came and went in between is not seen. */
export function tableEvents(before: TableSnapshot, after: TableSnapshot): readonly TableEvent[] {
  const names = new Set([...before.leaseItems.keys(), ...after.leaseItems.keys()]);
  const changes = [...names].flatMap((name) => {
    const [was, is] = [before.leaseItems.get(name), after.leaseItems.get(name)];
    // What a look has not found before may have been there without a lease.
    const found = leaseChanges(was, is, after.readAt);
    const successor = found.find(({ what }) => what === "acquired" || what === "paused")?.owner;
    return found.map((change) => eventOf(change, change.what === "takenOver" ? successor : undefined));
  });
  return [...changes, ...lapses(before, after)].sort((one, other) => one.at - other.at);
}

function eventOf(change: LeaseChange, successor: string | undefined): TableEvent {
  const heldForMs = ends.has(change.what) ? Math.max(0, change.at - change.acquiredAt) : undefined;
  return { ...change, heldForMs, successor };
}

/** Leases whose time has passed meanwhile. */
function lapses(before: TableSnapshot, after: TableSnapshot): readonly TableEvent[] {
  const lapsedBefore = new Set(before.keys.flatMap(({ leases }) => leases.filter(isLapsed).map(leaseName)));
  return after.keys.flatMap(({ leases, readAt }) =>
    leases
      .filter((lease) => isLapsed(lease) && !lapsedBefore.has(leaseName(lease)))
      .map((lease): TableEvent => {
        const { key, sortKey, owner, fencingToken, acquiredAt } = lease;
        return {
          ...{ key, sortKey, owner, fencingToken, acquiredAt },
          ...{ what: "lapsed", at: readAt, reason: undefined, successor: undefined },
          heldForMs: readAt - acquiredAt,
        };
      }),
  );
}

function isLapsed({ state }: DescribedLease): boolean {
  return state === "expired";
}

function leaseName({ key, sortKey, token }: DescribedLease): string {
  return itemName(key, `${sortKey} ${token}`);
}
