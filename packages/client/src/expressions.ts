/**
 * Every expression that Leasehold sends, and the only place where one is written.
 *
 * A lease item's life, with the writes that move it on and what each insists on:
 *
 *     absent ──acquire──▶ held ──renew──▶ held ──release──▶ tombstone ──acquire──▶ held ──▶ …
 *                          │                                    ▲
 *                          ├──close──▶ closed until … ──takeOver┼──▶ held by another
 *                          └──(expired)──────────────takeOver───┼──▶ held by another
 *                                                               └── ttl removes it, long after
 *
 *     acquire   nobody holds it, and this very token was not the last to be released
 *     takeOver  the record is still the one that was judged expired: same token, same version
 *     renew     token and fencing token are mine, and nothing newer of mine has been written; for a keeper, also:
 *               nobody has asked its holder to stop
 *     release   token and fencing token are mine; a completed slot is remembered with it
 *     break     the token is the one that is meant
 *     cancel    the token is mine, or nobody's
 *     spend     somebody holds it; nothing but the mark of a spent token changes
 *     takeBack  the slot that is done is the one that was seen
 *
 * A holder proves itself by its token and its fencing token. The token alone does not do: a late copy of its acquire may
 * land after its release, once another lease has come and gone, and then the token is there again, with a larger number.
 */
import {
  attributeNames,
  callSortKey,
  closedToken,
  type ItemKey,
  isClosedToken,
  leaseItemKey,
  leaseSortKey,
  timeToLive,
  waiterSortKeyPrefix,
} from "./schema.ts";
import { seatSortKeys } from "./seats/schema.ts";
import type { Item, QueryRequest, ScanRequest, TransactionEntry, UpdateRequest } from "./store.ts";

const { token, version, fence, owner, acquiredAt, expiresAt, leaseDurationMs } = attributeNames;
const { reentrant, data, revocation, releasedToken, brokenToken, doneSlot, taskToken, callbackId } =
  attributeNames;
const { partitionKey, sortKey } = attributeNames;
const ttl = attributeNames.timeToLive;

/** Which lease a write is about. */
export interface LeasePlace {
  readonly key: string;
  /** The sort key, where a key has several leases. @default "lease" */
  readonly place?: string | undefined;
}

/** What an acquisition writes. */
export interface Grant extends LeasePlace {
  readonly token: string;
  /** Never used before with this token: a record that comes back has to differ from the one that was judged. */
  readonly version: number;
  readonly owner: string;
  readonly acquiredAt: number;
  readonly expiresAt: number;
  readonly leaseDurationMs: number;
  readonly retentionMs: number;
  /** Whether the same owner may take the lease over while it stands. @default false */
  readonly reentrant?: boolean;
  /** JSON text. */
  readonly data: string | undefined;
  /** Refused where this slot, or a later one, is done. */
  readonly slot: string | undefined;
}

/** An expression that is always the same; requests differ in their key and values alone. */
interface Written {
  readonly update: string;
  readonly condition: string;
  readonly names: Readonly<Record<string, string>>;
  readonly returnsItem: boolean;
}

const grantTo =
  `SET #${token} = :token, #${version} = :version, #${owner} = :owner, #${acquiredAt} = :acquiredAt, ` +
  `#${expiresAt} = :expiresAt, #${leaseDurationMs} = :leaseDurationMs, #${ttl} = :ttl, ` +
  // Seeded from the time, so that the number keeps growing even after ttl has removed the item.
  `#${fence} = if_not_exists(#${fence}, :acquiredAt) + :one`;

