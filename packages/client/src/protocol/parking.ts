/**
 * The writes of workflows and durable functions that wait for a lock or hold it while they call others: each waiter and
 * each mark is an item of its own under the lock's key.
 */

import { type LeaseAddress, namesIn } from "../expressions.ts";
import {
  attributeNames,
  callSortKey,
  type ItemKey,
  leaseItemKey,
  timeToLive,
  waiterSortKeyPrefix,
} from "../schema.ts";
import { type Condition, renderConditions, type Test, type Write } from "../store/write.ts";
import type { Item, UpdateRequest } from "../store.ts";

const { token, fence, taskToken, callbackId, partitionKey, timeToLive: ttl } = attributeNames;

/** "Somebody holds the lock", so that a waiter that parks can count on being woken by the release. */
export function heldBySomebody(key: string): Write {
  return { key: leaseItemKey(key), set: {}, insist: [[token, "exists"]] };
}

/** Parks a workflow while it waits, or gives it its new task token where it has been parked before. */
export function park(
  waiter: ItemKey,
  terms: { readonly taskToken: string; readonly expiresAt: number; readonly retentionMs: number },
): Write {
  return {
    key: waiter,
    set: { [taskToken]: terms.taskToken, [ttl]: timeToLive(terms.expiresAt, terms.retentionMs) },
    insist: [],
  };
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
export function parkCallback(waiter: ParkedCallback): readonly [Write, Write] {
  const { key, owner, waitingSince, callbackId: id } = waiter;
  const parked: Write = {
    key: leaseItemKey(key, `${waiterSortKeyPrefix}${waitingSince}#${owner}`),
    set: { [callbackId]: id, [ttl]: timeToLive(waiter.expiresAt, waiter.retentionMs) },
    insist: [[token, "missing"]],
  };
  return [heldBySomebody(key), parked];
}

/** Finds the waiters of a lock, the one that has waited longest first. */
export function waitersOf(key: string): {
  readonly keyCondition: string;
  readonly names: Readonly<Record<string, string>>;
  readonly values: Item;
} {
  const keyCondition = `#${partitionKey} = :key AND begins_with(#${attributeNames.sortKey}, :waiters)`;
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
  const isParkedBy: Condition =
    "taskToken" in waiter ? [taskToken, "=", waiter.taskToken] : [callbackId, "=", waiter.callbackId];
  return { key: waiter.key, ...renderConditions([isParkedBy]) };
}

/** The mark that a lease's holder calls a function, which may run on after the holder itself has been stopped. */
export interface CallMark extends Pick<LeaseAddress, "key"> {
  readonly fencingToken: number;
  readonly now: number;
  readonly retentionMs: number;
}

/** Marks that calls begin. Refused where an earlier holder has never said that its own have ended. */
export function markCalls(mark: CallMark): Write {
  return markedCalls(mark, [fence, "=", mark.fencingToken]);
}

/** Marks that calls begin, once those of an earlier holder must have ended. Refused to an earlier holder itself. */
export function takeOverCalls(mark: CallMark): Write {
  return markedCalls(mark, [fence, "<=", mark.fencingToken]);
}

function markedCalls({ key, fencingToken, now, retentionMs }: CallMark, isOurs: Test): Write {
  return {
    key: leaseItemKey(key, callSortKey),
    set: { [fence]: fencingToken, [ttl]: timeToLive(now, retentionMs) },
    insist: [{ anyOf: [[fence, "missing"], isOurs] }],
  };
}

/** Says that this holder's calls have ended. */
export function endCalls({ key, fencingToken, now, retentionMs }: CallMark): Write {
  return {
    key: leaseItemKey(key, callSortKey),
    set: { [ttl]: timeToLive(now, retentionMs) },
    remove: [fence],
    insist: [[fence, "=", fencingToken]],
  };
}
