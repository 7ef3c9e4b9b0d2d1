/** What job runs and tasks send when attempts have failed or were lost, and when others are in the way. */
import { together } from "@leasehold/client/together";
import { JobRuns, type JobRunsOptions, type RunOptions, type Task, TaskSet } from "@leasehold/jobs";
import {
  countedWhile,
  deadClient,
  hourMs,
  type OperationSite,
  type Promised,
  promised,
} from "../promised.ts";
import { steady } from "../stopped-process.ts";

const slot = "2026-11-21T02:00:00.000Z";
const done = (): undefined => undefined;
const failing = (): never => {
  throw new Error("no paper");
};

const never = (): Promise<never> => new Promise(() => undefined);
const once = { maxAttempts: 1 } as const;

/** Hourly slots of a day. */
const day = {
  schedule: { next: (after: Date) => new Date((Math.floor(after.getTime() / hourMs) + 1) * hourMs) },
  since: "2026-11-21T00:00:00.000Z",
  until: "2026-11-22T00:00:00.000Z",
} as const;

/** A job that has run at these hours. */
async function ranAt(site: OperationSite, hours: readonly string[]): Promise<JobRuns> {
  const runs = new JobRuns(site.client(), site.newKey());
  for (const hour of hours) await runs.run(`2026-11-21T${hour}:00:00.000Z`, done);
  return runs;
}

async function readAll(runs: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of runs);
}

/** Begins an attempt that never ends, in a process that stands still. */
async function begun(
  site: OperationSite,
  job: string,
  agoMs: number,
  options: JobRunsOptions = {},
  call: RunOptions = {},
): Promise<void> {
  const process = site.stopped(agoMs);
  void new JobRuns(process.client(), job, options).run(slot, never, call);
  await process.settle();
}

export const contendedJobRuns: readonly Promised[] = [
  promised("job runs: run a slot whose last attempt failed", "2 UpdateItem", [2, 0], async (site) => {
    const job = site.newKey();
    await new JobRuns(site.client(), job).run(slot, failing).catch(done);
    await site.counted(() => new JobRuns(site.client(), job).run(slot, done));
  }),
  promised("job runs: run a slot whose last attempt was lost", "3 UpdateItem", [3, 0], async (site) => {
    const job = site.newKey();
    await begun(site, job, hourMs);
    await site.counted(() => new JobRuns(site.client(), job).run(slot, done));
  }),
  promised("job runs: a slot that is running", "1 UpdateItem", [1, 0], async (site) => {
    const job = site.newKey();
    await begun(site, job, 0);
    await site.counted(() => new JobRuns(site.client(), job).tryRun(slot, done));
  }),
  promised("job runs: a slot that is skipped", "1 UpdateItem", [1, 0], async (site) => {
    const job = site.newKey();
    await new JobRuns(site.client(), job).skip(slot);
    await site.counted(() => new JobRuns(site.client(), job).tryRun(slot, done));
  }),
  promised("job runs: a slot whose attempts have all failed", "1 UpdateItem", [1, 0], async (site) => {
    const job = site.newKey();
    await new JobRuns(site.client(), job, once).run(slot, failing).catch(done);
    await site.counted(() => new JobRuns(site.client(), job, once).tryRun(slot, done).catch(done));
  }),
  promised("job runs: a slot whose only attempt was lost", "1 UpdateItem", [1, 0], async (site) => {
    const job = site.newKey();
    await begun(site, job, hourMs, once);
    await site.counted(() => new JobRuns(site.client(), job, once).tryRun(slot, done).catch(done));
  }),
  promised(
    "job runs: run a slot whose attempt has the same owner (`reentrant`)",
    "3 UpdateItem",
    [3, 0],
    async (site) => {
      const job = site.newKey();
      const again = { owner: "request-1", reentrant: true } as const;
      await begun(site, job, 0, {}, again);
      await site.counted(() => new JobRuns(site.client(), job).run(slot, done, again));
    },
  ),
  promised("job runs: skip a slot whose last attempt was lost", "2 UpdateItem", [2, 0], async (site) => {
    const job = site.newKey();
    await begun(site, job, hourMs);
    await site.counted(() => new JobRuns(site.client(), job).skip(slot));
  }),
  promised("job runs: report progress with `lease.renew()`", "1 UpdateItem", [1, 0], async (site) => {
    await new JobRuns(site.client(), site.newKey()).run(slot, ({ lease, progress }) => {
      progress({ pages: 3 });
      return site.counted(() => lease.renew());
    });
  }),
  promised(
    "job runs: 3 heartbeats, with `renewals: together()`",
    "1 BatchExecuteStatement",
    [3, 0],
    async (site) => {
      const process = site.stopped();
      const client = process.client({ renewals: together() });
      const runs = new JobRuns(client, site.newKey(), { heartbeat: 10_000 });
      for (const hour of ["02", "03", "04"]) void runs.run(`2026-11-21T${hour}:00:00.000Z`, never);
      await process.settle();
      await countedWhile(site, process, 10_000, async () => undefined);
    },
  ),
  promised("job runs: `runs`, 3 of them", "1 Query", [0, 0.5], async (site) => {
    const runs = await ranAt(site, ["02", "03", "04"]);
    await site.counted(() => readAll(runs.runs()));
  }),
  promised("job runs: `missed`, in a day", "1 Query", [0, 1], async (site) => {
    const runs = await ranAt(site, ["02", "03", "04"]);
    await site.counted(() => readAll(runs.missed(day)));
  }),
  promised("job runs: `backfill`, 4 missed slots", "1 Query, 8 UpdateItem", [8, 1], async (site) => {
    const runs = await ranAt(site, ["02"]);
    await site.counted(() => runs.backfill({ ...day, until: "2026-11-21T05:00:00.000Z" }, done));
  }),
];

