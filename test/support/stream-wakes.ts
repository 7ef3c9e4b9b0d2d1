import { marshall } from "@aws-sdk/util-dynamodb";
import type { Item } from "@leasehold/client";
import { removeWaiter, type WaitsBy, waitersOf } from "@leasehold/client/internal";
import { attributeNames, type ItemKey, leaseItemKey } from "@leasehold/client/schema";
import type { MemoryLeaseStore } from "@leasehold/client/testing";
import { wakeWaiters } from "../../packages/cdk/wake/waking.ts";

/** What the stream of a lease table says of one lease. */
export interface LeaseChange {
  readonly before: Item;
  readonly after: Item | undefined;
}

type Table = Pick<MemoryLeaseStore, "queryNow" | "peek" | "transactNow">;
type ParkedWaiter = WaitsBy & { readonly key: ItemKey };

/** The waiters that are parked for a lock, the one that has waited longest first. */
export function parkedIn(table: Pick<Table, "queryNow">, key: string): ParkedWaiter[] {
  const { taskToken, callbackId } = attributeNames;
  return table.queryNow({ ...waitersOf(key), consistent: true }).items.map((item) => {
    const place = { key: { pk: String(item.pk), sk: String(item.sk) } };
    const callback = item[callbackId];
    return callback === undefined
      ? { ...place, taskToken: String(item[taskToken]) }
      : { ...place, callbackId: String(callback) };
  });
}

/** Runs the stream's function over a table in memory, with the changes of one batch. */
export async function wakeAt(
  table: Table,
  changes: readonly LeaseChange[],
  wake: (waiter: WaitsBy) => boolean,
): Promise<void> {
  const Records = changes.map(({ before, after }, index) => ({
    eventName: "MODIFY" as const,
    dynamodb: {
      OldImage: marshall(before) as never,
      ...(after === undefined ? {} : { NewImage: marshall(after) as never }),
      SequenceNumber: String(index),
    },
  }));
  const waiters = {
    oldest: async (key: string, after?: ParkedWaiter) =>
      parkedIn(table, key).find((waiter) => after === undefined || waiter.key.sk > after.key.sk),
    isHeld: async (key: string) => table.peek(leaseItemKey(key))?.[attributeNames.token] !== undefined,
    remove: async (waiter: ParkedWaiter) => {
      table.transactNow([{ ...removeWaiter(waiter), action: "delete" }]);
    },
  };
  await wakeWaiters(
    { waiters, wake: async (waiter) => wake(waiter), remainingMs: () => 60_000 },
    { Records },
  );
}
