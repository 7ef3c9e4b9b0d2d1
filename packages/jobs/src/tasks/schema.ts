/** Names, sort keys and limits of task items; without an SDK import, as `schema.ts`. */
import { type ItemKey, leaseItemKey } from "@leasehold/client/internal";

/** Attributes that task items have beside those of a lease item. */
export const taskAttributeNames = {
  /** S, of an ended task alone: succeeded, failed, parked or cancelled. An open one is running while it has a token, else waiting. */
  state: "state",
  /** N: how often the task has been claimed; what was released without being counted is taken off again. */
  attempts: "attempts",
  /** N: how many claims it may have; written when it is added, so that all workers agree. */
  maxAttempts: "maxAttempts",
  /** N: not to be claimed before this, in epoch milliseconds. */
  dueAt: "dueAt",
  /** S: the payload as JSON text; empty for none. */
  payload: "payload",
  /** S: what was last said of it; empty for nothing. */
  remark: "remark",
  /** N: when it was added, in epoch milliseconds. */
  addedAt: "addedAt",
  /** N: when it ended, in epoch milliseconds. */
  endedAt: "endedAt",
} as const;

/**
 * Sort keys of tasks that are waiting or running: this, eight hexadecimal digits that spread the ids evenly, `#` and
 * the id. A worker that starts at random digits starts at a random task, whatever the ids look like.
 */
export const openTaskPrefix = "task#";
const spreadLength = 8;

/** Sort keys of tasks that have ended: this and the id. Whoever looks for open tasks does not come across them. */
export const endedTaskPrefix = "done#";

/** Bounds of a task, in bytes of UTF-8 unless the name says otherwise. */
export const taskLimits: {
  readonly idBytes: number;
  readonly payloadBytes: number;
  readonly remarkBytes: number;
  readonly attempts: number;
} = {
  /** A sort key has 1024 bytes. */
  idBytes: 512,
  /** Every claim, renewal and ending is billed for it, and fifty tasks have to fit into a transaction of 4 MB. */
  payloadBytes: 16 * 1024,
  remarkBytes: 1024,
  attempts: 1000,
};

/** Gives the place of a task that is waiting or running. */
function openTaskPlace(id: string): string {
  return `${openTaskPrefix}${spreadDigits(hashOf(id))}#${id}`;
}

/** Gives the key of the item of a task that is waiting or running. */
export function openTaskKey(set: string, id: string): ItemKey {
  return leaseItemKey(set, openTaskPlace(id));
}

/** Gives the key of the item of a task that has ended. */
export function endedTaskKey(set: string, id: string): ItemKey {
  return leaseItemKey(set, endedTaskPrefix + id);
}

/** Gives the id of the task that a sort key is about. */
export function taskIdOf(sortKey: string): string {
  const isOpen = sortKey.startsWith(openTaskPrefix);
  return sortKey.slice(isOpen ? openTaskPrefix.length + spreadLength + 1 : endedTaskPrefix.length);
}

/** Gives what all open tasks begin with whose ids are spread to the same place. */
export function openTaskStartOf(sortKey: string): string {
  return sortKey.slice(0, openTaskPrefix.length + spreadLength);
}

/** Gives a place among the open tasks, from 0 for the first to 1 for the last. */
export function openTaskStart(fraction: number): string {
  return openTaskPrefix + spreadDigits(Math.floor(fraction * 2 ** 32));
}

function spreadDigits(hash: number): string {
  return hash.toString(16).padStart(spreadLength, "0");
}

/** FNV-1a over the id's bytes, then mixed, since ids that differ only in their end would come to lie together. */
function hashOf(id: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(id)) hash = Math.imul(hash ^ byte, 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