const set = (site: OperationSite, key: string, options = {}): TaskSet =>
  new TaskSet(site.client(steady), key, options);
const three = [{ id: "a" }, { id: "b" }, { id: "c" }];

/** Claims a task of a set that has one. */
async function claimed(site: OperationSite, options = {}): Promise<Task> {
  const tasks = set(site, site.newKey(), options);
  await tasks.add([{ id: "task" }]);
  return await claimIn(tasks);
}

async function claimIn(tasks: TaskSet): Promise<Task> {
  const task = await tasks.claim();
  if (task === undefined) throw new Error("there is no task to claim");
  return task;
}

/** Adds tasks that all wait for an hour. */
async function delayed(site: OperationSite, count: number): Promise<string> {
  const key = site.newKey();
  const tasks = Array.from({ length: count }, (_, index) => ({ id: `task-${index}`, delayMs: hourMs }));
  await set(site, key).add(tasks);
  return key;
}

export const contendedTasks: readonly Promised[] = [
  promised("tasks: add 10, of which 5 are known", "2 TransactWriteItems", [60, 0], async (site) => {
    const key = site.newKey();
    const ten = Array.from({ length: 10 }, (_, index) => ({ id: `task-${index}` }));
    await set(site, key).add(ten.slice(5));
    await site.counted(() => set(site, key).add(ten));
  }),
  promised("tasks: claim 3 waiting tasks", "3 Query, 3 UpdateItem", [3, 3], async (site) => {
    const key = site.newKey();
    await set(site, key).add(three);
    const tasks = set(site, key);
    await site.counted(async () => {
      for (const _ of three) await claimIn(tasks);
    });
  }),
  promised(
    "tasks: claim 2 waiting tasks with serial keys",
    "2 GetItem, 2 Query, 2 TransactWriteItems",
    [8, 4],
    async (site) => {
      const key = site.newKey();
      await set(site, key).add([
        { id: "a", serialKey: "1" },
        { id: "b", serialKey: "2" },
      ]);
      const tasks = set(site, key);
      await site.counted(async () => {
        for (const _ of ["a", "b"]) await claimIn(tasks);
      });
    },
  ),
  promised(
    "tasks: claim the next task of a serial key",
    "1 GetItem, 1 Query, 1 TransactWriteItems",
    [6, 2],
    async (site) => {
      const tasks = set(site, site.newKey());
      await tasks.add([
        { id: "a", serialKey: "1" },
        { id: "b", serialKey: "1" },
      ]);
      await (await claimIn(tasks)).succeed();
      await site.counted(() => claimIn(tasks));
    },
  ),
  promised("tasks: claim a task of a set with a rate", "2 Query, 2 UpdateItem", [2, 1], async (site) => {
    const tasks = set(site, site.newKey(), { rate: { claims: 10, perMs: 60_000 } });
    await tasks.add([{ id: "task" }]);
    await site.counted(() => claimIn(tasks));
  }),
  promised("tasks: claim the task of a dead worker", "2 Query, 2 UpdateItem", [2, 1], async (site) => {
    const key = site.newKey();
    const dead = new TaskSet(deadClient(site), key);
    await dead.add([{ id: "task" }]);
    await claimIn(dead);
    await site.counted(() => claimIn(set(site, key)));
  }),
  promised("tasks: claim, all 3 tasks are running", "2 Query", [0, 2], async (site) => {
    const key = site.newKey();
    await set(site, key).add(three);
    const worker = set(site, key);
    for (const _ of three) await claimIn(worker);
    await site.counted(() => set(site, key).claim());
  }),
  promised("tasks: claim, all 3 tasks wait for an hour", "2 Query", [0, 2], async (site) => {
    const key = await delayed(site, 3);
    await site.counted(() => set(site, key).claim());
  }),
  promised("tasks: claim, 100 tasks wait for an hour", "2 Query", [], async (site) => {
    const key = await delayed(site, 100);
    await site.counted(() => set(site, key).claim());
  }),
  promised("tasks: renew a claim", "1 UpdateItem", [1, 0], async (site) => {
    const task = await claimed(site);
    await site.counted(() => task.renew());
    await task.release();
  }),
  promised(
    "tasks: 3 heartbeats, with `renewals: together()`",
    "1 BatchExecuteStatement",
    [3, 0],
    async (site) => {
      const key = site.newKey();
      await set(site, key).add(three);
      const worker = site.stopped();
      const tasks = new TaskSet(worker.client({ renewals: together() }), key, { heartbeat: 10_000 });
      for (const _ of three) await claimIn(tasks);
      await countedWhile(site, worker, 10_000, async () => undefined);
    },
  ),
  promised("tasks: fail for the last time", "1 TransactWriteItems", [4, 0], async (site) => {
    const task = await claimed(site, { maxAttempts: 1 });
    await site.counted(() => task.fail("no paper"));
  }),
  promised("tasks: fail finally, and be parked", "1 TransactWriteItems", [4, 0], async (site) => {
    const task = await claimed(site);
    await site.counted(() => task.fail("no such printer", { final: true }));
  }),
  promised("tasks: requeue a task", "1 GetItem, 1 TransactWriteItems", [4, 1], async (site) => {
    const tasks = set(site, site.newKey(), { maxAttempts: 1 });
    await tasks.add([{ id: "task" }]);
    await (await claimIn(tasks)).fail("no paper");
    await site.counted(() => tasks.requeue("task"));
  }),
  promised("tasks: `requeueAll`, 3 failed tasks", "1 Query, 1 TransactWriteItems", [12, 1], async (site) => {
    const key = site.newKey();
    const tasks = set(site, key, { maxAttempts: 1 });
    await tasks.add(three);
    for (const _ of three) await (await claimIn(tasks)).fail("no paper");
    await site.counted(() => set(site, key).requeueAll());
  }),
  promised("tasks: read an unknown task", "2 GetItem, 1 TransactWriteItems", [4, 2], async (site) => {
    await site.counted(() => set(site, site.newKey()).get("unknown"));
  }),
  promised("tasks: `counts`, 3 tasks", "2 Query", [0, 0.5], async (site) => {
    const key = site.newKey();
    await set(site, key).add(three);
    await site.counted(() => set(site, key).counts());
  }),
];
