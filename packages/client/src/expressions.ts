/**
 * The lock's own writes, and the only place where they are written.
 *
 * A lease item's life, with the writes that move it on and what each insists on:
 *
 *     absent ──acquire──▶ held ──renew──▶ held ──release──▶ tombstone ──acquire──▶ held ──▶ …
 *                          │                                    ▲
 *                          ├──release──▶ cooldown ────takeOver──┼──▶ held by another
 *                          └──(expired)──────────────takeOver───┼──▶ held by another
 *                                                               └── ttl removes it, long after
 *
 *     acquire   the lock is free, and this token was not the last to be released
 *     takeOver  the record is still the one that was judged expired: same token, version and fencing token
 *     renew     token and fencing token are mine, and nothing newer of mine has been written; for a keeper, also:
 *               its holder was not asked to stop
 *     release   token and fencing token are mine; a completed slot is remembered with it
 *               (a release, a break and a takeover keep who has had the lock until then)
 *     break     the token is the given one
 *     cancel    the token is mine, or there is none
 *     revoke    another caller holds it; nothing but the mark of a revoked token changes
 *     takeBack  the slot that is done is the given one
 *
 * A holder proves itself by its token and its fencing token. The token alone is not enough: a late copy of its acquire may
 * land after its release, once another lease has come and gone, and then the token is there again, with a larger number.
 */
import type { Cancellation, Ending, Grant, Renewal } from "./protocol/lease-form.ts";
import {
  attributeNames,
  cooldownToken,
  historySortKeyPrefix,
  isCooldownToken,
  leaseItemKey,
  leaseSortKey,
  timeToLive,
} from "./schema.ts";
import { seatSortKeys } from "./seats/schema.ts";
import { amended, type Condition, type Copy, render, type Test, type Write } from "./store/write.ts";
import type { QueryRequest, ScanRequest, UpdateRequest } from "./store.ts";

export { type Grant, render, type Write };

const { token, version, fence, owner, acquiredAt, expiresAt, leaseDurationMs } = attributeNames;
const { ownClock, reentrant, data, revocation, releasedToken, brokenToken, doneSlot } = attributeNames;
const { partitionKey, sortKey: sortKeyAttribute, lastOwner, lastAcquiredAt, lastEnd } = attributeNames;
const ttl = attributeNames.timeToLive;

/** Which lease a write is about. */
export interface LeaseAddress {
  readonly key: string;
  /** The sort key, where a key has several leases. @default "lease" */
  readonly sortKey?: string | undefined;
}

/** Takes a free lock. A late copy of a request whose lease has been released since finds its token revoked. */
export function acquire(lease: LeaseAddress, grant: Grant): Write {
  const { slot } = grant;
  const isDue: Condition[] =
    slot === undefined
      ? []
      : [
          {
            anyOf: [
              [doneSlot, "missing"],
              [doneSlot, "<", slot],
            ],
          },
        ];
  return grantWhere(lease, grant, [[token, "missing"], ...isDue]);
}

/**
 * Takes a lock from the record that was judged; any write to that record in between defeats it. The slot that is done
 * is part of that record: its judge has seen that as well.
 */
export function takeOver(lease: LeaseAddress, grant: Grant, judged: Judged): Write {
  const write = grantWhere(lease, grant, asJudged(judged));
  // A lock in its cooldown was released before, and an own lease goes on.
  const isEnd = judged.token !== grant.token && !isCooldownToken(judged.token);
  return isEnd ? amended(write, { set: holderKept("takenOver", grant.acquiredAt) }) : write;
}

/** How a lease can end, as the item remembers it. */
export type LeaseEnd = "released" | "completed" | "broken" | "takenOver";

/** Remembers who has had the lock until now, for how long, and how it ended. The writer need not know the holder. */
function holderKept(how: LeaseEnd, at: number, otherwise: Pick<Copy, "from"> = {}): Write["set"] {
  return {
    [lastOwner]: { of: owner, ...otherwise },
    [lastAcquiredAt]: { of: acquiredAt, ...otherwise },
    [lastEnd]: `${how} ${at}`,
  };
}

function grantWhere({ key, sortKey }: LeaseAddress, grant: Grant, insist: readonly Condition[]): Write {
  const wishes = {
    ...(grant.data === undefined ? {} : { [data]: grant.data }),
    ...(grant.reentrant ? { [reentrant]: 1 } : {}),
    ...marked(grant),
  };
  return {
    key: leaseItemKey(key, sortKey),
    set: {
      [token]: grant.token,
      [version]: grant.version,
      [owner]: grant.owner,
      [acquiredAt]: grant.acquiredAt,
      [expiresAt]: grant.expiresAt,
      [leaseDurationMs]: grant.leaseDurationMs,
      [ttl]: timeToLive(grant.expiresAt, grant.retentionMs),
      // Seeded from the time, so that the number keeps growing even after ttl has removed the item.
      [fence]: { of: fence, from: grant.acquiredAt, by: 1 },
      ...wishes,
    },
    // An earlier holder may have left them.
    remove: [revocation, data, reentrant, ownClock].filter((attribute) => !(attribute in wishes)),
    insist: [...insist, [releasedToken, "<>", grant.token]],
    returnsItem: true,
  };
}

