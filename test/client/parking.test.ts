/** What is written for those that wait outside of this process, and for calls that outlive their caller. */
import type { Item } from "@leasehold/client";
import { beforeEach, describe, expect, it } from "vitest";
import { callSortKey, type ItemKey, leaseItemKey } from "../../packages/client/src/base/schema.ts";
import { MemoryLeaseStore } from "../../packages/client/src/entries/testing.ts";
import { acquire } from "../../packages/client/src/statements/lock.ts";
import {
  endCalls,
  heldBySomebody,
  markCalls,
  park,
  parkCallback,
  removeWaiter,
  takeOverCalls,
  type WaitsBy,
  waitersOf,
} from "../../packages/client/src/statements/parking.ts";
import type { Write } from "../../packages/client/src/statements/statement.ts";
import { said, setting } from "../support/recomposed.ts";

const key = "k";
const now = 1_000_000;
const retentionMs = 60_000;
const ttl = (now + retentionMs) / 1_000;

let table: MemoryLeaseStore;

beforeEach(() => {
  table = new MemoryLeaseStore();
});

const apply = (write: Write): boolean => table.updateNow(write.request()).applied;
const together = (writes: readonly Write[]): boolean =>
  table.transactNow(writes.map((write) => write.entry())).applied;

function hold(): void {
  apply(
    acquire(
      { key },
      {
        ...{ token: "t", version: 1, owner: "me", acquiredAt: now, expiresAt: now + 1_000 },
        ...{ leaseDurationMs: 1_000, retentionMs, reentrant: false, data: undefined, slot: undefined },
      },
    ),
  );
}

async function waiters(): Promise<readonly Item[]> {
  const unbounded = { signal: new AbortController().signal, isCurrent: () => true };
  return (await table.query({ ...waitersOf(key), consistent: true }, unbounded)).items;
}

const callback = (waitingSince: number, owner: string, callbackId: string) =>
  parkCallback({ key, owner, waitingSince, callbackId, expiresAt: now, retentionMs });

it("a lock is held by somebody, or a waiter could not rely on its release", () => {
  expect(together([heldBySomebody(key)])).toBe(false);
  hold();
  const before = table.peek(leaseItemKey(key));
  expect(together([heldBySomebody(key)])).toBe(true);
  expect(table.peek(leaseItemKey(key))).toEqual(before);
});

it("a workflow is parked with its task token until it waits no more, and again on no condition", () => {
  const waiter: ItemKey = { pk: key, sk: "waiter#1#w" };
  const write = park(waiter, { taskToken: "first", expiresAt: now, retentionMs });
  expect(write.key).toEqual(waiter);
  expect(said(write)).toEqual({ set: { taskToken: '"first"', ttl: String(ttl) }, remove: [], when: [] });
});

describe("a durable function", () => {
  it("is parked while the lock is held, under since when it waits and who it is", () => {
    expect(together(callback(1, "me", "first"))).toBe(false);
    hold();
    expect(together(callback(1, "me", "first"))).toBe(true);
    const waiter = { pk: key, sk: "waiter#1#me" };
    expect(table.peek(waiter)).toEqual({ ...waiter, callbackId: "first", ttl });
    expect(together(callback(1, "me", "second"))).toBe(true);
    expect(table.peek(waiter)).toEqual({ ...waiter, callbackId: "second", ttl });
  });

  it("is not parked in the place of a lease", () => {
    hold();
    putAnew({ pk: key, sk: "waiter#1#me" }, "token");
    expect(together(callback(1, "me", "first"))).toBe(false);
  });
});

/** Puts an item with one attribute more than its key. */
function putAnew(item: ItemKey, attribute: string): void {
  apply(setting(item, { [attribute]: "second" }, `attribute_not_exists(#${attribute})`));
}

it("waiters are found in the order in which they came, and nothing else of the lock is", async () => {
  hold();
  for (const since of [2, 1, 3]) together(callback(since, "me", `c${since}`));
  apply(markCalls({ key, fencingToken: 1, now, retentionMs }));
  expect((await waiters()).map(({ callbackId }) => callbackId)).toEqual(["c1", "c2", "c3"]);
  expect(Object.keys(waitersOf(key).names).toSorted()).toEqual(["#pk", "#sk"]);
  expect(Object.keys(waitersOf(key).values).toSorted()).toEqual([":key", ":waiters"]);
});

describe("a waiter that was woken is removed", () => {
  const waiter: ItemKey = { pk: key, sk: "waiter#1#w" };
  const remove = (by: WaitsBy): boolean =>
    table.transactNow([{ ...removeWaiter({ key: waiter, ...by }), action: "delete" }]).applied;

  it.each([
    ["a workflow", "taskToken", { taskToken: "first" }, { taskToken: "second" }],
    ["a durable function", "callbackId", { callbackId: "first" }, { callbackId: "second" }],
  ])("unless it has parked again: %s", (_, attribute, first, second) => {
    putAnew(waiter, attribute);
    expect(remove(first)).toBe(false);
    expect(table.peek(waiter)).toBeDefined();
    expect(remove(second)).toBe(true);
    expect(table.peek(waiter)).toBeUndefined();
  });
});

describe("calls of a holder", () => {
  const mark = (fencingToken: number) => ({ key, fencingToken, now, retentionMs });
  const marked = (): Item => table.peek({ pk: key, sk: callSortKey }) ?? {};

  it("are marked with its fencing token, and marked again by itself", () => {
    expect(apply(markCalls(mark(5)))).toBe(true);
    expect(marked()).toEqual({ pk: key, sk: callSortKey, fence: 5, ttl });
    expect(apply(markCalls({ ...mark(5), now: now + 1_000 }))).toBe(true);
    expect(marked()).toMatchObject({ fence: 5, ttl: ttl + 1 });
  });

  it("keep every other holder from calling until they have ended, or must have", () => {
    apply(markCalls(mark(5)));
    expect([apply(markCalls(mark(4))), apply(markCalls(mark(6)))]).toEqual([false, false]);
    expect(apply(takeOverCalls(mark(6)))).toBe(true);
    expect(apply(takeOverCalls(mark(5)))).toBe(false);
    expect(apply(takeOverCalls(mark(6)))).toBe(true);
    expect(marked()).toMatchObject({ fence: 6 });
  });

  it("are ended by that holder alone, and leave nothing but what ttl removes", () => {
    apply(markCalls(mark(5)));
    expect([apply(endCalls(mark(4))), apply(endCalls(mark(6)))]).toEqual([false, false]);
    expect(apply(endCalls({ ...mark(5), now: now + 1_000 }))).toBe(true);
    expect(marked()).toEqual({ pk: key, sk: callSortKey, ttl: ttl + 1 });
    expect(apply(takeOverCalls(mark(1)))).toBe(true);
  });
});
