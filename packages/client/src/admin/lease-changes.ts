/**
 * The changes of leases between two looks at their item. Pure: for the table's stream, which shows an item before and
 * after each write, and for tools that look now and then.
 */

import type { LastHolder, LeaseRecord } from "../base/lease-record.ts";
import { lastHolderIn, lastReleasedToken } from "../base/record.ts";
import { attributeNames, cooldownToken } from "../base/schema.ts";
import type { Item } from "../base/store.ts";
import { leasesIn } from "./looks.ts";

/**
 * The changes of a lease.
 *
 * - `acquired`, `paused`: it began, as a holder's or as an operator's pause.
 * - `stopping`: its holder was asked to stop.
 * - `released`, `completed`, `resumed`: its holder has ended it, or for a pause an operator. `completed`: its slot is
 *   done.
 * - `broken`: another caller has ended it by force.
 * - `takenOver`: it had expired, and another caller took its place.
 * - `expired`: it had expired, and ttl has removed it.
 * - `gone`: it has disappeared, and the looks do not show how it ended.
 */
export type LeaseChangeKind =
  | "acquired"
  | "paused"
  | "stopping"
  | "released"
  | "completed"
  | "resumed"
  | "broken"
  | "takenOver"
  | "expired"
  | "gone";

/** One change of one lease. It holds no token and no payload. */
export interface LeaseChange
  extends Pick<LeaseRecord, "key" | "sortKey" | "owner" | "fencingToken" | "acquiredAt"> {
  readonly what: LeaseChangeKind;
  /** Epoch milliseconds: the time in the table, or else the time of the look. */
  readonly at: number;
  /** For a pause, and for a holder that was asked to stop. */
  readonly reason: string | undefined;
}

/** An item as one look shows it. A tool that has records and no item sets only `leases`. */
export interface LeaseSnapshot {
  readonly leases: readonly LeaseRecord[];
  readonly lastHolder?: LastHolder | undefined;
  readonly releasedToken?: string | undefined;
  readonly brokenToken?: string | undefined;
}

/** Returns the snapshot of an item; undefined without an item. Throws LeaseItemError. */
export function snapshotOf(item: Item | undefined): LeaseSnapshot | undefined {
  if (item === undefined) return undefined;
  const broken = item[attributeNames.brokenToken];
  return {
    leases: leasesIn(item),
    lastHolder: lastHolderIn(item),
    releasedToken: lastReleasedToken(item),
    brokenToken: broken === undefined ? undefined : String(broken),
  };
}

/**
 * Returns the changes between two looks at one item, ends before beginnings. `undefined` means that there is no item; a
 * look that only shows no lease is `{ leases: [] }`. A lease that begins and ends between the looks is not seen.
 *
 * `seenAt`: the time of the second look, in epoch milliseconds.
 */
export function leaseChanges(
  before: LeaseSnapshot | undefined,
  after: LeaseSnapshot | undefined,
  seenAt: number,
): LeaseChange[] {
  const [was, is] = [holdersIn(before), holdersIn(after)];
  const begun = is.filter(({ token }) => !was.some((lease) => lease.token === token));
  const ended = was.filter(({ token }) => !is.some((lease) => lease.token === token));
  const asked = is.filter(
    ({ token, revocation }) =>
      revocation !== undefined &&
      was.some((lease) => lease.token === token && lease.revocation !== revocation),
  );
  return [
    ...ended.map((lease) => change(lease, ...endOf(lease, after, begun, seenAt))),
    ...asked.map((lease) => change(lease, "stopping", seenAt, lease.revocation)),
    ...begun.map((lease) =>
      change(lease, lease.pause ? "paused" : "acquired", lease.acquiredAt, lease.pause?.reason),
    ),
  ];
}

/** A cooldown and the intent of a waiting writer are no holders. A pause is reported once, for the lock. */
function holdersIn(snapshot: LeaseSnapshot | undefined): readonly LeaseRecord[] {
  return (snapshot?.leases ?? []).filter(
    ({ inCooldown, seat, pause }) =>
      !inCooldown && seat?.kind !== "intent" && (seat === undefined || pause === undefined),
  );
}

function endOf(
  lease: LeaseRecord,
  after: LeaseSnapshot | undefined,
  begun: readonly LeaseRecord[],
  seenAt: number,
): [LeaseChangeKind, number] {
  if (after === undefined) return ["expired", lease.expiresAt];
  const { lastHolder, brokenToken, releasedToken, leases } = after;
  const isLast = lastHolder?.owner === lease.owner && lastHolder.acquiredAt === lease.acquiredAt;
  if (isLast)
    return [lease.pause && lastHolder.end === "released" ? "resumed" : lastHolder.end, lastHolder.endedAt];
  if (brokenToken === lease.token) return ["broken", seenAt];
  const isCooling = leases.some(({ token }) => token === cooldownToken(lease.token));
  if (isCooling || releasedToken === lease.token) return ["released", seenAt];
  const [next] = begun;
  // A write that takes a seat removes the seats that it takes over.
  if (next !== undefined && lease.seat !== undefined && lease.expiresAt < next.acquiredAt) {
    return ["takenOver", next.acquiredAt];
  }
  return ["gone", seenAt];
}

function change(
  { key, sortKey, owner, fencingToken, acquiredAt }: LeaseRecord,
  what: LeaseChangeKind,
  at: number,
  reason?: string,
): LeaseChange {
  return { key, sortKey, owner, fencingToken, acquiredAt, what, at, reason };
}
