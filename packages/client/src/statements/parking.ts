/**
 * The writes of workflows and durable functions that wait for a lock or hold it while they call others: each waiter and
 * each mark is an item of its own under the lock's key.
 */
import { callSortKey, type ItemKey, leaseItemKey, timeToLive, waiterSortKeyPrefix } from "../base/schema.ts";
import type { Item, UpdateRequest } from "../base/store.ts";
import { held, type LeaseAddress } from "./lock.ts";
import { namesIn, type Part, type Statement, say, Write } from "./statement.ts";

const checksThatItIsHeld = say(held);
const parks = say({ set: "#taskToken = :taskToken, #ttl = :ttl" });
const parksCallback = say({
  set: "#callbackId = :callbackId, #ttl = :ttl",
  when: "attribute_not_exists(#token)",
});
const isParkedByTask = say({ when: "#taskToken = :taskToken" });
const isParkedByCallback = say({ when: "#callbackId = :callbackId" });

const callsMarked: Part = { set: "#fence = :fence, #ttl = :ttl" };
const marksCalls = say(callsMarked, { when: "(attribute_not_exists(#fence) OR #fence = :fence)" });
const takesCallsOver = say(callsMarked, { when: "(attribute_not_exists(#fence) OR #fence <= :fence)" });
const endsCalls = say({ set: "#ttl = :ttl", remove: "#fence", when: "#fence = :fence" });

/** "The lock is held": so a waiter that parks can rely on being woken by the release. */
export function heldBySomebody(key: string): Write {
  return new Write(leaseItemKey(key), checksThatItIsHeld);
}

/** Parks a workflow while it waits, or gives it its new task token where it has been parked before. */
export function park(
  waiter: ItemKey,
  terms: { readonly taskToken: string; readonly expiresAt: number; readonly retentionMs: number },
): Write {
  const values = { ":taskToken": terms.taskToken, ":ttl": timeToLive(terms.expiresAt, terms.retentionMs) };
  return new Write(waiter, parks, values);
}

/** A durable function's execution that waits for a lock, as it is parked. */
export interface ParkedCallback {
  readonly key: string;
  readonly owner: string;
  /** In epoch milliseconds; the longest waiter is woken first. */
  readonly waitingSince: number;
  /** What Lambda wants back to let the execution go on. */
  readonly callbackId: string;
  /** When it stops waiting for this callback, in epoch milliseconds. */
  readonly expiresAt: number;
  readonly retentionMs: number;
}

/**
 * Parks a durable function's execution while the lock is held, or gives it its new callback when it was parked
 * before. The first entry refuses when the lock is free.
 */
export function parkCallback(waiter: ParkedCallback): readonly [Write, Write] {
  const { key, owner, waitingSince, callbackId: id } = waiter;
  const itemKey = leaseItemKey(key, `${waiterSortKeyPrefix}${waitingSince}#${owner}`);
  const values = { ":callbackId": id, ":ttl": timeToLive(waiter.expiresAt, waiter.retentionMs) };
  const parked = new Write(itemKey, parksCallback, values);
  return [heldBySomebody(key), parked];
}

/** Finds the waiters of a lock, the one that has waited longest first. */
export function waitersOf(key: string): {
  readonly keyCondition: string;
  readonly names: Readonly<Record<string, string>>;
  readonly values: Item;
} {
  const keyCondition = "#pk = :key AND begins_with(#sk, :waiters)";
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
  const write =
    "taskToken" in waiter
      ? new Write(waiter.key, isParkedByTask, { ":taskToken": waiter.taskToken })
      : new Write(waiter.key, isParkedByCallback, { ":callbackId": waiter.callbackId });
  const { action: _, ...deletion } = write.entry();
  return deletion;
}

/** The mark that a lease's holder calls a function, which may run on after the holder itself has been stopped. */
export interface CallMark extends Pick<LeaseAddress, "key"> {
  readonly fencingToken: number;
  readonly now: number;
  readonly retentionMs: number;
}

/** Marks that calls begin. Refused where an earlier holder has never said that its own have ended. */
export function markCalls(mark: CallMark): Write {
  return markedCalls(mark, marksCalls);
}

/** Marks that calls begin, once those of an earlier holder must have ended. Refused to an earlier holder itself. */
export function takeOverCalls(mark: CallMark): Write {
  return markedCalls(mark, takesCallsOver);
}

/** Says that this holder's calls have ended. */
export function endCalls(mark: CallMark): Write {
  return markedCalls(mark, endsCalls);
}

function markedCalls({ key, fencingToken, now, retentionMs }: CallMark, statement: Statement): Write {
  const values = { ":fence": fencingToken, ":ttl": timeToLive(now, retentionMs) };
  return new Write(leaseItemKey(key, callSortKey), statement, values);
}
