import type { WaitsBy } from "@leasehold/client/internal";
import { attributeNames, leaseSortKey } from "@leasehold/client/schema";
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent, StreamRecord } from "aws-lambda";

/** Who waits for a lock: a workflow, parked on a task token, or a durable function, parked on a callback. */
export type Waiter = WaitsBy;

/** Those who wait, by key. */
export interface Waiters<W extends Waiter = Waiter> {
  /** The one that has waited longest, read consistently; undefined when nobody waits. */
  oldest(key: string): Promise<W | undefined>;
  /** Takes a waiter off; nothing happens when it is gone already. */
  remove(waiter: W): Promise<void>;
  /** Whether somebody has the lock at this moment, or it is kept closed; a consistent read. */
  isHeld(key: string): Promise<boolean>;
}

/** What waking works with. */
export interface Waking<W extends Waiter = Waiter> {
  readonly waiters: Waiters<W>;
  /** Tells a waiter to go on. False when it does not wait for this any more: ended, timed out, or woken before. */
  readonly wake: (waiter: W, key: string) => Promise<boolean>;
  /** Milliseconds until the function has to be done. */
  readonly remainingMs: () => number;
}

/** What it takes to look at one more waiter. */
const reserveMs = 2_000;

/**
 * Wakes, for each lock that became free, the workflow or durable function that has waited longest.
 *
 * Being woken is a chance and not the lock: whoever is woken tries to acquire, and waits on if somebody else was quicker.
 * A lock that is held again by now wakes nobody, for its release will; that also makes records that come twice
 * harmless. Waiters that are gone are taken off on the way. Keys that failed come again, and all records after them.
 *
 * A lock that was released and stays closed for a while (`lockAtLeastForMs`) wakes nobody, then or when it opens: nothing
 * is written at that moment. Its waiters come back by their own timeout.
 */
export async function wakeWaiters<W extends Waiter>(
  waking: Waking<W>,
  { Records }: DynamoDBStreamEvent,
): Promise<DynamoDBBatchResponse> {
  // Several records may tell of one key: the first of them is the one to repeat from.
  const freed = new Map<string, DynamoDBRecord>();
  for (const record of Records) {
    const key = freedKey(record);
    if (key !== undefined && !freed.has(key)) freed.set(key, record);
  }
  const failed = await Promise.all(
    [...freed].map(async ([key, record]) => {
      try {
        await wakeOne(waking, key);
        return [];
      } catch (error) {
        console.error("nobody was woken", { key }, error);
        return [record];
      }
    }),
  );
  // Lambda repeats a stream from the lowest number that is reported, so all that follow come again too.
  const numbers = failed.flat().map((record) => record.dynamodb?.SequenceNumber ?? "");
  return { batchItemFailures: numbers.map((itemIdentifier) => ({ itemIdentifier })) };
}

/** The key of a lease whose token went away, be it by a release or because the item was removed. */
function freedKey({ dynamodb }: DynamoDBRecord): string | undefined {
  const { OldImage: before, NewImage: after } = dynamodb ?? {};
  return isHeldIn(before) && !isHeldIn(after) ? before[attributeNames.partitionKey]?.S : undefined;
}

/** Whether somebody, of this package or not, had the lock before or after a change. */
function isHeldIn(image: StreamRecord["OldImage"]): image is NonNullable<StreamRecord["OldImage"]> {
  return image?.[attributeNames.sortKey]?.S === leaseSortKey && attributeNames.token in image;
}

async function wakeOne<W extends Waiter>(waking: Waking<W>, key: string): Promise<void> {
  const { waiters, wake, remainingMs } = waking;
  for (;;) {
    const waiter = await waiters.oldest(key);
    if (waiter === undefined || (await waiters.isHeld(key))) return;
    if (remainingMs() < reserveMs) throw new Error("the time is over, and there are more waiters to look at");
    const isAwake = await wake(waiter, key);
    await waiters.remove(waiter);
    if (isAwake) return;
  }
}