/** Says that the expiry of a write is of its writer's own clock. An earlier mark is of another version. */
function marked(write: Pick<Grant, "version" | "ownClock">): Record<string, number> {
  return write.ownClock ? { [ownClock]: write.version } : {};
}

/** What proves a lease to be its holder's own. */
export interface Proof {
  readonly token: string;
  readonly fencingToken: number;
}

/** A record that was judged expired. */
export interface Judged extends Proof {
  readonly version: number;
}

/**
 * The record is still the one that was judged. A late copy of an old acquire can bring its token and version back, after
 * other leases; it cannot bring back its fencing token.
 */
export function asJudged(judged: Judged): readonly Test[] {
  return [
    [token, "=", judged.token],
    [version, "=", judged.version],
    [fence, "=", judged.fencingToken],
  ];
}

/** What a renewal of the lock writes: its own form needs no more of the lease than its proof. */
export type LockRenewal = Omit<Renewal, "shown"> & { readonly shown: Proof };

/** What the end of the lock's lease writes. */
export type LockEnding = Omit<Ending, "shown"> & { readonly shown: Proof };

function isMine(proof: Proof): Condition[] {
  return [
    [token, "=", proof.token],
    [fence, "=", proof.fencingToken],
  ];
}

/** Prolongs a lease. The growing version keeps a renewal that arrives late from shortening a newer one. */
export function renew({ key, sortKey }: LeaseAddress, renewal: LockRenewal): Write {
  return {
    key: leaseItemKey(key, sortKey),
    set: {
      [version]: renewal.version,
      [expiresAt]: renewal.expiresAt,
      [leaseDurationMs]: renewal.leaseDurationMs,
      [ttl]: timeToLive(renewal.expiresAt, renewal.retentionMs),
      ...marked(renewal),
    },
    insist: [...isMine(renewal.shown), [version, "<", renewal.version]],
    returnsItem: true,
  };
}

/** Prolongs a lease whose holder was not asked to stop: for a renewer that reads only what it has written. */
export function renewUnlessRevoked(lease: LeaseAddress, renewal: LockRenewal): Write {
  return amended(renew(lease, renewal), { insist: [[revocation, "missing"]] });
}

/** What says who held a lock, and for how long. */
const holderAttributes = [token, version, owner, acquiredAt, expiresAt, leaseDurationMs];
/** What a holder has asked for, or was asked. */
const wishAttributes = [data, revocation, reentrant];

/** Lets the lock go, or starts its cooldown. The item stays as a tombstone, so that the fencing token survives. */
export function release({ key, sortKey }: LeaseAddress, ending: LockEnding): Write {
  const { shown, slot, cooldown } = ending;
  const done = slot === undefined ? {} : { [doneSlot]: slot };
  const until = cooldown?.until ?? ending.now;
  const cooling =
    cooldown === undefined
      ? {}
      : {
          // Differs from the holder's token, so that nothing the former holder still sends can match it.
          [token]: cooldownToken(shown.token),
          [expiresAt]: cooldown.until,
          [leaseDurationMs]: cooldown.forMs,
          // Its holder may not know which version the table has.
          ...(cooldown.ownClock ? { [ownClock]: { of: version } } : {}),
        };
  const wishes = cooldown?.ownClock === false ? [...wishAttributes, ownClock] : wishAttributes;
  return {
    key: leaseItemKey(key, sortKey),
    set: {
      [releasedToken]: shown.token,
      [ttl]: timeToLive(until, ending.retentionMs),
      ...holderKept(slot === undefined ? "released" : "completed", ending.now),
      ...cooling,
      ...done,
    },
    remove: cooldown === undefined ? [...holderAttributes, ...wishAttributes] : wishes,
    insist: isMine(shown),
  };
}

/**
 * Lets another's lock go. It is marked as broken, so that its holder does not take it for its own release. For how long
 * the item is kept is its primitive's to say: that stays as it is.
 */
export function breakLease({ key, sortKey }: LeaseAddress, held: string, now: number): Write {
  // A lock in its cooldown was released before: by that mark its holder recognises its own release.
  // It breaks a lease that cannot be read, too: another program has written it.
  const ended = { [releasedToken]: held, ...holderKept("broken", now, { from: "" }) };
  return {
    key: leaseItemKey(key, sortKey),
    set: { ...(isCooldownToken(held) ? {} : ended), [brokenToken]: held },
    remove: [...holderAttributes, ...wishAttributes],
    insist: [[token, "=", held]],
  };
}

/**
 * Takes back an acquisition whose answer never came, whether its write has landed, is still under way or was lost:
 * on a free lock it revokes the token, and the late write is refused.
 */
