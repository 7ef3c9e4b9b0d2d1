/** What the calls of a set of tasks send. */
import { together } from "@leasehold/client/together";
import { type Task, TaskSet } from "@leasehold/jobs";
import {
  deadClient,
  during,
  hourMs,
  type OperationSite,
  type Promised,
  promised,
  steady,
} from "./promised.ts";

const set = (site: OperationSite, key: string, options = {}): TaskSet =>
  new TaskSet(site.client(steady), key, options);
const tasksOf = (count: number, options = {}) =>
  Array.from({ length: count }, (_, index) => ({ id: `task-${index}`, ...options }));
const three = tasksOf(3);

async function claimIn(tasks: TaskSet): Promise<Task> {
  const task = await tasks.claim();
  if (task === undefined) throw new Error("there is no task to claim");
  return task;
}

/** Claims the only task of a set. */
async function claimed(site: OperationSite, key: string, options = {}): Promise<Task> {
  const tasks = set(site, key, options);
  await tasks.add([{ id: "task" }]);
  return await claimIn(tasks);
}

export const tasks: readonly Promised[] = [
  promised("add 10", "1 TransactWriteItems", [40, 0], async (site, key) => {
    return () => set(site, key).add(tasksOf(10));
  }),
  promised("succeed", "1 TransactWriteItems", [4, 0], async (site, key) => {
    const task = await claimed(site, key);
    return () => task.succeed();
  }),
  promised("fail with attempts left", "1 UpdateItem", async (site, key) => {
    const task = await claimed(site, key);
    return () => task.fail("no paper");
  }),
  promised("give a task back", "1 UpdateItem", async (site, key) => {
    const task = await claimed(site, key);
    return () => task.release();
  }),
  promised("read an open task", "1 GetItem", async (site, key) => {
    const task = await claimed(site, key);
    return () => set(site, key).get(task.id);
  }),
  promised("read an ended task", "2 GetItem", async (site, key) => {
    const task = await claimed(site, key);
    await task.succeed();
    return () => set(site, key).get(task.id);
  }),
  promised("cancel a waiting task", "1 GetItem, 1 TransactWriteItems", [4, 1], async (site, key) => {
    const task = await claimed(site, key);
    await task.release();
    return () => set(site, key).cancel(task.id);
  }),
  promised("add 10, of which 5 are known", "2 TransactWriteItems", [60, 0], async (site, key) => {
    await set(site, key).add(tasksOf(10).slice(5));
    return () => set(site, key).add(tasksOf(10));
  }),
  promised("claim 3 waiting tasks", "3 Query, 3 UpdateItem", [3, 3], async (site, key) => {
    await set(site, key).add(three);
    const tasks = set(site, key);
    return async () => {
      for (const _ of three) await claimIn(tasks);
    };
  }),
  promised(
    "claim 2 waiting tasks with serial keys",
    "2 GetItem, 2 Query, 2 TransactWriteItems",
    [8, 4],
    async (site, key) => {
      await set(site, key).add([
        { id: "a", serialKey: "1" },
        { id: "b", serialKey: "2" },
      ]);
      const tasks = set(site, key);
      return async () => {
        for (const _ of ["a", "b"]) await claimIn(tasks);
      };
    },
  ),
  promised(
    "claim the next task of a serial key",
    "1 GetItem, 1 Query, 1 TransactWriteItems",
    [6, 2],
    async (site, key) => {
      const tasks = set(site, key);
      await tasks.add([
        { id: "a", serialKey: "1" },
        { id: "b", serialKey: "1" },
      ]);
      await (await claimIn(tasks)).succeed();
      return () => claimIn(tasks);
    },
  ),
  promised("claim a task of a set with a rate", "2 Query, 2 UpdateItem", [2, 1], async (site, key) => {
    const tasks = set(site, key, { rate: { claims: 10, perMs: 60_000 } });
    await tasks.add([{ id: "task" }]);
    return () => claimIn(tasks);
  }),
  promised("claim the task of a dead worker", "2 Query, 2 UpdateItem", [2, 1], async (site, key) => {
    const dead = new TaskSet(deadClient(site), key);
    await dead.add([{ id: "task" }]);
    await claimIn(dead);
    return () => claimIn(set(site, key));
  }),
  promised("claim, all 3 run", "2 Query", [0, 2], async (site, key) => {
    await set(site, key).add(three);
    const worker = set(site, key);
    for (const _ of three) await claimIn(worker);
    return () => set(site, key).claim();
  }),
  promised("claim, all 3 wait for an hour", "2 Query", [0, 2], async (site, key) => {
    await set(site, key).add(tasksOf(3, { delayMs: hourMs }));
    return () => set(site, key).claim();
  }),
  promised("claim, all 100 wait for an hour", "2 Query", [], async (site, key) => {
    await set(site, key).add(tasksOf(100, { delayMs: hourMs }));
    return () => set(site, key).claim();
  }),
  promised("renew a claim", "1 UpdateItem", async (site, key) => {
    const task = await claimed(site, key);
    return () => task.renew();
  }),
  promised(
    "3 heartbeats, with `renewals: together()`",
    "1 BatchExecuteStatement",
    [3, 0],
    async (site, key) => {
      await set(site, key).add(three);
      const worker = site.stopped();
      const tasks = new TaskSet(worker.client({ renewals: together() }), key, { heartbeat: 10_000 });
      for (const _ of three) await claimIn(tasks);
      return during(worker, 10_000);
    },
  ),
  promised("fail for the last time", "1 TransactWriteItems", [4, 0], async (site, key) => {
    const task = await claimed(site, key, { maxAttempts: 1 });
    return () => task.fail("no paper");
  }),
  promised("fail finally, and be parked", "1 TransactWriteItems", [4, 0], async (site, key) => {
    const task = await claimed(site, key);
    return () => task.fail("no such printer", { final: true });
  }),
  promised("requeue a task", "1 GetItem, 1 TransactWriteItems", [4, 1], async (site, key) => {
    const tasks = set(site, key, { maxAttempts: 1 });
    await tasks.add([{ id: "task" }]);
    await (await claimIn(tasks)).fail("no paper");
    return () => tasks.requeue("task");
  }),
  promised("`requeueAll`, 3 failed tasks", "1 Query, 1 TransactWriteItems", [12, 1], async (site, key) => {
    const tasks = set(site, key, { maxAttempts: 1 });
    await tasks.add(three);
    for (const _ of three) await (await claimIn(tasks)).fail("no paper");
    return () => set(site, key).requeueAll();
  }),
  promised(
    "read an unknown task",
    "2 GetItem, 1 TransactWriteItems",
    [4, 2],
    (site, key) => () => set(site, key).get("unknown"),
  ),
  promised("`counts`, 3 tasks", "2 Query", [0, 0.5], async (site, key) => {
    await set(site, key).add(three);
    return () => set(site, key).counts();
  }),
];
