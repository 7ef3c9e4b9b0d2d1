/**
 * The lease table's attribute names, its key encoding and its limits, in one place and without an SDK import,
 * so that infrastructure code can read them too.
 */

/** Attribute names of the table. The sort key distinguishes the items under a key. */
export const attributeNames = {
  /** Partition key (S): the lock's key, as the user wrote it. */
  partitionKey: "pk",
  /** Sort key (S): the kind of item under that key. */
  sortKey: "sk",
  /** S: unique id of the acquisition that holds the lock; absent while the lock is free. */
  token: "token",
  /** N: grows with every write of one token, so that a late write can be distinguished from a newer one. */
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
   * N: the version whose `expiresAt` comes from its writer's own clock, because the service had not told it the time.
   * Then only observation judges the lease. It applies to no other version.
   */
  ownClock: "ownClock",
  /** N: how long an observer has to see an unchanged record until it may judge the holder dead. */
  leaseDurationMs: "leaseDurationMs",
  /** N: 1 if the lease was acquired with `reentrant`; its owner alone may take it over before its end. */
  reentrant: "reentrant",
  /** S: the user's payload, as JSON text. */
  data: "data",
  /** S: why the holder is asked to stop; absent without such a request. */
  revocation: "revocation",
  /** S: the last released token; it identifies a release whose answer was lost. */
  releasedToken: "releasedToken",
  /** S: the token whose lease was broken last (`forceRelease`): its holder has not released it. */
  brokenToken: "brokenToken",
  /** S: the token of a pause: while it holds the lock, an operator keeps the lock closed on purpose. */
  pauseToken: "pauseToken",
  /** S: the owner of the last lease that has ended; kept while another owner holds the lock. */
  lastOwner: "lastOwner",
  /** N: when that lease was acquired, in epoch milliseconds of its holder's clock. */
  lastAcquiredAt: "lastAcquiredAt",
  /** S: how that lease ended, a space, and when, in epoch milliseconds. */
  lastEnd: "lastEnd",
  /** S: the latest slot that was completed; survives every release, so that a slot is done once. */
  doneSlot: "doneSlot",
  /**
   * S: for a parked waiter, the token that resumes the waiting Step Functions execution. Useless without the permission
   * to send it.
   */
  taskToken: "taskToken",
  /**
   * S: for a parked waiter, the id that resumes the waiting durable function in Lambda. Useless without the permission
   * to send it.
   */
  callbackId: "callbackId",
  /** N: epoch seconds after which DynamoDB may collect the item. Never the lock's expiry. */
  timeToLive: "ttl",
} as const;

/** The sort key of a lease item. */
export const leaseSortKey = "lease";

/**
 * The sort keys of workflows and durable functions that wait for the lock begin with this; then come the time since
 * which they wait, and the waiter.
 */
export const waiterSortKeyPrefix = "waiter#";

/** Sort keys of open tasks begin with this. */
export const taskSortKeyPrefix = "task#";

/** The sort key of the mark that calls of a function without its own locking code are under way. */
export const callSortKey = "call";

/** The sort keys of operators' traces begin with this; then come an ISO time and an id. */
export const auditSortKeyPrefix = "audit#";

/**
 * The sort keys of a key's history begin with this; then come an ISO time, a fencing token and the kind of the change.
 * They sort behind all others, because there may be many: a read of a key's other items ends before them.
 */
export const historySortKeyPrefix = "~history#";

/** The primary key of an item of the lease table. */
export interface ItemKey {
  readonly pk: string;
  readonly sk: string;
}

/** Returns the primary key of a lock's lease item, or of a lease with another sort key under its key. */
export function leaseItemKey(key: string, sortKey: string = leaseSortKey): ItemKey {
  return { [attributeNames.partitionKey]: key, [attributeNames.sortKey]: sortKey } as unknown as ItemKey;
}

const cooldownPrefix = "closed:";

/**
 * Returns the token of a lock that was released early and is in its cooldown (`lockAtLeastForMs`).
 *
 * It differs from the holder's token, so that no late request of the former holder can match it.
 */
export function cooldownToken(token: string): string {
  return cooldownPrefix + token;
}

/** Whether a token stands for a lock in its cooldown, which has no holder. */
export function isCooldownToken(token: string): boolean {
  return token.startsWith(cooldownPrefix);
}

/** Returns the ttl attribute's value: whole epoch seconds, never earlier than the retention requires. */
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
  /**
   * Our own limit: how far a slot that is a time may lie ahead of its reader's clock. Well-kept clocks differ by less.
   */
  slotAheadMs: 60_000,
  /** DynamoDB's 400 KB less 8 KiB for the key, the owner, the revocation and every other attribute. */
  dataBytes: 400 * 1024 - 8 * 1024,
  /** Ours: how many arrays and objects a payload may nest. */
  dataDepth: 100,
  /** A year: far above any use, and every sum of times stays an exact integer. */
  durationMs: 366 * 24 * 60 * 60 * 1000,
  /**
   * Our own limit: the versions of a durable execution's lease begin with the time, and the time has this many
   * milliseconds in 2286.
   */
  handleVersion: 10_000_000_000_000,
};

/** Counts the bytes that DynamoDB counts for a string. */
export function utf8Bytes(text: string): number {
  return Buffer.byteLength(text);
}
