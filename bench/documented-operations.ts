import type { LeaseClient, LeaseClientOptions } from "@leasehold/client";
import { FairLock } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { Leader } from "@leasehold/client/leader";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { JobRuns, TaskSet } from "@leasehold/jobs";

/** Where operations are performed. */
export interface OperationSite {
  /** A client, and so a process, of its own; each call of `counted` sees what all of them sent. */
  client(options?: LeaseClientOptions): LeaseClient;
  /** A key that nothing has used. */
  newKey(): string;
  /** Performs the operation itself; what goes before and after it does not count. */
  counted<T>(perform: () => Promise<T>): Promise<T>;
  /** Lets time pass. */
  pause(ms: number): Promise<void>;
}

/** An operation whose requests a page of the documentation promises. */
export interface DocumentedOperation {
  readonly name: string;
  /** The page, below the repository's root. */
  readonly page: string;
  /** As `listedRequests` writes them. */
  readonly requests: string;
  readonly writeUnits: number;
  readonly readUnits: number;
  perform(site: OperationSite): Promise<void>;
}

/** Operations stand in groups, one for each page. */
type Promised = Omit<DocumentedOperation, "page">;

function promised(
  name: string,
  requests: string,
  [writeUnits, readUnits]: readonly [writeUnits: number, readUnits: number],
  perform: DocumentedOperation["perform"],
): Promised {
  return { name, requests, writeUnits, readUnits, perform };
}

const shortLease = { leaseDurationMs: 1_000, clockSkewMs: 200 };
/** Until a short lease is over beyond doubt: the answers tell the service's time by whole seconds, to a slow machine late. */
const pastShortLeaseMs = 5_000;

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
  promised(
    "take over from a dead holder",
    "2 UpdateItem",
    [2, 0],
    async ({ client, newKey, counted, pause }) => {
      const key = newKey();
      await client(shortLease).acquire(key);
      await pause(pastShortLeaseMs);
      const lease = await counted(() => client(shortLease).acquire(key));
      await lease.release();
    },
  ),
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
];

const leader: readonly Promised[] = [
  promised("leader: be elected", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const candidate = new Leader(client(), newKey());
    await counted(() => candidate.campaign());
    await candidate.resign();
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
];

const jobRuns: readonly Promised[] = [
  promised("job runs: run a slot", "2 UpdateItem", [2, 0], async ({ client, newKey, counted }) => {
    await counted(() => new JobRuns(client(), newKey()).run("2026-11-21T02:00:00.000Z", () => undefined));
  }),
  promised("job runs: the same slot again", "1 UpdateItem", [1, 0], async ({ client, newKey, counted }) => {
    const key = newKey();
    await new JobRuns(client(), key).run("2026-11-21T02:00:00.000Z", () => undefined);
    await counted(() => new JobRuns(client(), key).tryRun("2026-11-21T02:00:00.000Z", () => undefined));
  }),
];

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
  promised("tasks: succeed", "1 TransactWriteItems", [4, 0], async ({ client, newKey, counted }) => {
    const set = new TaskSet(client(), newKey());
    await set.add([{ id: "task" }]);
    const task = await set.claim();
    if (task === undefined) throw new Error("the task that was just added cannot be claimed");
    await counted(() => task.succeed());
  }),
];

const pages: Readonly<Record<string, readonly Promised[]>> = {
  "README.md": lock,
  "docs/primitives/group.md": groups,
  "docs/primitives/fair-lock.md": fair,
  "docs/primitives/semaphore.md": semaphore,
  "docs/primitives/read-write.md": readWrite,
  "docs/primitives/leader.md": leader,
  "docs/primitives/single-flight.md": singleFlight,
  "docs/primitives/job-runs.md": jobRuns,
  "docs/primitives/tasks.md": tasks,
};

/** The operations whose requests are promised, in the order of the documentation. */
export const documentedOperations: readonly DocumentedOperation[] = Object.entries(pages).flatMap(
  ([page, operations]) => operations.map((operation) => ({ page, ...operation })),
);
