import { isWhole, latestTime, optionalTextIn, parsedJson, textIn, timeIn, wholeIn } from "./item-values.ts";
import type { LastHolder, LeaseEnd, LeaseRecord, Pause } from "./lease-record.ts";
import { attributeNames, isCooldownToken } from "./schema.ts";
import type { Item } from "./store.ts";

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
