import { LeaseClient } from "@leasehold/client";
import { expect, test } from "vitest";
import { TaskSet } from "../../packages/jobs/src/index.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

test("1,000 tasks over 8 workers are done exactly once each, at little more than 2 requests a task", async () => {
  const store = new ScriptedStore();
  const setOf = (owner: string): TaskSet => new TaskSet(new LeaseClient({ store, owner }), "many");
  await setOf("adder").add(Array.from({ length: 1000 }, (_, index) => ({ id: `task-${index}` })));
  expect(store.calls).toHaveLength(20);
  const done: string[] = [];
  const work = async ({ id }: { readonly id: string }): Promise<void> => {
    // Another worker gets its turn, as with work that waits for something.
    await new Promise((resolve) => setImmediate(resolve));
    done.push(id);
  };
  const owners = Array.from({ length: 8 }, (_, index) => `worker-${index}`);
  const summaries = await Promise.all(owners.map((owner) => setOf(owner).process(work, { pollMs: 20 })));
  const requests = store.calls.length;
  expect(done).toHaveLength(1000);
  expect(new Set(done).size).toBe(1000);
  expect(summaries.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(1000);
  // Every worker had its share.
  expect(summaries.every(({ succeeded }) => succeeded > 50)).toBe(true);
  const counts = { waiting: 0, running: 0, succeeded: 1000, failed: 0, parked: 0, cancelled: 0 };
  expect(await setOf("reader").counts()).toEqual(counts);
  expect(store.count("transact")).toBe(1020);
  // The rest are looks, and claims that another worker was quicker with: about 0.25 a task.
  expect((requests - 20) / 1000).toBeLessThan(2.5);
});
