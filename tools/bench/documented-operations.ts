/** The operations whose requests docs/requests.md promises: here without contention, and `contended` with it. */
import { FairLock } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { Leader } from "@leasehold/client/leader";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { JobRuns, type Task, TaskSet } from "@leasehold/jobs";
import { contendedFair } from "./contended/fair.ts";
import { contendedGroup } from "./contended/group.ts";
import { contendedJobRuns, contendedTasks } from "./contended/jobs.ts";
import { contendedLeader } from "./contended/leader.ts";
import { contendedLock } from "./contended/lock.ts";
import { contendedReadWrite, contendedSemaphore } from "./contended/seats.ts";
import { contendedSingleFlight } from "./contended/single-flight.ts";
import { operators } from "./operators.ts";
import {
  type DocumentedOperation,
  deadClient,
  type OperationSite,
  type Promised,
  promised,
} from "./promised.ts";

const lock: readonly Promised[] = [
  promised("acquire a lock that never was", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const lease = await counted(() => client().acquire(newKey()));
    await lease.release();
  }),
  promised("acquire a released lock", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const key = newKey();
    await (await client().acquire(key)).release();
    const lease = await counted(() => client().acquire(key));
    await lease.release();
  }),
  promised("acquire and release", "2 UpdateItem", [2, 0], async ({ client, newKey, counted }) => {
    const locks = client();
    await counted(async () => (await locks.acquire(newKey())).release());
  }),
  promised("try a lock that is held", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const lease = await client().acquire(newKey());
    await counted(() => client().tryAcquire(lease.key));
    await lease.release();
  }),
  promised("take over from a dead holder", "2 UpdateItem", [2, 0], async (site) => {
    const key = site.newKey();
    await deadClient(site).acquire(key);
    const lease = await site.counted(() => site.client().acquire(key));
    await lease.release();
  }),
  promised("renew", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const lease = await client().acquire(newKey());
    await counted(() => lease.renew());
    await lease.release();
  }),
  promised("release", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const lease = await client().acquire(newKey());
    await counted(() => lease.release());
  }),
  promised("inspect", "1 GetItem", [0, 1], async ({ client, newKey, counted }) => {
    const lease = await client().acquire(newKey());
    await counted(() => client().inspect(lease.key));
    await lease.release();
  }),
];

const groupSize = 10;
const newKeys = ({ newKey }: OperationSite): string[] => Array.from({ length: groupSize }, newKey);

const groups: readonly Promised[] = [
  promised("acquireAll, 10 free locks", "1 TransactWriteItems", [2 * groupSize, 0], async (site) => {
    const group = await site.counted(() => acquireAll(site.client(), newKeys(site)));
    await group.release();
  }),
  promised("renew a group of 10", "1 BatchExecuteStatement", [groupSize, 0], async (site) => {
    const group = await acquireAll(site.client(), newKeys(site));
    await site.counted(() => group.renew());
    await group.release();
  }),
  promised(
    "acquireAll, one of 10 locks is held",
    "1 TransactWriteItems",
    [2 * groupSize, 0],
    async (site) => {
      const keys = newKeys(site);
      const lease = await site.client().acquire(keys[4] ?? "");
      await site.counted(() => acquireAll(site.client(), keys).catch(() => undefined));
      await lease.release();
    },
  ),
  promised("release a group of 10", "10 UpdateItem", [groupSize, 0], async (site) => {
    const group = await acquireAll(site.client(), newKeys(site));
    await site.counted(() => group.release());
  }),
];

const fair: readonly Promised[] = [
  promised(
    "fair lock: acquire, nobody waits",
    "1 UpdateItem",
    [1, 0],
    async ({ client, newKey, counted }) => {
      const lease = await counted(() => new FairLock(client(), newKey()).acquire());
      await lease.release();
    },
  ),
  promised(
    "fair lock: check in, and be let in",
    "1 GetItem, 1 UpdateItem",
    [1, 1],
    async ({ client, newKey, counted }) => {
      const desk = new FairLock(client(), newKey());
      await counted(() => desk.checkIn({ owner: "visitor" }));
      await desk.checkOut({ owner: "visitor" });
    },
  ),
  promised("fair lock: check out", "1 GetItem, 1 UpdateItem", [1, 1], async ({ client, newKey, counted }) => {
    const desk = new FairLock(client(), newKey());
    await desk.checkIn({ owner: "visitor" });
    await counted(() => desk.checkOut({ owner: "visitor" }));
  }),
];

