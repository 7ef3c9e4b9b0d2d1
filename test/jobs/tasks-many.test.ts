import { LeaseClient } from "@leasehold/client";
import { expect, test } from "vitest";
import { TaskSet } from "../../packages/jobs/src/index.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

/** Eight workers of clients of their own, each with one task at a time, on one table. */
async function workOff(tasks: number, workers: number) {
  const store = new ScriptedStore();
  const setOf = (owner: string): TaskSet => new TaskSet(new LeaseClient({ store, owner }), "many");
  await setOf("adder").add(Array.from({ length: tasks }, (_, index) => ({ id: `task-${index}` })));
  const requestsToAdd = store.calls.length;
  const done = new Map<string, number>();
  const summaries = await Promise.all(
    Array.from({ length: workers }, (_, index) =>
      setOf(`worker-${index}`).process(
        async (task) => {
          // Another worker gets its turn, as with work that waits for something.
          await new Promise((resolve) => setImmediate(resolve));
          done.set(task.id, (done.get(task.id) ?? 0) + 1);
        },
        { pollMs: 20 },
      ),
    ),
  );
  const counts = await setOf("reader").counts();
  const calls = store.calls.slice(requestsToAdd);
  const requests = (method: string): number => calls.filter((call) => call.method === method).length;
  return { store, requestsToAdd, done, summaries, counts, requests, total: calls.length };
}

test("1,000 tasks over 8 workers are done exactly once each, at little more than 2 requests a task", async () => {
  const { requestsToAdd, done, summaries, counts, requests, total } = await workOff(1000, 8);
  expect(requestsToAdd).toBe(20);
  expect(done.size).toBe(1000);
  expect([...done.values()].every((times) => times === 1)).toBe(true);
  expect(summaries.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(1000);
  // Every worker had its share.
  expect(summaries.every(({ succeeded }) => succeeded > 50)).toBe(true);
  expect(counts).toEqual({ waiting: 0, running: 0, succeeded: 1000, failed: 0, parked: 0, cancelled: 0 });
  expect(requests("transact")).toBe(1000);
  // The rest are looks, and claims that another worker was quicker with: about 0.25 a task.
  expect(total / 1000).toBeLessThan(2.5);
});
