import { attributeNames, isCooldownToken } from "./schema.ts";
import {
  isWhole,
  latestTime,
  optionalTextIn,
  parsedJson,
  textIn,
  timeIn,
  wholeIn,
} from "./store/item-values.ts";
import type { Item } from "./store.ts";

export { LeaseItemError } from "./errors/errors.ts";
export { type LeaseState, leaseState, renewedAt } from "./lease-state.ts";

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

/** Reads the last holder of a lock; undefined if the item does not have it, or if another program has spoilt it. */
export function lastHolderIn(item: Item = {}): LastHolder | undefined {
  const [end, ending] = String(item[attributeNames.lastEnd]).split(" ");
  const [acquiredAt, endedAt] = [item[attributeNames.lastAcquiredAt], Number(ending)];
  if (!isWhole(acquiredAt, latestTime) || !isWhole(endedAt, latestTime)) return undefined;
  return { owner: String(item[attributeNames.lastOwner]), acquiredAt, endedAt, end: end as LeaseEnd };
}

/**
 * Reads a lease item; undefined for a missing item and for the tombstone of a released lock.
 *
 * Throws LeaseItemError for an item that cannot be judged: its holder, a time or a number has another form. An item
 * with an unreadable payload can still be judged.
 */
export function readRecord(item: Item | undefined): LeaseRecord | undefined {
  if (item?.[attributeNames.token] === undefined) return undefined;
  const token = textIn(item, attributeNames.token);
  const payload = payloadOf(item[attributeNames.data]);
  return {
    key: textIn(item, attributeNames.partitionKey),
    sortKey: textIn(item, attributeNames.sortKey),
    owner: textIn(item, attributeNames.owner),
    token,
    version: wholeIn(item, attributeNames.version),
    fencingToken: wholeIn(item, attributeNames.fence),
    acquiredAt: timeIn(item, attributeNames.acquiredAt),
    expiresAt: timeIn(item, attributeNames.expiresAt),
    leaseDurationMs: wholeIn(item, attributeNames.leaseDurationMs),
    inCooldown: isCooldownToken(token),
    reentrant: item[attributeNames.reentrant] === 1,
    ...(item[attributeNames.ownClock] === item[attributeNames.version] && { ownClock: true }),
    ...payload,
    revocation: revocationOf(item[attributeNames.revocation]),
    // An operator's client has written a pause's payload.
    ...(item[attributeNames.pauseToken] === token && { pause: Object(payload.data) as Pause }),
  };
}

function payloadOf(stored: unknown): Pick<LeaseRecord, "data" | "invalidData"> {
  if (stored === undefined) return { data: undefined };
  const parsed = typeof stored === "string" ? parsedJson(stored) : undefined;
  if (parsed !== undefined) return { data: parsed.value };
  return { data: undefined, invalidData: typeof stored === "string" ? stored : "neither text nor JSON" };
}

/** Any value of the attribute counts as a request to stop. */
function revocationOf(stored: unknown): string | undefined {
  return stored === undefined || typeof stored === "string" ? stored : "revocation requested";
}

/**
 * What distinguishes one acquisition from every other, even from a clone of its process with the same random numbers.
 */
export interface GrantIdentity {
  readonly token: string;
  readonly owner: string;
}

/** Whether a reentrant caller of this owner may have this lease too: it was acquired reentrantly as well. */
export function isOpenTo(
  record: Pick<LeaseRecord, "reentrant" | "owner" | "inCooldown">,
  owner: string,
): boolean {
  return record.reentrant && record.owner === owner && !record.inCooldown;
}

/** Whether an item shows that this acquisition holds the lock: then a write whose answer was lost has landed. */
export function isHeldBy(item: Item | undefined, { token, owner }: GrantIdentity): boolean {
  return item?.[attributeNames.token] === token && item[attributeNames.owner] === owner;
}

/** Whether a token's own release has landed, whatever happened to the lock afterwards. */
export function wasReleasedByHolder(item: Item | undefined, token: string): boolean {
  return lastReleasedToken(item) === token && !wasBroken(item, token);
}

/** Whether a token's lease was broken by another caller. */
export function wasBroken(item: Item | undefined, token: string): boolean {
  return item?.[attributeNames.brokenToken] === token;
}

/** The latest slot that was completed under this key. Throws LeaseItemError. */
export function lastDoneSlot(item: Item | undefined): string | undefined {
  return item && optionalTextIn(item, attributeNames.doneSlot);
}

/** The last released token, whatever happened to the lock afterwards. */
export function lastReleasedToken(item: Item | undefined): string | undefined {
  const token = item?.[attributeNames.releasedToken];
  return typeof token === "string" ? token : undefined;
}
