import fc from "fast-check";
import { expect, it } from "vitest";
import { PriorityQueue } from "../../packages/client/src/base/priority-queue.ts";

it("gives items in the order of their priorities, and of their arrival where these are equal", () => {
  const queue = new PriorityQueue<string>();
  for (const [item, priority] of [
    ["c", 2],
    ["a", 1],
    ["d", 2],
    ["b", 1],
    ["e", Number.POSITIVE_INFINITY],
  ] as const) {
    queue.set(item, priority);
  }
  expect(queue.size).toBe(5);
  expect(queue.first).toMatchObject({ item: "a", priority: 1 });
  expect([1, 2, 3, 4, 5, 6].map(() => queue.take())).toEqual(["a", "b", "c", "d", "e", undefined]);
});

it("keeps its order when one is removed in whose place a more urgent one from another branch comes", () => {
  const queue = new PriorityQueue<number>();
  for (const priority of [1, 10, 2, 11, 12, 3, 4]) queue.set(priority, priority);
  queue.delete(11);
  for (const priority of [20, 21, 22]) queue.set(priority, priority);
  expect([1, 2, 3, 4, 5].map(() => queue.take())).toEqual([1, 2, 3, 4, 10]);
});

it("agrees with a sorted list, whatever is added, moved, removed and taken", () => {
  const steps = fc.array(
    fc.oneof(
      fc.record({ op: fc.constant("set" as const), item: fc.nat(20), priority: fc.nat(10) }),
      fc.record({ op: fc.constant("delete" as const), item: fc.nat(20) }),
      fc.record({ op: fc.constant("take" as const) }),
    ),
    { maxLength: 200 },
  );
  fc.assert(
    fc.property(steps, (script) => {
      const queue = new PriorityQueue<number>();
      let model: { item: number; priority: number }[] = [];
      for (const step of script) {
        if (step.op === "take") expect(queue.take()).toBe(model.shift()?.item);
        else {
          model = model.filter(({ item }) => item !== step.item);
          if (step.op === "delete") queue.delete(step.item);
          else {
            queue.set(step.item, step.priority);
            // A stable sort keeps arrivals in order.
            model = [...model, step].sort((one, other) => one.priority - other.priority);
          }
        }
        expect(queue.size).toBe(model.length);
        expect(queue.first?.item).toBe(model[0]?.item);
      }
    }),
  );
});
