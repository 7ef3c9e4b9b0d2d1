import { setTimeout as delay } from "node:timers/promises";
import { InvalidOptionsError } from "@leasehold/client";
import { type Task, type TaskRecord, TaskSet, type TaskSetOptions } from "@leasehold/jobs";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { taskSetKey } from "../../functions/claim-tasks/schema.ts";
import { compareChecksum, type WorkReport, workOn } from "../../functions/claim-tasks/worker.ts";
import { makeSystemTables, type SystemTables } from "./functions-tables.ts";

let system: SystemTables;
let set: string;
let sets = 0;

beforeAll(async () => {
  system = await makeSystemTables();
});
beforeEach(() => {
  set = taskSetKey(`set-${++sets}`);
});
afterAll(() => system?.close());

function tasksOf(owner: string, options: TaskSetOptions = {}): TaskSet {
  const leases = system.leases.client({ owner, clockSkewMs: 0 });
  // Attempts follow each other at once: the wait between them is not what is tested here.
  return new TaskSet(leases, set, { leaseDurationMs: 10_000, backoff: { delayMs: 0 }, ...options });
}

const plenty = 60_000;
function workAs(owner: string, work: (task: Task) => unknown = () => undefined): Promise<WorkReport> {
  return workOn(tasksOf(owner), work, plenty);
}

async function states(): Promise<Record<string, Partial<TaskRecord>>> {
  const found: Record<string, Partial<TaskRecord>> = {};
  for await (const task of tasksOf("reader").list()) found[task.id] = task;
  return found;
}

describe("the claiming of tasks", () => {
  test("of many workers each task is done by one, and their reports add up", async () => {
    const names = Array.from({ length: 10 }, (_, index) => `task-${index}`);
    await tasksOf("adder").add(names.map((id) => ({ id })));
    const done: string[] = [];
    const reports = await Promise.all(
      ["A", "B", "C", "D", "E", "F"].map((owner) =>
        workAs(owner, async ({ id }) => {
          done.push(id);
          await delay(15);
        }),
      ),
    );
    expect([...done].sort()).toEqual(names);
    expect(reports.reduce((sum, { succeeded }) => sum + succeeded, 0)).toBe(10);
    for (const task of Object.values(await states()))
      expect(task).toMatchObject({ state: "succeeded", attempts: 1 });
  });

  test("a task's checksum decides, and what was wrong stands in its remark", async () => {
    await tasksOf("adder", { maxAttempts: 2 }).add([
      {
        id: "good",
        payload: { text: "a", sha256: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" },
      },
      { id: "bad", payload: { text: "b", sha256: "ca978112" } },
      { id: "odd", payload: 7 },
    ]);
    expect(await workAs("A", ({ payload }) => compareChecksum(payload))).toEqual({
      succeeded: 1,
      failed: 1,
      parked: 1,
      putBack: 1,
      lost: 0,
      isUnfinished: false,
    });
    expect(await states()).toMatchObject({
      good: { state: "succeeded", attempts: 1, remark: expect.stringContaining("ca978112ca1b") },
      bad: { state: "failed", attempts: 2, remark: expect.stringContaining("document's SHA-256") },
      odd: { state: "parked", attempts: 1, remark: expect.stringContaining("lacks") },
    });
  });

  test("a task that somebody else is doing is neither touched nor waited for", async () => {
    await tasksOf("adder").add([{ id: "t" }]);
    const claimed = await tasksOf("A").claim();
    expect(await workAs("B")).toMatchObject({ succeeded: 0, isUnfinished: false });
    expect(await states()).toMatchObject({ t: { state: "running", owner: "A", attempts: 1 } });
    await claimed?.succeed();
  });

  test("a worker whose time is nearly over begins nothing more", async () => {
    await tasksOf("adder").add([{ id: "t" }]);
    expect(await workOn(tasksOf("A"), () => undefined, 1_000)).toMatchObject({
      succeeded: 0,
      isUnfinished: true,
    });
    expect(await states()).toMatchObject({ t: { state: "waiting", attempts: 0 } });
  });

  test("a worker whose time runs out ends what it has, and begins no other", async () => {
    await tasksOf("adder").add([{ id: "t" }, { id: "u" }]);
    expect(await workOn(tasksOf("A"), () => delay(650), 2_600)).toMatchObject({
      succeeded: 1,
      isUnfinished: true,
    });
    expect(await tasksOf("reader").counts()).toMatchObject({ succeeded: 1, waiting: 1 });
  });

  test("odd tasks are refused by name, and none of their neighbours is added", async () => {
    for (const odd of [null, 7, {}, { id: "" }, { id: "x", due: 1 }, { id: "good" }]) {
      const adding = tasksOf("adder").add([{ id: "good" }, odd as never]);
      await expect(adding, JSON.stringify(odd)).rejects.toBeInstanceOf(InvalidOptionsError);
    }
    expect(await states()).toEqual({});
  });
});