const semaphore: readonly Promised[] = [
  promised("semaphore: acquire a permit", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const permit = await counted(() => new Semaphore(client(), newKey(), { permits: 3 }).acquire());
    await permit.release();
  }),
  promised(
    "semaphore: try, all permits held",
    "1 UpdateItem",
    [1, 0],
    async ({ client, newKey, counted }) => {
      const key = newKey();
      const permit = await new Semaphore(client(), key, { permits: 1 }).acquire();
      await counted(() => new Semaphore(client(), key, { permits: 1 }).tryAcquire());
      await permit.release();
    },
  ),
  promised("semaphore: acquire 3 permits at once", "1 UpdateItem", [1, 0], async (site) => {
    const permits = new Semaphore(site.client(), site.newKey(), { permits: 3 });
    const lease = await site.counted(() => permits.acquire({ permits: 3 }));
    await lease.release();
  }),
  promised("semaphore: renew a permit", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const permit = await new Semaphore(client(), newKey(), { permits: 3 }).acquire();
    await counted(() => permit.renew());
    await permit.release();
  }),
  promised("semaphore: release a permit", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const permit = await new Semaphore(client(), newKey(), { permits: 3 }).acquire();
    await counted(() => permit.release());
  }),
];

const readWrite: readonly Promised[] = [
  promised("read-write lock: read", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const lease = await counted(() => new ReadWriteLock(client(), newKey()).read());
    await lease.release();
  }),
  promised("read-write lock: write", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const lease = await counted(() => new ReadWriteLock(client(), newKey()).write());
    await lease.release();
  }),
  promised("read-write lock: renew", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const lease = await new ReadWriteLock(client(), newKey()).read();
    await counted(() => lease.renew());
    await lease.release();
  }),
  promised("read-write lock: release", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const lease = await new ReadWriteLock(client(), newKey()).write();
    await counted(() => lease.release());
  }),
];

const leader: readonly Promised[] = [
  promised("leader: be elected", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const candidate = new Leader(client(), newKey());
    await counted(() => candidate.campaign());
    await candidate.resign();
  }),
  promised("leader: resign", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const candidate = new Leader(client(), newKey());
    await candidate.campaign();
    await counted(() => candidate.resign());
  }),
  promised("leader: who leads", "1 GetItem", [0, 0.5], async ({ client, newKey, counted }) => {
    const key = newKey();
    const candidate = new Leader(client(), key);
    await candidate.campaign();
    await counted(() => new Leader(client(), key).current());
    await candidate.resign();
  }),
];

const compute = { compute: async (): Promise<string> => "value" };

const singleFlight: readonly Promised[] = [
  promised(
    "single flight: a value that is missing",
    "2 GetItem, 3 UpdateItem",
    [3, 2],
    async ({ client, newKey, counted }) => {
      await counted(() => new SingleFlight(client(), { freshForMs: 60_000 }).getOrCompute(newKey(), compute));
    },
  ),
  promised("single flight: a hit", "1 GetItem", [0, 1], async ({ client, newKey, counted }) => {
    const key = newKey();
    await new SingleFlight(client(), { freshForMs: 60_000 }).getOrCompute(key, compute);
    await counted(() => new SingleFlight(client(), { freshForMs: 60_000 }).getOrCompute(key, compute));
  }),
  promised(
    "single flight: invalidate",
    "1 GetItem, 1 UpdateItem",
    [1, 1],
    async ({ client, newKey, counted }) => {
      const key = newKey();
      const values = new SingleFlight(client(), { freshForMs: 60_000 });
      await values.getOrCompute(key, compute);
      await counted(() => values.invalidate(key));
    },
  ),
];

const slot = "2026-11-21T02:00:00.000Z";

