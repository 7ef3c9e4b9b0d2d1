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
 *     acquire   nobody holds it, and this very token has not been released already
 *     takeOver  the record is still the one that was judged expired: same token, same version
 *     renew     the token is mine, and nothing newer of mine has been written
 *     release   the token is mine
 *     cancel    the token is mine, or nobody's
 *     spend     somebody holds it; nothing but the mark of a spent token changes
 */
import { attributeNames, closedToken, leaseItemKey, leaseSortKey, timeToLive } from "./schema.ts";
import type { Item, ScanRequest, UpdateRequest } from "./store.ts";

const { token, version, fence, owner, acquiredAt, expiresAt, leaseDurationMs } = attributeNames;
const { data, revocation, releasedToken, partitionKey, sortKey } = attributeNames;
const ttl = attributeNames.timeToLive;

/** What an acquisition writes. */
export interface Grant {
  readonly key: string;
  readonly token: string;
  /** Never used before with this token: a record that comes back has to differ from the one that was judged. */
  readonly version: number;
  readonly owner: string;
  readonly acquiredAt: number;
  readonly leaseDurationMs: number;
  readonly retentionMs: number;
  /** JSON text. */
  readonly data: string | undefined;
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

/** Both forms of a grant: with a payload, and one that removes an earlier holder's. */
function grantWhere(condition: string): { readonly bare: Written; readonly withData: Written } {
  return {
    bare: written(`${grantTo} REMOVE #${revocation}, #${data}`, condition, true),
    withData: written(`${grantTo}, #${data} = :data REMOVE #${revocation}`, condition, true),
  };
}

const grantIfFree = grantWhere(`attribute_not_exists(#${token}) AND #${releasedToken} <> :token`);

/** Takes a lock that nobody holds. A late copy of a request whose lease has been released since finds the token spent. */
export function acquire(grant: Grant): UpdateRequest {
  return grantUpdate(grant, grantIfFree, {});
}

const grantIfUnchanged = grantWhere(
  `#${token} = :judgedToken AND #${version} = :judgedVersion AND #${releasedToken} <> :token`,
);

/** Takes a lock from the record that was judged; any write to that record in between defeats it. */
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
  const expiry = grant.acquiredAt + grant.leaseDurationMs;
  const payload = grant.data === undefined ? undefined : { ":data": grant.data };
  return requestOf(payload ? forms.withData : forms.bare, grant.key, {
    ":token": grant.token,
    ":version": grant.version,
    ":owner": grant.owner,
    ":acquiredAt": grant.acquiredAt,
    ":expiresAt": expiry,
    ":leaseDurationMs": grant.leaseDurationMs,
    ":ttl": timeToLive(expiry, grant.retentionMs),
    ":one": 1,
    ...payload,
    ...judged,
  });
}

/** What a renewal writes. */
export interface Renewal {
  readonly key: string;
  readonly token: string;
  readonly version: number;
  readonly expiresAt: number;
  readonly leaseDurationMs: number;
  readonly retentionMs: number;
}

const prolong = written(
  `SET #${version} = :version, #${expiresAt} = :expiresAt, #${leaseDurationMs} = :leaseDurationMs, #${ttl} = :ttl`,
  `#${token} = :token AND #${version} < :version`,
  true,
);

/** Prolongs a lease. The growing version keeps a renewal that arrives late from shortening a newer one. */
export function renew(renewal: Renewal): UpdateRequest {
  return requestOf(prolong, renewal.key, {
    ":token": renewal.token,
    ":version": renewal.version,
    ":expiresAt": renewal.expiresAt,
    ":leaseDurationMs": renewal.leaseDurationMs,
    ":ttl": timeToLive(renewal.expiresAt, renewal.retentionMs),
  });
}

/** What the writes that end a lease need. */
export interface Ending {
  readonly key: string;
  readonly token: string;
  readonly now: number;
  readonly retentionMs: number;
}

