import type { WaitsBy } from "@leasehold/client/internal";
import { attributeNames, leaseSortKey } from "@leasehold/client/schema";
import type { DynamoDBBatchResponse, DynamoDBRecord, DynamoDBStreamEvent, StreamRecord } from "aws-lambda";

/** A waiter for a lock: a workflow, parked on a task token, or a durable function, parked on a callback. */
export type Waiter = WaitsBy;

/** The waiters, by key. */
export interface Waiters<W extends Waiter = Waiter> {
  /**
   * The waiter that has waited longest, read consistently; undefined when there is none. With `after`, only waiters that
   * have parked after that one count.
   */
  oldest(key: string, after?: W): Promise<W | undefined>;
  /** Removes a waiter; does nothing if it is gone already. */
  remove(waiter: W): Promise<void>;
  /** Whether the lock is held at this moment, or in its cooldown; a consistent read. */
  isHeld(key: string): Promise<boolean>;
}

/**
 * True for a waiter that goes on, false for a waiter that has stopped waiting, "denied" for a waiter that this function
 * may not wake.
 */
export type WakeUp = boolean | "denied";

/** The parts of waking. */
export interface Waking<W extends Waiter = Waiter> {
  readonly waiters: Waiters<W>;
  /** Tells a waiter to go on. False if it has stopped waiting: it has ended, has timed out, or was woken before. */
  readonly wake: (waiter: W, key: string) => Promise<WakeUp>;
  /** Milliseconds until the function has to finish. */
  readonly remainingMs: () => number;
}

/** The time that is reserved for one more waiter. */
const reserveMs = 2_000;
/** One release tries at most this many waiters that this function may not wake. */
const mostDenied = 10;

/**
 * Wakes, for each lock that became free, the workflow or durable function that has waited longest.
 *
 * A woken waiter does not have the lock yet: it tries to acquire, and goes on waiting when another caller was quicker.
 * A lock that is held again by now wakes no waiter, because its release will. So repeated records are harmless. It
 * removes ended waiters on the way. The stream delivers failed keys again, and all records after them.
 *
 * If this function may not wake a waiter, the waiter belongs to another LeaseWakeup of the table, which sees the same
 * release, or to a state machine or function that was removed. The waiter keeps its place, nothing has failed, and the
 * next waiter is woken too: otherwise the leftover of a removed machine would keep all others asleep until ttl removes
 * it.
 *
 * A lock in its cooldown (`lockAtLeastForMs`) wakes no waiter, and neither does the cooldown's end, because nothing is
 * written at that moment. Its waiters try again after their own timeout.
 */
export async function wakeWaiters<W extends Waiter>(
  waking: Waking<W>,
  { Records }: DynamoDBStreamEvent,
): Promise<DynamoDBBatchResponse> {
  // Several records may be about one key: the first of them is the one to repeat from.
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
  // Lambda repeats a stream from the lowest reported number, so all later records come again too.
  const numbers = failed.flat().map((record) => record.dynamodb?.SequenceNumber ?? "");
  return { batchItemFailures: numbers.map((itemIdentifier) => ({ itemIdentifier })) };
}

/** The key of a lease whose token disappeared: by a release, or by the removal of the item. */
function freedKey({ dynamodb }: DynamoDBRecord): string | undefined {
  const { OldImage: before, NewImage: after } = dynamodb ?? {};
  return isHeldIn(before) && !isHeldIn(after) ? before[attributeNames.partitionKey]?.S : undefined;
}

/** Whether the lock had a holder before or after a change; of this package or another program. */
function isHeldIn(image: StreamRecord["OldImage"]): image is NonNullable<StreamRecord["OldImage"]> {
  return image?.[attributeNames.sortKey]?.S === leaseSortKey && attributeNames.token in image;
}

async function wakeOne<W extends Waiter>(waking: Waking<W>, key: string): Promise<void> {
  const { waiters, wake, remainingMs } = waking;
  const denied: W[] = [];
  while (denied.length < mostDenied) {
    const waiter = await waiters.oldest(key, denied.at(-1));
    if (waiter === undefined || (await waiters.isHeld(key))) return;
    if (remainingMs() < reserveMs) throw new Error("the time is over, and there are more waiters to look at");
    const isAwake = await wake(waiter, key);
    if (isAwake === "denied") {
      // The table's stream has another reader, which may wake it. If there is none, the waiter resumes by its own
      // timeout.
      console.warn("a waiter is left to another LeaseWakeup, for this one does not serve() it", { key });
      denied.push(waiter);
      continue;
    }
    await waiters.remove(waiter);
    if (isAwake) return;
  }
}
