/**
 * The lock's own statements, and the only place where they are written. Those of administrators are in admin.ts.
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
 *               (a release and a takeover keep who has had the lock until then)
 *     cancel    the token is mine, or there is none
 *     revoke    another caller holds it; nothing but the mark of a revoked token changes
 *
 * A holder proves itself by its token and its fencing token. The token alone is not enough: a late copy of its acquire may
 * land after its release, once another lease has come and gone, and then the token is there again, with a larger number.
 */
import type { LeaseEnd } from "../base/lease-record.ts";
import { cooldownToken, isCooldownToken, leaseItemKey, timeToLive } from "../base/schema.ts";
import { type Part, type Statement, say, type Values, Write } from "./statement.ts";

/** Which lease a write is about. */
export interface LeaseAddress {
  readonly key: string;
  /** The sort key, where a key has several leases. @default "lease" */
  readonly sortKey?: string | undefined;
}

/** What an acquisition writes. */
export interface Grant {
  readonly token: string;
  /** Never used before with this token: a record that comes back has to differ from the one that was judged. */
  readonly version: number;
  readonly owner: string;
  readonly acquiredAt: number;
  readonly expiresAt: number;
  /** Whether that is of this machine's own clock. @default false */
  readonly ownClock?: boolean | undefined;
  readonly leaseDurationMs: number;
  readonly retentionMs: number;
  /** Whether the same owner may take the lease over while it stands. */
  readonly reentrant: boolean;
  /** JSON text. */
  readonly data: string | undefined;
  /** Refused where this slot, or a later one, is done. */
  readonly slot: string | undefined;
  /** Chosen beforehand, and refused unless it is a new maximum. @default - the service counts */
  readonly fencingToken?: number | undefined;
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

/** What a renewal of the lock writes: its own form needs no more of the lease than its proof. */
export interface LockRenewal {
  readonly shown: Proof;
  readonly version: number;
  readonly expiresAt: number;
  /** Whether that is of this machine's own clock. @default false */
  readonly ownClock?: boolean | undefined;
  readonly leaseDurationMs: number;
  readonly retentionMs: number;
}

/** What the end of the lock's lease writes. */
export interface LockEnding {
  readonly shown: Proof;
  readonly now: number;
  readonly retentionMs: number;
  /** The slot that is done; nothing is said of any slot where it is undefined. */
  readonly slot: string | undefined;
  /** For how much longer nobody may have it; undefined to let the next caller in at once. */
  readonly cooldown: Cooldown | undefined;
}

/** For how much longer a lock stays closed that was released early. */
export interface Cooldown {
  readonly until: number;
  /** Whether that is of this machine's own clock; undefined where an earlier mark may stay. @default undefined */
  readonly ownClock?: boolean | undefined;
  readonly forMs: number;
}

/** What takes an acquisition back. */
export interface Cancellation {
  readonly token: string;
  readonly now: number;
  readonly retentionMs: number;
}

const granted: Part = {
  set:
    "#token = :token, #version = :version, #owner = :owner, #acquiredAt = :acquiredAt, " +
    "#expiresAt = :expiresAt, #leaseDurationMs = :leaseDurationMs, #ttl = :ttl",
  // An earlier holder may have left it, and the attributes that the next parts remove.
  remove: "#revocation",
};
/** Seeded from the time, so that the number keeps growing even after ttl has removed the item. */
const nextFence: Part = { set: "#fence = if_not_exists(#fence, :fromFence) + :byFence" };
const chosenFence: Part = {
  set: "#fence = :fence",
  when: "(attribute_not_exists(#fence) OR #fence < :fence)",
};
const withData: Part = { set: "#data = :data" };
const withoutData: Part = { remove: "#data" };
const reentrantly: Part = { set: "#reentrant = :reentrant" };
const notReentrantly: Part = { remove: "#reentrant" };
/** The expiry is of its writer's own clock. A mark of another version is an earlier one. */
const byOwnClock: Part = { set: "#ownClock = :ownClock" };
const notByOwnClock: Part = { remove: "#ownClock" };

/** Nobody holds the lock, and no cooldown keeps it closed. */
export const free: Part = { when: "attribute_not_exists(#token)" };
const due: Part = { when: "(attribute_not_exists(#doneSlot) OR #doneSlot < :ifDoneSlot)" };
/** A late copy of a request whose lease has been released since finds its token revoked. */
export const notRevoked: Part = { when: "#releasedToken <> :ifReleasedToken" };
/** A late copy of an old acquire can bring token and version back, after other leases: not the fencing token. */
export const asJudged: Part = { when: "#token = :ifToken AND #version = :ifVersion AND #fence = :ifFence" };
/** Who has had the lock until now, for how long, and how it ended. The writer need not know the holder. */
export const endKept: Part = {
  set: "#lastOwner = #owner, #lastAcquiredAt = #acquiredAt, #lastEnd = :lastEnd",
};

/** The holder's proof. */
export const mine: Part = { when: "#token = :ifToken AND #fence = :ifFence" };
/** The proof of a caller that does not know the fencing token. */
export const mineByToken: Part = { when: "#token = :ifToken" };
const prolonged: Part = {
  set: "#version = :version, #expiresAt = :expiresAt, #leaseDurationMs = :leaseDurationMs, #ttl = :ttl",
};
/** A renewal that arrives late does not shorten a newer one. */
const newer: Part = { when: "#version < :ifVersion" };
const notAskedToStop: Part = { when: "attribute_not_exists(#revocation)" };

/** The item stays as a tombstone, so that the fencing token survives. */
export const letGo: Part = { set: "#releasedToken = :releasedToken, #ttl = :ttl" };
export const noHolder: Part = {
  remove: "#token, #version, #owner, #acquiredAt, #expiresAt, #leaseDurationMs",
};
export const noWishes: Part = { remove: "#data, #revocation, #reentrant" };
const closed: Part = {
  // Differs from the holder's token, so that nothing the former holder still sends can match it.
  set: "#token = :token, #expiresAt = :expiresAt, #leaseDurationMs = :leaseDurationMs",
};
/** Its holder may not know which version the table has. */
const closedByOwnClock: Part = { set: "#ownClock = #version" };
export const slotDone: Part = { set: "#doneSlot = :doneSlot" };
export const mineOrFree: Part = { when: "(#token = :ifToken OR attribute_not_exists(#token))" };
/** A late copy of this token's acquisition is refused from now on. */
export const tokenRevoked: Part = { set: "#releasedToken = :releasedToken" };
/** A holder or a cooldown keeps the lock closed. */
export const held: Part = { when: "attribute_exists(#token)" };

const renews = say(prolonged, mine, newer);
const endsLease = say(letGo, endKept, noHolder, noWishes, mine);
const closes = say(letGo, endKept, closed, noWishes, mine);
const cancels = say(letGo, noHolder, noWishes, mineOrFree);

/** What an acquisition insists on: that the lock is free, and the slot open, or that the record is as it was judged. */
const ways = {
  free: { number: 0, parts: [free, notRevoked] },
  freeAndDue: { number: 1, parts: [free, due, notRevoked] },
  asJudged: { number: 2, parts: [asJudged, notRevoked] },
  asJudgedAndEnding: { number: 3, parts: [asJudged, notRevoked, endKept] },
} as const;

const acquisitions: Statement[] = [];

/** The statement of an acquisition, by what its call asks for and the way in which it takes the lock. */
function acquisition(
  { data, reentrant, ownClock, fencingToken }: Grant,
  { number, parts }: (typeof ways)[keyof typeof ways],
): Statement {
  const asked = (data === undefined ? 0 : 4) + (reentrant ? 8 : 0) + (ownClock ? 16 : 0);
  const shape = number + asked + (fencingToken === undefined ? 0 : 32);
  acquisitions[shape] ??= say(
    granted,
    fencingToken === undefined ? nextFence : chosenFence,
    data === undefined ? withoutData : withData,
    reentrant ? reentrantly : notReentrantly,
    ownClock ? byOwnClock : notByOwnClock,
    ...parts,
  );
  return acquisitions[shape];
}

/** Takes a free lock. */
export function acquire(lease: LeaseAddress, grant: Grant): Write {
  const write = grantOf(lease, grant, grant.slot === undefined ? ways.free : ways.freeAndDue);
  if (grant.slot !== undefined) write.values[":ifDoneSlot"] = grant.slot;
  return write;
}

/**
 * Takes a lock from the record that was judged; any write to that record in between defeats it. The slot that is done
 * is part of that record: its judge has seen that as well.
 */
export function takeOver(lease: LeaseAddress, grant: Grant, judged: Judged): Write {
  // A lock in its cooldown was released before, and an own lease goes on.
  const isEnd = judged.token !== grant.token && !isCooldownToken(judged.token);
  const write = grantOf(lease, grant, isEnd ? ways.asJudgedAndEnding : ways.asJudged);
  Object.assign(write.values, judgedValues(judged));
  if (isEnd) write.values[":lastEnd"] = endText("takenOver", grant.acquiredAt);
  return write;
}

/** Takes a lock from nobody, or from the record that was judged. */
export function take(lease: LeaseAddress, grant: Grant, judged: Judged | undefined): Write {
  return judged === undefined ? acquire(lease, grant) : takeOver(lease, grant, judged);
}

function grantOf({ key, sortKey }: LeaseAddress, grant: Grant, way: (typeof ways)[keyof typeof ways]): Write {
  const { token, version, acquiredAt, expiresAt, data, fencingToken } = grant;
  const write = new Write(leaseItemKey(key, sortKey), acquisition(grant, way), {
    ":token": token,
    ":version": version,
    ":owner": grant.owner,
    ":acquiredAt": acquiredAt,
    ":expiresAt": expiresAt,
    ":leaseDurationMs": grant.leaseDurationMs,
    ":ttl": timeToLive(expiresAt, grant.retentionMs),
    ":ifReleasedToken": token,
  });
  const { values } = write;
  if (fencingToken === undefined) {
    values[":fromFence"] = acquiredAt;
    values[":byFence"] = 1;
  } else values[":fence"] = fencingToken;
  if (data !== undefined) values[":data"] = data;
  if (grant.reentrant) values[":reentrant"] = 1;
  if (grant.ownClock) values[":ownClock"] = version;
  return write.returning();
}

const neverHeld: Part = { when: "attribute_not_exists(#fence)" };
const fenceAsSeen: Part = { when: "#fence = :seenFence" };

/** Adds to a write that nobody has been granted the item since its fencing token was read; undefined if it had none. */
export function notGrantedSince(write: Write, seenFence: number | undefined): Write {
  return seenFence === undefined ? write.and(neverHeld) : write.and(fenceAsSeen, { ":seenFence": seenFence });
}

/** The values of {@link asJudged}. */
export function judgedValues({ token, version, fencingToken }: Judged): Values {
  return { ":ifToken": token, ":ifVersion": version, ":ifFence": fencingToken };
}

/** The values of {@link mine}. */
export function proofValues({ token, fencingToken }: Proof): Values {
  return { ":ifToken": token, ":ifFence": fencingToken };
}

/** Says how and when a lease has ended. */
export function endText(how: LeaseEnd, at: number): string {
  return `${how} ${at}`;
}

/** Prolongs a lease. */
export function renew({ key, sortKey }: LeaseAddress, renewal: LockRenewal): Write {
  const { version, expiresAt, leaseDurationMs } = renewal;
  const write = new Write(leaseItemKey(key, sortKey), renews, {
    ":version": version,
    ":expiresAt": expiresAt,
    ":leaseDurationMs": leaseDurationMs,
    ":ttl": timeToLive(expiresAt, renewal.retentionMs),
    ...proofValues(renewal.shown),
    ":ifVersion": version,
  });
  if (renewal.ownClock) write.and(byOwnClock, { ":ownClock": version });
  return write.returning();
}

/** Prolongs a lease whose holder was not asked to stop: for a renewer that reads only what it has written. */
export function renewUnlessRevoked(lease: LeaseAddress, renewal: LockRenewal): Write {
  return renew(lease, renewal).and(notAskedToStop);
}

/** Lets the lock go, or starts its cooldown. `ends`: what another primitive says in the lock's place, without a cooldown. */
export function release(
  { key, sortKey }: LeaseAddress,
  ending: LockEnding,
  ends: Statement = endsLease,
): Write {
  const { shown, now, slot, cooldown } = ending;
  const write = new Write(leaseItemKey(key, sortKey), cooldown === undefined ? ends : closes, {
    ":releasedToken": shown.token,
    ":ttl": timeToLive(cooldown?.until ?? now, ending.retentionMs),
    ":lastEnd": endText(slot === undefined ? "released" : "completed", now),
    ...proofValues(shown),
  });
  if (cooldown !== undefined) {
    write.values[":token"] = cooldownToken(shown.token);
    write.values[":expiresAt"] = cooldown.until;
    write.values[":leaseDurationMs"] = cooldown.forMs;
    if (cooldown.ownClock !== undefined) write.and(cooldown.ownClock ? closedByOwnClock : notByOwnClock);
  }
  return slot === undefined ? write : write.and(slotDone, { ":doneSlot": slot });
}

/**
 * Takes back an acquisition whose answer never came, whether its write has landed, is still under way or was lost:
 * on a free lock it revokes the token, and the late write is refused. `takesBack`: what another primitive says in the
 * lock's place.
 */
export function cancel(
  { key, sortKey }: LeaseAddress,
  { token, now, retentionMs }: Cancellation,
  takesBack: Statement = cancels,
): Write {
  const values = { ":releasedToken": token, ":ttl": timeToLive(now, retentionMs), ":ifToken": token };
  return new Write(leaseItemKey(key, sortKey), takesBack, values);
}

const revokes = say(tokenRevoked, held);

/** Revokes a token of a lock that another holds, whose lease it leaves alone: a late takeover is refused. */
export function revokeToken({ key, sortKey }: LeaseAddress, token: string): Write {
  return new Write(leaseItemKey(key, sortKey), revokes, { ":releasedToken": token }).returning();
}

const proves = say(mine);

/** "Only while this very lease holds the lock", for the user's own transaction. */
export function stillHeld({ key, sortKey }: LeaseAddress, proof: Proof): Write {
  return new Write(leaseItemKey(key, sortKey), proves, proofValues(proof));
}