const leaveTombstone =
  `SET #${releasedToken} = :token, #${ttl} = :ttl ` +
  `REMOVE #${token}, #${version}, #${owner}, #${acquiredAt}, #${expiresAt}, #${leaseDurationMs}, #${data}, #${revocation}`;
const ifMine = `#${token} = :token`;
const letGo = written(leaveTombstone, ifMine);

/** Lets the lock go. The item stays as a tombstone, so that the fencing token survives. */
export function release(ending: Ending): UpdateRequest {
  return requestOf(letGo, ending.key, endingValues(ending));
}

const takeBack = written(leaveTombstone, `${ifMine} OR attribute_not_exists(#${token})`);

/**
 * Takes back an acquisition whose answer never came, whether its write has landed, is still under way or was lost:
 * on a free lock it marks the token as spent, and the late write is refused.
 */
export function cancel(ending: Ending): UpdateRequest {
  return requestOf(takeBack, ending.key, endingValues(ending));
}

function endingValues(ending: Ending): Item {
  return { ":token": ending.token, ":ttl": timeToLive(ending.now, ending.retentionMs) };
}

const markSpent = written(`SET #${releasedToken} = :token`, `attribute_exists(#${token})`, true);

/** Marks a token as spent on a lock that another holds, whose lease it leaves alone: a late takeover is refused. */
export function spend({ key, token }: Pick<Ending, "key" | "token">): UpdateRequest {
  return requestOf(markSpent, key, { ":token": token });
}

const keepClosed = written(
  `SET #${releasedToken} = :token, #${token} = :closedToken, #${expiresAt} = :closedUntil, ` +
    `#${leaseDurationMs} = :remaining, #${ttl} = :ttl REMOVE #${data}, #${revocation}`,
  ifMine,
);

/** Lets the lock go, but keeps it closed to everybody until a given time. */
export function close(ending: Ending & { readonly closedUntil: number }): UpdateRequest {
  return requestOf(keepClosed, ending.key, {
    ":token": ending.token,
    ":closedToken": closedToken(ending.token),
    ":closedUntil": ending.closedUntil,
    ":remaining": ending.closedUntil - ending.now,
    ":ttl": timeToLive(ending.closedUntil, ending.retentionMs),
  });
}

const askToStop = written(`SET #${revocation} = :reason`, ifMine);

/** Asks the holder of one particular lease to stop. */
export function requestRevocation(request: {
  readonly key: string;
  readonly token: string;
  readonly reason: string;
}): UpdateRequest {
  return requestOf(askToStop, request.key, { ":token": request.token, ":reason": request.reason });
}

/** Finds the leases whose key starts with a prefix. */
export function leasesByPrefix(prefix: string): Pick<ScanRequest, "filter" | "names" | "values"> {
  const filter =
    `#${sortKey} = :lease AND attribute_exists(#${token})` +
    (prefix === "" ? "" : ` AND begins_with(#${partitionKey}, :prefix)`);
  return {
    filter,
    names: namesIn(filter),
    values: { ":lease": leaseSortKey, ...(prefix === "" ? {} : { ":prefix": prefix }) },
  };
}

/** "Only while this token holds the lock", for the user's own transaction. */
export function stillHeld(token: string): Omit<UpdateRequest, "key" | "update" | "returnsItem"> {
  const condition = `#${attributeNames.token} = :leaseToken`;
  return { condition, names: namesIn(condition), values: { ":leaseToken": token } };
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

function requestOf(expression: Written, key: string, values: Item): UpdateRequest {
  return { key: leaseItemKey(key), ...expression, values };
}

/** Our own placeholders are `#` and the attribute's name, so that the names follow from the expression. */
function namesIn(expression: string): Record<string, string> {
  const names: Record<string, string> = {};
  for (const [placeholder, name] of expression.matchAll(/#(\w+)/g)) {
    if (name !== undefined) names[placeholder] = name;
  }
  return names;
}