export function cancel(
  { key, sortKey }: LeaseAddress,
  { token: own, now, retentionMs }: Cancellation,
): Write {
  return {
    key: leaseItemKey(key, sortKey),
    set: { [releasedToken]: own, [ttl]: timeToLive(now, retentionMs) },
    remove: [...holderAttributes, ...wishAttributes],
    insist: [
      {
        anyOf: [
          [token, "=", own],
          [token, "missing"],
        ],
      },
    ],
  };
}

/** Revokes a token of a lock that another holds, whose lease it leaves alone: a late takeover is refused. */
export function revokeToken({ key, sortKey }: LeaseAddress, own: string): Write {
  return {
    key: leaseItemKey(key, sortKey),
    set: { [releasedToken]: own },
    insist: [[token, "exists"]],
    returnsItem: true,
  };
}

/** Asks the holder of one particular lease to stop. */
export function requestRevocation({ key, sortKey }: LeaseAddress, held: string, reason: string): Write {
  return { key: leaseItemKey(key, sortKey), set: { [revocation]: reason }, insist: [[token, "=", held]] };
}

/** A slot that is not to count as done. */
export interface SlotTakenBack {
  readonly key: string;
  /** The one that is done, as it was seen. */
  readonly doneSlot: string;
  /** The one that is done from then on; none where it is undefined. */
  readonly to: string | undefined;
}

/** Takes back the slot that is done, in favour of an earlier one or of none. A holder and its lease stay as they are. */
export function takeBackSlot({ key, doneSlot: seen, to }: SlotTakenBack): Write {
  return {
    key: leaseItemKey(key),
    set: to === undefined ? {} : { [doneSlot]: to },
    remove: to === undefined ? [doneSlot] : [],
    insist: [[doneSlot, "=", seen]],
    returnsItem: true,
  };
}

const recordProjection = [
  ...[token, version, fence, owner, acquiredAt, expiresAt, ownClock, leaseDurationMs],
  ...[revocation, releasedToken, brokenToken, doneSlot, lastEnd],
]
  .map((name) => `#${name}`)
  .join(", ");

/** Reads what a lease is judged by, and not the payload: that may have 392 KiB, and Step Functions takes 256 KiB. */
export function recordOnly(): {
  readonly projection: string;
  readonly names: Readonly<Record<string, string>>;
} {
  return { projection: recordProjection, names: namesIn(recordProjection) };
}

/** Finds the leases whose key starts with a prefix: the locks, or those of all primitives. */
export function leasesByPrefix(
  prefix: string,
  everySortKey = false,
): Pick<ScanRequest, "filter" | "names" | "values"> {
  const { semaphore, readWrite } = seatSortKeys;
  const isLease = `attribute_exists(#${token})`;
  const filter = [
    everySortKey
      ? `(${isLease} OR #${attributeNames.sortKey} = :semaphore OR #${attributeNames.sortKey} = :readWrite)`
      : `${isLease} AND #${attributeNames.sortKey} = :lease`,
    ...(prefix === "" ? [] : [`begins_with(#${partitionKey}, :prefix)`]),
  ].join(" AND ");
  return {
    filter,
    names: namesIn(filter),
    values: {
      ...(everySortKey ? { ":semaphore": semaphore, ":readWrite": readWrite } : { ":lease": leaseSortKey }),
      ...(prefix === "" ? {} : { ":prefix": prefix }),
    },
  };
}

/** Finds every item of a table, whatever it is. */
export function everyItem(): Pick<ScanRequest, "filter" | "names" | "values"> {
  const filter = `attribute_exists(#${partitionKey})`;
  return { filter, names: namesIn(filter), values: {} };
}

/** Finds everything under a key but its history, which may be long. */
export function leasesOf(key: string): Pick<QueryRequest, "keyCondition" | "names" | "values"> {
  const keyCondition = `#${partitionKey} = :key AND #${sortKeyAttribute} < :history`;
  return {
    keyCondition,
    names: namesIn(keyCondition),
    values: { ":key": key, ":history": historySortKeyPrefix },
  };
}

/** "Only while this very lease holds the lock", for the user's own transaction. */
export function stillHeld(proof: Proof): readonly Condition[] {
  return isMine(proof);
}

/** "Only if no later holder has written", for the user's own item, and the assignment that makes it hold next time. */
export function noLaterHolder(
  attribute: string,
  fencingToken: number,
): Omit<UpdateRequest, "key" | "returnsItem"> {
  return {
    condition: "(attribute_not_exists(#leaseFence) OR #leaseFence <= :leaseFence)",
    update: "SET #leaseFence = :leaseFence",
    names: { "#leaseFence": attribute },
    values: { ":leaseFence": fencingToken },
  };
}

/** Our own placeholders are `#` and the attribute's name, so that the names follow from the expression. */
export function namesIn(expression: string): Record<string, string> {
  const names: Record<string, string> = {};
  for (const [placeholder, name] of expression.matchAll(/#(\w+)/g)) {
    if (name !== undefined) names[placeholder] = name;
  }
  return names;
}
