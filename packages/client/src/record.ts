import { attributeNames, isCooldownToken } from "./schema.ts";
import type { Seat } from "./seats/schema.ts";
import type { LeaseEnd } from "./statements/lock.ts";
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
   * True where the service had not told its holder the time: then `expiresAt` tells other machines nothing, and
   * callers take the lease over only when it has stayed unchanged for `leaseDurationMs` and a little more.
   */
  readonly ownClock?: boolean | undefined;
  readonly leaseDurationMs: number;
  /** Whether the lock was released early and is in its cooldown (`lockAtLeastForMs`) until `expiresAt`. */
  readonly inCooldown: boolean;
  /** Whether it was acquired with `reentrant`: then the same owner can acquire it again. */
  readonly reentrant: boolean;
  /** The holder's payload, if it stored one; undefined also where `invalidData` is there in its place. */
  readonly data: unknown;
  /**
   * The text in the place of the payload, where it is no JSON: another program or a person has written it. The lease
   * itself is valid.
   */
  readonly invalidData?: string;
  /** Why the holder was asked to stop, if it was. */
  readonly revocation: string | undefined;
  /** What it takes of an item that several leases share: a permit or more, a read lock or a write lock. */
  readonly seat?: Seat;
  /** Present while an operator keeps the lock closed on purpose, until `expiresAt`: nothing is stuck. */
  readonly pause?: Pause;
}

/** Who keeps a lock closed on purpose, and why. */
export interface Pause {
  readonly by: string;
  readonly reason: string;
}

/** Who had a lock before its present holder, or before it became free. */
export interface LastHolder {
  readonly owner: string;
  /** Epoch milliseconds of that holder's clock. */
  readonly acquiredAt: number;
  /** Epoch milliseconds: when it was released or broken; of a lease that had expired, when another caller took it over. */
  readonly endedAt: number;
  /** `completed`: released, and its slot is done. `takenOver`: it was not released, and another caller took it over. */
  readonly end: LeaseEnd;
}

/** Reads who had a lock last; undefined where the item does not say so, or another program has spoilt it. */
export function lastHolderIn(item: Item = {}): LastHolder | undefined {
  const [end, ending] = String(item[attributeNames.lastEnd]).split(" ");
  const [acquiredAt, endedAt] = [item[attributeNames.lastAcquiredAt], Number(ending)];
  if (!isWhole(acquiredAt, latestTime) || !isWhole(endedAt, latestTime)) return undefined;
  return { owner: String(item[attributeNames.lastOwner]), acquiredAt, endedAt, end: end as LeaseEnd };
}

/**
 * Reads a lease item; undefined for a missing item and for the tombstone of a released lock.
 *
 * Throws LeaseItemError for an item that cannot be judged: one of its holder, its times or its numbers is of another
 * form. A payload that cannot be read is no reason not to judge it.
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
    // The payload of a pause is the operator's own.
    ...(item[attributeNames.pauseToken] === token && { pause: Object(payload.data) as Pause }),
  };
}

function payloadOf(stored: unknown): Pick<LeaseRecord, "data" | "invalidData"> {
  if (stored === undefined) return { data: undefined };
  const parsed = typeof stored === "string" ? parsedJson(stored) : undefined;
  if (parsed !== undefined) return { data: parsed.value };
  return { data: undefined, invalidData: typeof stored === "string" ? stored : "neither text nor JSON" };
}

/** Whatever is there is meant as a request to stop. */
function revocationOf(stored: unknown): string | undefined {
  return stored === undefined || typeof stored === "string" ? stored : "revocation requested";
}

/** What tells one acquisition from every other, a clone of its process with the same random numbers included. */
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

/** Whether an item shows that this very acquisition holds the lock: then a write whose answer was lost has landed. */
export function isHeldBy(item: Item | undefined, { token, owner }: GrantIdentity): boolean {
  return item?.[attributeNames.token] === token && item[attributeNames.owner] === owner;
}

/** Whether a token's own release has landed, whatever has happened to the lock since. */
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

/** The token that was released last, whatever has happened to the lock since. */
export function lastReleasedToken(item: Item | undefined): string | undefined {
  const token = item?.[attributeNames.releasedToken];
  return typeof token === "string" ? token : undefined;
}