/** A grant that sets some of the optional attributes, and removes the others, which an earlier holder may have left. */
function grantForm(condition: string, present: readonly string[]): Written {
  const set = present.map((name) => `, #${name} = :${name}`).join("");
  const removed = [revocation, data, reentrant].filter((name) => !present.includes(name));
  return written(`${grantTo}${set} REMOVE ${removed.map((name) => `#${name}`).join(", ")}`, condition, true);
}

/** All forms of a grant. */
function grantWhere(condition: string): Readonly<Record<"plain" | "reentrant", readonly [Written, Written]>> {
  return {
    plain: [grantForm(condition, []), grantForm(condition, [data])],
    reentrant: [grantForm(condition, [reentrant]), grantForm(condition, [data, reentrant])],
  };
}

const isFree = `attribute_not_exists(#${token}) AND #${releasedToken} <> :token`;
const grantIfFree = grantWhere(isFree);
const grantIfFreeAndDue = grantWhere(
  `${isFree} AND (attribute_not_exists(#${doneSlot}) OR #${doneSlot} < :slot)`,
);

/** Takes a lock that nobody holds. A late copy of a request whose lease has been released since finds the token spent. */
export function acquire(grant: Grant): UpdateRequest {
  const { slot } = grant;
  return slot === undefined
    ? grantUpdate(grant, grantIfFree, {})
    : grantUpdate(grant, grantIfFreeAndDue, { ":slot": slot });
}

const grantIfUnchanged = grantWhere(
  `#${token} = :judgedToken AND #${version} = :judgedVersion AND #${releasedToken} <> :token`,
);

/**
 * Takes a lock from the record that was judged; any write to that record in between defeats it. The slot that is done
 * is part of that record: whoever judged it has seen that as well.
 */
export function takeOver(
  grant: Grant,
  judged: { readonly token: string; readonly version: number },
): UpdateRequest {
  return grantUpdate(grant, grantIfUnchanged, {
    ":judgedToken": judged.token,
    ":judgedVersion": judged.version,
  });
}

function grantUpdate(grant: Grant, forms: ReturnType<typeof grantWhere>, judged: Item): UpdateRequest {
  const [bare, withData] = grant.reentrant ? forms.reentrant : forms.plain;
  return requestOf(grant.data === undefined ? bare : withData, grant, {
    ":token": grant.token,
    ":version": grant.version,
    ":owner": grant.owner,
    ":acquiredAt": grant.acquiredAt,
    ":expiresAt": grant.expiresAt,
    ":leaseDurationMs": grant.leaseDurationMs,
    ":ttl": timeToLive(grant.expiresAt, grant.retentionMs),
    ":one": 1,
    ...(grant.data === undefined ? {} : { ":data": grant.data }),
    ...(grant.reentrant ? { ":reentrant": 1 } : {}),
    ...judged,
  });
}

/** What a renewal writes. */
export interface Renewal extends LeasePlace {
  readonly token: string;
  readonly fencingToken: number;
  readonly version: number;
  readonly expiresAt: number;
  readonly leaseDurationMs: number;
  readonly retentionMs: number;
}

const ifMine = `#${token} = :token`;
const ifMyLease = `${ifMine} AND #${fence} = :fence`;

const prolong = written(
  `SET #${version} = :version, #${expiresAt} = :expiresAt, #${leaseDurationMs} = :leaseDurationMs, #${ttl} = :ttl`,
  `${ifMyLease} AND #${version} < :version`,
  true,
);

/** Prolongs a lease. The growing version keeps a renewal that arrives late from shortening a newer one. */
export function renew(renewal: Renewal): UpdateRequest {
  return requestOf(prolong, renewal, renewalValues(renewal));
}

const prolongUnlessRevoked = written(
  prolong.update,
  `${prolong.condition} AND attribute_not_exists(#${revocation})`,
  true,
);

/** Prolongs a lease whose holder nobody has asked to stop: for a renewer that reads no more than what it has written. */
export function renewUnlessRevoked(renewal: Renewal): UpdateRequest {
  return requestOf(prolongUnlessRevoked, renewal, renewalValues(renewal));
}

function renewalValues(renewal: Renewal): Item {
  return {
    ":token": renewal.token,
    ":fence": renewal.fencingToken,
    ":version": renewal.version,
    ":expiresAt": renewal.expiresAt,
    ":leaseDurationMs": renewal.leaseDurationMs,
    ":ttl": timeToLive(renewal.expiresAt, renewal.retentionMs),
  };
}

/** What the writes that end a lease need. */
export interface Ending extends LeasePlace {
  readonly token: string;
  readonly now: number;
  readonly retentionMs: number;
}

/** The end of a lease that stood for a run of its own: `slot` is done. Without it, nothing is said of any slot. */
export interface Completion extends Ending {
  readonly fencingToken: number;
  readonly slot: string | undefined;
}

const markReleased = `SET #${releasedToken} = :token, #${ttl} = :ttl`;
const markDone = `#${doneSlot} = :slot`;
const forgetHolder = `REMOVE #${token}, #${version}, #${owner}, #${acquiredAt}, #${expiresAt}, #${leaseDurationMs}, #${data}, #${revocation}, #${reentrant}`;
const leaveTombstone = `${markReleased} ${forgetHolder}`;
const letGo = written(leaveTombstone, ifMyLease);
const letGoDone = written(`${markReleased}, ${markDone} ${forgetHolder}`, ifMyLease);

/** Lets the lock go. The item stays as a tombstone, so that the fencing token survives. */
export function release(ending: Completion): UpdateRequest {
  const { slot } = ending;
  const values = { ...endingValues(ending), ":fence": ending.fencingToken };
  return slot === undefined
    ? requestOf(letGo, ending, values)
    : requestOf(letGoDone, ending, { ...values, ":slot": slot });
}

const breakOff = written(`SET #${releasedToken} = :token, #${brokenToken} = :token ${forgetHolder}`, ifMine);
const openUp = written(`SET #${brokenToken} = :token ${forgetHolder}`, ifMine);

/**
 * Lets another's lock go. It is marked as broken, so that its holder does not take it for its own release. For how long
 * the item is kept is its primitive's to say: that stays as it is.
 */
export function breakLease(lease: LeasePlace & { readonly token: string }): UpdateRequest {
  // A lock that is merely closed was released before: by that mark its holder recognises its own release.
  return requestOf(isClosedToken(lease.token) ? openUp : breakOff, lease, { ":token": lease.token });
}

const takeBack = written(leaveTombstone, `${ifMine} OR attribute_not_exists(#${token})`);

/**
 * Takes back an acquisition whose answer never came, whether its write has landed, is still under way or was lost:
 * on a free lock it marks the token as spent, and the late write is refused.
 */
export function cancel(ending: Ending): UpdateRequest {
  return requestOf(takeBack, ending, endingValues(ending));
}

function endingValues(ending: Ending): Item {
  return { ":token": ending.token, ":ttl": timeToLive(ending.now, ending.retentionMs) };
}

const markSpent = written(`SET #${releasedToken} = :token`, `attribute_exists(#${token})`, true);

/** Marks a token as spent on a lock that another holds, whose lease it leaves alone: a late takeover is refused. */
export function spend(ending: Pick<Ending, "key" | "place" | "token">): UpdateRequest {
  return requestOf(markSpent, ending, { ":token": ending.token });
}

const markClosed =
  `${markReleased}, #${token} = :closedToken, #${expiresAt} = :closedUntil, ` +
  `#${leaseDurationMs} = :remaining`;
const forgetWishes = `REMOVE #${data}, #${revocation}, #${reentrant}`;
const keepClosed = written(`${markClosed} ${forgetWishes}`, ifMyLease);
const keepClosedDone = written(`${markClosed}, ${markDone} ${forgetWishes}`, ifMyLease);

/** An end that keeps the lock closed for a while: until a time by the service's clock, and for how long to an observer. */
export interface Closing extends Completion {
  readonly closedUntil: number;
  readonly closedForMs: number;
}

/** Lets the lock go, but keeps it closed to everybody for a while. */
export function close(ending: Closing): UpdateRequest {
  const { slot } = ending;
  const values = {
    ":token": ending.token,
    ":fence": ending.fencingToken,
    ":closedToken": closedToken(ending.token),
    ":closedUntil": ending.closedUntil,
    ":remaining": ending.closedForMs,
    ":ttl": timeToLive(ending.closedUntil, ending.retentionMs),
  };
  return slot === undefined
    ? requestOf(keepClosed, ending, values)
    : requestOf(keepClosedDone, ending, { ...values, ":slot": slot });
}

const askToStop = written(`SET #${revocation} = :reason`, ifMine);

/** Asks the holder of one particular lease to stop. */
export function requestRevocation(
  request: LeasePlace & { readonly token: string; readonly reason: string },
): UpdateRequest {
  return requestOf(askToStop, request, { ":token": request.token, ":reason": request.reason });
}

const ifDoneAsSeen = `#${doneSlot} = :seen`;
const lowerSlot = written(`SET ${markDone}`, ifDoneAsSeen, true);
const forgetSlot = written(`REMOVE #${doneSlot}`, ifDoneAsSeen, true);

/** Takes back the slot that is done, in favour of an earlier one or of none. A holder and its lease stay as they are. */
export function takeBackSlot({ key, doneSlot: seen, to }: SlotTakenBack): UpdateRequest {
  return to === undefined
    ? requestOf(forgetSlot, { key }, { ":seen": seen })
    : requestOf(lowerSlot, { key }, { ":seen": seen, ":slot": to });
}

/** A slot that is not to count as done. */
export interface SlotTakenBack {
  readonly key: string;
  /** The one that is done, as it was seen. */
  readonly doneSlot: string;
  /** The one that is done from then on; none where it is undefined. */
  readonly to: string | undefined;
}

const recordProjection = [
  ...[token, version, fence, owner, acquiredAt, expiresAt, leaseDurationMs],
  ...[revocation, releasedToken, brokenToken, doneSlot],
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
  everyPlace = false,
): Pick<ScanRequest, "filter" | "names" | "values"> {
  const { semaphore, readWrite } = seatSortKeys;
  const isLease = `attribute_exists(#${token})`;
  const filter = [
    everyPlace
      ? `(${isLease} OR #${sortKey} = :semaphore OR #${sortKey} = :readWrite)`
      : `${isLease} AND #${sortKey} = :lease`,
    ...(prefix === "" ? [] : [`begins_with(#${partitionKey}, :prefix)`]),
  ].join(" AND ");
  return {
    filter,
    names: namesIn(filter),
    values: {
      ...(everyPlace ? { ":semaphore": semaphore, ":readWrite": readWrite } : { ":lease": leaseSortKey }),
      ...(prefix === "" ? {} : { ":prefix": prefix }),
    },
  };
}

/** Finds everything under a key. */
export function leasesOf(key: string): Pick<QueryRequest, "keyCondition" | "names" | "values"> {
  const keyCondition = `#${partitionKey} = :key`;
  return { keyCondition, names: namesIn(keyCondition), values: { ":key": key } };
}

/** What one of a lease's writes does, for those who let more travel with it. */
export type LeaseWrite = "acquire" | "takeOver" | "renew" | "end" | "other";

/** Tells a lease's writes apart by the values that they bring. */
export function kindOf({ values }: Pick<UpdateRequest, "values">): LeaseWrite {
  if (values[":judgedToken"] !== undefined) return "takeOver";
  if (values[":acquiredAt"] !== undefined) return "acquire";
  if (values[":version"] !== undefined) return "renew";
  return values[":token"] !== undefined && values[":ttl"] !== undefined ? "end" : "other";
}

/** "Somebody holds the lock", so that whoever parks can count on being woken by the release. */
export function heldBySomebody(): Omit<UpdateRequest, "key" | "update" | "returnsItem" | "values"> {
  const condition = `attribute_exists(#${token})`;
  return { condition, names: namesIn(condition) };
}

/** Writes a parked waiter, or gives it its new task token where it has been parked before. */
export function park(waiter: {
  readonly taskToken: string;
  readonly expiresAt: number;
  readonly retentionMs: number;
}): Omit<UpdateRequest, "key" | "condition" | "returnsItem"> {
  const update = `SET #${taskToken} = :taskToken, #${ttl} = :ttl`;
  const values = { ":taskToken": waiter.taskToken, ":ttl": timeToLive(waiter.expiresAt, waiter.retentionMs) };
  return { update, names: namesIn(update), values };
}

/** A durable function's execution that waits for a lock, as it is parked. */
export interface ParkedCallback {
  readonly key: string;
  readonly owner: string;
  /** In epoch milliseconds; those who have waited longer are woken first. */
  readonly waitingSince: number;
  /** What Lambda wants back to let the execution go on. */
  readonly callbackId: string;
  /** When it stops waiting for this callback, in epoch milliseconds. */
  readonly expiresAt: number;
  readonly retentionMs: number;
}

/**
 * Parks a durable function's execution while somebody holds the lock, or gives it its new callback where it has been
 * parked before. The first entry refuses where nobody holds it.
 */
export function parkCallback(waiter: ParkedCallback): readonly [TransactionEntry, TransactionEntry] {
  const { key, owner, waitingSince, callbackId: id } = waiter;
  const update = `SET #${callbackId} = :callbackId, #${ttl} = :ttl`;
  const ifNoLease = `attribute_not_exists(#${token})`;
  return [
    { key: leaseItemKey(key), action: "check", ...heldBySomebody(), values: {} },
    {
      key: leaseItemKey(key, `${waiterSortKeyPrefix}${waitingSince}#${owner}`),
      action: { update },
      condition: ifNoLease,
      names: namesIn(`${update} ${ifNoLease}`),
      values: { ":callbackId": id, ":ttl": timeToLive(waiter.expiresAt, waiter.retentionMs) },
    },
  ];
}

/** Finds the waiters of a lock, the one that has waited longest first. */
export function waitersOf(key: string): {
  readonly keyCondition: string;
  readonly names: Readonly<Record<string, string>>;
  readonly values: Item;
} {
  const keyCondition = `#${partitionKey} = :key AND begins_with(#${sortKey}, :waiters)`;
  return {
    keyCondition,
    names: namesIn(keyCondition),
    values: { ":key": key, ":waiters": waiterSortKeyPrefix },
  };
}

/** What a parked waiter waits by: a workflow by its task token, a durable function by its callback. */
export type WaitsBy = { readonly taskToken: string } | { readonly callbackId: string };

/** Deletes a waiter that was woken or that is gone, unless it has parked again since. */
export function removeWaiter(
  waiter: { readonly key: ItemKey } & WaitsBy,
): Omit<UpdateRequest, "update" | "returnsItem"> {
  const isWorkflow = "taskToken" in waiter;
  const condition = isWorkflow ? `#${taskToken} = :taskToken` : `#${callbackId} = :callbackId`;
  return {
    key: waiter.key,
    condition,
    names: namesIn(condition),
    values: isWorkflow ? { ":taskToken": waiter.taskToken } : { ":callbackId": waiter.callbackId },
  };
}

/** The mark that a lease's holder calls a function, which may run on after the holder itself has been stopped. */
export interface CallMark extends Pick<LeasePlace, "key"> {
  readonly fencingToken: number;
  readonly now: number;
  readonly retentionMs: number;
}

const markCalling = `SET #${fence} = :fence, #${ttl} = :ttl`;
const isUnmarked = `attribute_not_exists(#${fence})`;
const firstMark = written(markCalling, `${isUnmarked} OR #${fence} = :fence`);
const laterMark = written(markCalling, `${isUnmarked} OR #${fence} <= :fence`);
const removeMark = written(`SET #${ttl} = :ttl REMOVE #${fence}`, `#${fence} = :fence`);

/** Marks that calls begin. Refused where an earlier holder has never said that its own have ended. */
export function markCalls(mark: CallMark): UpdateRequest {
  return markRequest(firstMark, mark);
}

/** Marks that calls begin, once those of an earlier holder must have ended. Refused to an earlier holder itself. */
export function takeOverCalls(mark: CallMark): UpdateRequest {
  return markRequest(laterMark, mark);
}

/** Says that this holder's calls have ended. */
export function endCalls(mark: CallMark): UpdateRequest {
  return markRequest(removeMark, mark);
}

function markRequest(expression: Written, { key, fencingToken, now, retentionMs }: CallMark): UpdateRequest {
  const values = { ":fence": fencingToken, ":ttl": timeToLive(now, retentionMs) };
  return requestOf(expression, { key, place: callSortKey }, values);
}

/** "Only while this very lease holds the lock", for the user's own transaction. */
export function stillHeld(
  lease: Pick<Renewal, "token" | "fencingToken">,
): Omit<UpdateRequest, "key" | "update" | "returnsItem"> {
  const values = { ":token": lease.token, ":fence": lease.fencingToken };
  return { condition: ifMyLease, names: namesIn(ifMyLease), values };
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

function written(update: string, condition: string, returnsItem = false): Written {
  return { update, condition, names: namesIn(`${update} ${condition}`), returnsItem };
}

function requestOf(expression: Written, { key, place }: LeasePlace, values: Item): UpdateRequest {
  return { key: leaseItemKey(key, place), ...expression, values };
}

/** Our own placeholders are `#` and the attribute's name, so that the names follow from the expression. */
export function namesIn(expression: string): Record<string, string> {
  const names: Record<string, string> = {};
  for (const [placeholder, name] of expression.matchAll(/#(\w+)/g)) {
    if (name !== undefined) names[placeholder] = name;
  }
  return names;
}
