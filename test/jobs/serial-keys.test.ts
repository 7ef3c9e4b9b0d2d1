import type { Item } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/internal";
import { beforeEach, expect, test } from "vitest";
import { SerialKeys } from "../../packages/jobs/src/tasks/task-finder.ts";

const { partitionKey, sortKey } = attributeNames;
let serialKeys: SerialKeys;

/** `digits` orders the tasks of a table otherwise than their ids. */
const task = (id: string, addedAt = 1, digits = "00000000"): Item => ({
  [partitionKey]: "set",
  [sortKey]: `task#${digits}#${id}`,
  addedAt,
});

beforeEach(() => {
  serialKeys = new SerialKeys();
});

test("the next task of a key is the oldest that waits, in whatever order they were noted, and each is next once", () => {
  const [one, two, three] = [task("c", 1), task("a", 2), task("b", 3)];
  for (const item of [three, one, two]) serialKeys.block("key", item);
  const order = [1, 2, 3, 4].map(() => serialKeys.next("key"));
  expect(order).toEqual([one, two, three, undefined]);
});

test("of tasks that were added at one time, the next is the first by its id", () => {
  const [a, b] = [task("a", 1, "00000002"), task("b", 1, "00000001")];
  serialKeys.block("key", b);
  serialKeys.block("key", a);
  expect(serialKeys.next("key")).toBe(a);
});

test("1,000 tasks are remembered, and another one when one of them has had its turn", () => {
  for (let count = 0; count < 1_000; count += 1) serialKeys.block(`key ${count}`, task(`${count}`));
  const late = task("late");
  // A key of which no task waits makes no room.
  expect(serialKeys.next("late")).toBeUndefined();
  serialKeys.block("late", late);
  expect(serialKeys.next("late")).toBeUndefined();
  expect(serialKeys.next("key 0")).toBeDefined();
  serialKeys.block("late", late);
  expect(serialKeys.next("late")).toBe(late);
});
