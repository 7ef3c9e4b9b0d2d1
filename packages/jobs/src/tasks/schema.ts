/** Names, sort keys and limits of task items. An open and an ended task are two items under the set's partition key. */
import { type ItemKey, leaseItemKey, limits, taskSortKeyPrefix } from "@leasehold/client/internal";

/** Attributes of task items, besides those of a lease item. */
export const taskAttributeNames = {
  /**
   * S, only of an ended task: succeeded, failed, parked or cancelled. An open task with a token is running, without
   * one waiting.
   */
  state: "state",
  /** N: how often the task has been claimed. An attempt that is released is subtracted again. */
  attempts: "attempts",
  /** N: how many claims it may have. Written when the task is added, so that all workers agree. */
  maxAttempts: "maxAttempts",
  /** N: when it may be claimed, in epoch milliseconds. */
  dueAt: "dueAt",
  /** S: the payload as JSON text; empty for none. */
  payload: "payload",
  /** S: the last remark; empty for none. */
  remark: "remark",
  /** N: when it was added, in epoch milliseconds. */
  addedAt: "addedAt",
  /** N: when it ended, in epoch milliseconds. */
  endedAt: "endedAt",
  /** S: tasks with the same one run one at a time; absent for none. */
  serialKey: "serialKey",
  /** S, only of a serial key's item: the id of the key's task that was claimed last. */
  lastTask: "lastTask",
  /** N, only of a period of the set's rate: how many claims have begun in it. */
  claims: "claims",
} as const;

/**
 * Sort keys of open tasks, which are waiting or running: this prefix, eight hexadecimal digits that spread the ids
 * evenly, `#` and the id. A worker that starts at random digits starts at a random task, whatever the ids look like.
 */
export const openTaskPrefix: string = taskSortKeyPrefix;
const spreadLength = 8;

/** Sort keys of ended tasks: this prefix and the id. A query for open tasks does not read them. */
export const endedTaskPrefix = "done#";

/** Sort keys of serial keys: this prefix and the key. */
export const serialKeyPrefix = "serial#";

/** Sort keys of the periods of a rate: this prefix, the period's length in milliseconds, `#` and the period's number. */
export const ratePeriodPrefix = "rate#";

/**
 * How long ttl keeps the item of a serial key after its last claim: the longest duration that an option takes. The item
 * must outlive that claim, and renewals of the claim do not change it.
 */
export const serialKeyKeptForMs: number = limits.durationMs;

/** Bounds of a task, in bytes of UTF-8 unless the name says otherwise. */
export const taskLimits = {
  /** A sort key has 1024 bytes. */
  idBytes: 512,
  serialKeyBytes: 512,
  /** Every write of the task is billed for it, and fifty tasks have to fit into a transaction of 4 MB. */
  payloadBytes: 16_384,
  remarkBytes: 1024,
  attempts: 1000,
} as const;

/** Gives the key of an open task's item. */
export function openTaskKey(set: string, id: string): ItemKey {
  return leaseItemKey(set, `${openTaskPrefix}${spreadDigits(hashOf(id))}#${id}`);
}

/** Gives the key of an ended task's item. */
export function endedTaskKey(set: string, id: string): ItemKey {
  return leaseItemKey(set, endedTaskPrefix + id);
}

/** Gives the key of a serial key's item. */
export function serialKeyItemKey(set: string, serialKey: string): ItemKey {
  return leaseItemKey(set, serialKeyPrefix + serialKey);
}

/** Gives the key of the item that counts the claims of a period. */
export function ratePeriodKey(set: string, perMs: number, period: number): ItemKey {
  return leaseItemKey(set, `${ratePeriodPrefix}${perMs}#${period}`);
}

/** Gives the id of the task with a sort key. */
export function taskIdOf(sortKey: string): string {
  const isOpen = sortKey.startsWith(openTaskPrefix);
  return sortKey.slice(isOpen ? openTaskPrefix.length + spreadLength + 1 : endedTaskPrefix.length);
}

/** Gives the prefix and the digits of an open task's sort key. */
export function openTaskStartOf(sortKey: string): string {
  return sortKey.slice(0, openTaskPrefix.length + spreadLength);
}

/** Gives a sort key among the open tasks: before the first for 0, after the last for 1. */
export function openTaskStart(fraction: number): string {
  return openTaskPrefix + spreadDigits(Math.floor(fraction * 2 ** 32));
}

function spreadDigits(hash: number): string {
  return hash.toString(16).padStart(spreadLength, "0");
}

/** FNV-1a over the id's bytes, then mixed: otherwise ids that differ only at their end would get similar digits. */
function hashOf(id: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(id)) hash = Math.imul(hash ^ byte, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