const jobRuns: readonly Promised[] = [
  promised("job runs: run a slot", "2 UpdateItem", [2, 0], async ({ client, newKey, counted }) => {
    await counted(() => new JobRuns(client(), newKey()).run(slot, () => undefined));
  }),
  {
    ...promised(
      "job runs: the first run of an object with a `schedule`",
      "3 UpdateItem",
      [3, 0],
      async (site) => {
        const { client, newKey, counted } = site;
        const options = { schedule: "rate(1 hour)" };
        await counted(() => new JobRuns(client(), newKey(), options).run(slot, () => undefined));
      },
    ),
    writesElsewhere: true,
  },
  promised("job runs: the same slot again", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const key = newKey();
    await new JobRuns(client(), key).run(slot, () => undefined);
    await counted(() => new JobRuns(client(), key).tryRun(slot, () => undefined));
  }),
  promised("job runs: skip a slot", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    await counted(() => new JobRuns(client(), newKey()).skip(slot));
  }),
  promised("job runs: read a run", "1 GetItem", [0, 1], async ({ client, newKey, counted }) => {
    const key = newKey();
    await new JobRuns(client(), key).run(slot, () => undefined);
    await counted(() => new JobRuns(client(), key).get(slot));
  }),
  promised("job runs: take a success back", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const runs = new JobRuns(client(), newKey());
    await runs.run(slot, () => undefined);
    const run = await runs.get(slot);
    if (run === undefined) throw new Error("the run that has just ended is not there");
    await counted(() => runs.takeBack(run));
  }),
];

async function claimed({ client, newKey }: OperationSite): Promise<{ set: TaskSet; task: Task }> {
  const set = new TaskSet(client(), newKey());
  await set.add([{ id: "task" }]);
  const task = await set.claim();
  if (task === undefined) throw new Error("the task that was just added cannot be claimed");
  return { set, task };
}

const tasks: readonly Promised[] = [
  promised(
    "tasks: add 10",
    "1 TransactWriteItems",
    [4 * groupSize, 0],
    async ({ client, newKey, counted }) => {
      const ten = Array.from({ length: groupSize }, (_, index) => ({ id: `task-${index}` }));
      await counted(() => new TaskSet(client(), newKey()).add(ten));
    },
  ),
  promised("tasks: succeed", "1 TransactWriteItems", [4, 0], async (site) => {
    const { task } = await claimed(site);
    await site.counted(() => task.succeed());
  }),
  promised("tasks: fail with attempts left", "1 UpdateItem", [1, 0], async (site) => {
    const { task } = await claimed(site);
    await site.counted(() => task.fail("no paper"));
  }),
  promised("tasks: give a task back", "1 UpdateItem", [1, 0], async (site) => {
    const { task } = await claimed(site);
    await site.counted(() => task.release());
  }),
  promised("tasks: read an open task", "1 GetItem", [0, 1], async (site) => {
    const { set, task } = await claimed(site);
    await site.counted(() => set.get(task.id));
    await task.release();
  }),
  promised("tasks: read an ended task", "2 GetItem", [0, 2], async (site) => {
    const { set, task } = await claimed(site);
    await task.succeed();
    await site.counted(() => set.get(task.id));
  }),
  promised("tasks: cancel a waiting task", "1 GetItem, 1 TransactWriteItems", [4, 1], async (site) => {
    const { set, task } = await claimed(site);
    await task.release();
    await site.counted(() => set.cancel(task.id));
  }),
];

const pages: readonly (readonly [of: string, page: string, operations: readonly Promised[]])[] = [
  ["Lock", "docs/DESIGN.md", [...lock, ...contendedLock]],
  ["Group", "docs/primitives/group.md", [...groups, ...contendedGroup]],
  ["Fair lock", "docs/primitives/fair-lock.md", [...fair, ...contendedFair]],
  ["Semaphore", "docs/primitives/semaphore.md", [...semaphore, ...contendedSemaphore]],
  ["Read-write lock", "docs/primitives/read-write.md", [...readWrite, ...contendedReadWrite]],
  ["Leader", "docs/primitives/leader.md", [...leader, ...contendedLeader]],
  ["Single flight", "docs/primitives/single-flight.md", [...singleFlight, ...contendedSingleFlight]],
  ["Job runs", "docs/primitives/job-runs.md", [...jobRuns, ...contendedJobRuns]],
  ["Tasks", "docs/primitives/tasks.md", [...tasks, ...contendedTasks]],
  ["Operators", "docs/decisions/operators.md", operators],
];

/** The operations whose requests are promised, in the order of the documentation. */
export const documentedOperations: readonly DocumentedOperation[] = pages.flatMap(([of, page, operations]) =>
  operations.map((operation) => ({ of, page, ...operation })),
);
