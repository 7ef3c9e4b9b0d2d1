/**
 * The lease table's attribute names, its key encoding and its limits, in one place and without an SDK import,
 * so that infrastructure code can read them too.
 */

/** Attribute names of the table. An item under a key is told apart by its sort key. */
export const attributeNames = {
  /** Partition key (S): the lock's key, as the user wrote it. */
  partitionKey: "pk",
  /** Sort key (S): the kind of item under that key. */
  sortKey: "sk",
  /** S: unique id of the acquisition that holds the lock; absent while the lock is free. */
  token: "token",
  /** N: grows with every write of one token, so that writes that arrive late are told from newer ones. */
  version: "version",
  /** N: the fencing token; grows with every acquisition and survives a release. */
  fence: "fence",
  /** S: readable label of the holder. */
  owner: "owner",
  /** N: when the lease was acquired, in epoch milliseconds of the holder's clock. */
  acquiredAt: "acquiredAt",
  /** N: when the lease ends, in epoch milliseconds of the service's clock; see `ownClock`. */
  expiresAt: "expiresAt",
  /**
   * N: the version whose `expiresAt` is of its writer's own clock, for the service had not told it the time: then the
   * lease is judged by observation alone. It says nothing beside another version.
   */
  ownClock: "ownClock",
  /** N: how long an observer has to watch an unchanged record before it may call the holder dead. */
  leaseDurationMs: "leaseDurationMs",
  /** N: 1 where the lease was acquired with `reentrant`; its owner alone may take it over before its end. */
  reentrant: "reentrant",
  /** S: the user's payload, as JSON text. */
  data: "data",
  /** S: why the holder is asked to stop; absent without such a request. */
  revocation: "revocation",
  /** S: the token that was released last; by it a release whose answer was lost is recognised. */
  releasedToken: "releasedToken",
  /** S: the token whose lease was broken last (`forceRelease`): its holder has not released it. */
  brokenToken: "brokenToken",
  /** S: the token of a pause: while it holds the lock, an operator keeps the lock closed on purpose. */
  pauseToken: "pauseToken",
  /** S: the owner of the last lease that has ended; kept while another holds the lock. */
  lastOwner: "lastOwner",
  /** N: when that lease was acquired, in epoch milliseconds of its holder's clock. */
  lastAcquiredAt: "lastAcquiredAt",
  /** S: how that lease ended, a space, and when, in epoch milliseconds. */
  lastEnd: "lastEnd",
  /** S: the latest slot that was completed; survives every release, so that a slot is done once. */
  doneSlot: "doneSlot",
  /** S: of a parked waiter, what Step Functions wants back to let it go on. Of no use without permission to send it. */
  taskToken: "taskToken",
  /** S: of a parked waiter, what Lambda wants back to let a durable function go on. Of no use without permission to send it. */
  callbackId: "callbackId",
  /** N: epoch seconds after which DynamoDB may collect the item. Never the lock's expiry. */
  timeToLive: "ttl",
} as const;

/** The sort key of a lease item. */
export const leaseSortKey = "lease";

/** Sort keys of workflows and durable functions that wait for the lock begin with this; then comes since when, and who. */
export const waiterSortKeyPrefix = "waiter#";

/** The sort key of the mark that calls are under way of a function that knows nothing of the lock. */
export const callSortKey = "call";

/** Sort keys of the traces that operators leave begin with this; then come an ISO time and an id. */
export const auditSortKeyPrefix = "audit#";

/**
 * Sort keys of a key's history begin with this; then come an ISO time, a fencing token and what happened. They sort
 * behind all others: a read of the other items under a key ends before them, for there may be many.
 */
export const historySortKeyPrefix = "~history#";

/** The primary key of an item of the lease table. */
export interface ItemKey {
  readonly pk: string;
  readonly sk: string;
}

/** Gives the primary key of a lock's lease item, or of a lease that has another sort key under its key. */
export function leaseItemKey(key: string, sortKey: string = leaseSortKey): ItemKey {
  return { [attributeNames.partitionKey]: key, [attributeNames.sortKey]: sortKey } as unknown as ItemKey;
}

const cooldownPrefix = "closed:";

/**
 * Gives the token of a lock that was released early and is in its cooldown (`lockAtLeastForMs`).
 *
 * It differs from the holder's token, so that nothing the former holder still sends can match it.
 */
export function cooldownToken(token: string): string {
  return cooldownPrefix + token;
}

/** Tells whether a token stands for a lock that has no holder, but is in its cooldown. */
export function isCooldownToken(token: string): boolean {
  return token.startsWith(cooldownPrefix);
}

/** Gives the ttl attribute's value: whole epoch seconds, never earlier than the retention asks. */
export function timeToLive(expiresAtMs: number, retentionMs: number): number {
  return Math.ceil((expiresAtMs + retentionMs) / 1000);
}

/** DynamoDB's limits, and our own share of an item, in bytes of UTF-8 unless the name says otherwise. */
export const limits: {
  readonly keyBytes: number;
  readonly sortKeyBytes: number;
  readonly ownerBytes: number;
  readonly revocationBytes: number;
  readonly slotBytes: number;
  readonly slotAheadMs: number;
  readonly dataBytes: number;
  readonly dataDepth: number;
  readonly durationMs: number;
  readonly handleVersion: number;
} = {
  /** DynamoDB's limit for a partition key. */
  keyBytes: 2048,
  /** DynamoDB's limit for a sort key. */
  sortKeyBytes: 1024,
  /** Ours: an owner is a label, not a document. */
  ownerBytes: 1024,
  /** Ours: a reason to stop is a sentence. */
  revocationBytes: 1024,
  /** Ours: a slot is a time or a number. */
  slotBytes: 255,
  /** Ours: how far ahead of its reader's clock a slot that is a time may lie. Clocks that are kept differ by less. */
  slotAheadMs: 60_000,
  /** DynamoDB's 400 KB less 8 KiB for the key, the owner, the revocation and every other attribute. */
  dataBytes: 400 * 1024 - 8 * 1024,
  /** Ours: how many arrays and objects a payload may nest. */
  dataDepth: 100,
  /** A year: far above any use, and every sum of times stays an exact integer. */
  durationMs: 366 * 24 * 60 * 60 * 1000,
  /** Ours: the versions of a durable execution's lease begin with the time, and it is this many milliseconds in 2286. */
  handleVersion: 10_000_000_000_000,
};

/** Counts the bytes that DynamoDB counts for a string. */
export function utf8Bytes(text: string): number {
  return Buffer.byteLength(text);
}
