import type { LeaseClient, LeaseClientOptions } from "@leasehold/client";
import { FairLock } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { JobRuns } from "@leasehold/client/job-runs";
import { Leader } from "@leasehold/client/leader";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { TaskSet } from "@leasehold/client/tasks";

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

const shortLease = { leaseDurationMs: 1_000, clockSkewMs: 200 };
/** Until a short lease is over beyond doubt: the answers tell the service's time by whole seconds, to a slow machine late. */
const pastShortLeaseMs = 5_000;

const lock: readonly DocumentedOperation[] = [
  {
    name: "acquire a lock that never was",
    page: "README.md",
    requests: "1 UpdateItem",
    writeUnits: 1,
    readUnits: 0,
    async perform({ client, newKey, counted }) {
      const lease = await counted(() => client().acquire(newKey()));
      await lease.release();
    },
  },
  {
    name: "acquire a released lock",
    page: "README.md",
    requests: "1 UpdateItem",
    writeUnits: 1,
    readUnits: 0,
    async perform({ client, newKey, counted }) {
      const key = newKey();
      await (await client().acquire(key)).release();
      const lease = await counted(() => client().acquire(key));
      await lease.release();
    },
  },
  {
    name: "acquire and release",
    page: "README.md",
    requests: "2 UpdateItem",
    writeUnits: 2,
    readUnits: 0,
    async perform({ client, newKey, counted }) {
      const locks = client();
      await counted(async () => (await locks.acquire(newKey())).release());
    },
  },
  {
    name: "try a lock that is held",
    page: "README.md",
    requests: "1 UpdateItem",
    writeUnits: 1,
    readUnits: 0,
    async perform({ client, newKey, counted }) {
      const lease = await client().acquire(newKey());
      await counted(() => client().tryAcquire(lease.key));
      await lease.release();
    },
  },
  {
    name: "take over from a dead holder",
    page: "README.md",
    requests: "2 UpdateItem",
    writeUnits: 2,
    readUnits: 0,
    async perform({ client, newKey, counted, pause }) {
      const key = newKey();
      await client(shortLease).acquire(key);
      await pause(pastShortLeaseMs);
      const lease = await counted(() => client(shortLease).acquire(key));
      await lease.release();
    },
  },
  {
    name: "renew",
    page: "README.md",
    requests: "1 UpdateItem",
    writeUnits: 1,
    readUnits: 0,
    async perform({ client, newKey, counted }) {
      const lease = await client().acquire(newKey());
      await counted(() => lease.renew());
      await lease.release();
    },
  },
  {
    name: "release",
    page: "README.md",
    requests: "1 UpdateItem",
    writeUnits: 1,
    readUnits: 0,
    async perform({ client, newKey, counted }) {
      const lease = await client().acquire(newKey());
      await counted(() => lease.release());
    },
  },
  {
    name: "inspect",
    page: "README.md",
    requests: "1 GetItem",
    writeUnits: 0,
    readUnits: 1,
    async perform({ client, newKey, counted }) {
      const lease = await client().acquire(newKey());
      await counted(() => client().inspect(lease.key));
      await lease.release();
    },
  },
];

const groupSize = 10;
const newKeys = ({ newKey }: OperationSite): string[] => Array.from({ length: groupSize }, newKey);

const groups: readonly DocumentedOperation[] = [
  {
    name: "acquireAll, 10 free locks",
    page: "docs/primitives/group.md",
    requests: "1 TransactWriteItems",
    writeUnits: 2 * groupSize,
    readUnits: 0,
    async perform(site) {
      const group = await site.counted(() => acquireAll(site.client(), newKeys(site)));
      await group.release();
    },
  },
  {
    name: "renew a group of 10",
    page: "docs/primitives/group.md",
    requests: "1 BatchExecuteStatement",
    writeUnits: groupSize,
    readUnits: 0,
    async perform(site) {
      const group = await acquireAll(site.client(), newKeys(site));
      await site.counted(() => group.renew());
      await group.release();
    },
  },
  {
    name: "release a group of 10",
    page: "docs/primitives/group.md",
    requests: "10 UpdateItem",
    writeUnits: groupSize,
    readUnits: 0,
    async perform(site) {
      const group = await acquireAll(site.client(), newKeys(site));
      await site.counted(() => group.release());
    },
  },
];

const fair: readonly DocumentedOperation[] = [
  {
    name: "fair lock: acquire, nobody waits",
    page: "docs/primitives/fair-lock.md",
    requests: "1 UpdateItem",
    writeUnits: 1,
    readUnits: 0,
    async perform({ client, newKey, counted }) {
      const lease = await counted(() => new FairLock(client(), newKey()).acquire());
      await lease.release();
    },
  },
  {
    name: "fair lock: check in, and be let in",
    page: "docs/primitives/fair-lock.md",
    requests: "1 GetItem, 1 UpdateItem",
    writeUnits: 1,
    readUnits: 1,
    async perform({ client, newKey, counted }) {
      const desk = new FairLock(client(), newKey());
      await counted(() => desk.checkIn({ owner: "visitor" }));
      await desk.checkOut({ owner: "visitor" });
    },
  },
  {
    name: "fair lock: check out",
    page: "docs/primitives/fair-lock.md",
    requests: "1 GetItem, 1 UpdateItem",
    writeUnits: 1,
    readUnits: 1,
    async perform({ client, newKey, counted }) {
      const desk = new FairLock(client(), newKey());
      await desk.checkIn({ owner: "visitor" });
      await counted(() => desk.checkOut({ owner: "visitor" }));
    },
  },
];

const shared: readonly DocumentedOperation[] = [
  {
    name: "semaphore: acquire a permit",
    page: "docs/primitives/semaphore.md",
    requests: "1 UpdateItem",
    writeUnits: 1,
    readUnits: 0,
    async perform({ client, newKey, counted }) {
      const permit = await counted(() => new Semaphore(client(), newKey(), { permits: 3 }).acquire());
      await permit.release();
    },
  },
  {
    name: "semaphore: try, all permits held",
    page: "docs/primitives/semaphore.md",
    requests: "1 UpdateItem, 1 Query",
    writeUnits: 1,
    readUnits: 1,
    async perform({ client, newKey, counted }) {
      const key = newKey();
      const permit = await new Semaphore(client(), key, { permits: 1 }).acquire();
      await counted(() => new Semaphore(client(), key, { permits: 1 }).tryAcquire());
      await permit.release();
    },
  },
  {
    name: "read-write lock: read",
    page: "docs/primitives/read-write.md",
    requests: "1 UpdateItem, 1 GetItem",
    writeUnits: 1,
    readUnits: 1,
    async perform({ client, newKey, counted }) {
      const lease = await counted(() => new ReadWriteLock(client(), newKey()).read());
      await lease.release();
    },
  },
  {
    name: "read-write lock: write",
    page: "docs/primitives/read-write.md",
    requests: "1 UpdateItem, 1 Query",
    writeUnits: 1,
    readUnits: 1,
    async perform({ client, newKey, counted }) {
      const lease = await counted(() => new ReadWriteLock(client(), newKey()).write());
      await lease.release();
    },
  },
  {
    name: "leader: be elected",
    page: "docs/primitives/leader.md",
    requests: "1 UpdateItem",
    writeUnits: 1,
    readUnits: 0,
    async perform({ client, newKey, counted }) {
      const candidate = new Leader(client(), newKey());
      await counted(() => candidate.campaign());
      await candidate.resign();
    },
  },
  {
    name: "leader: who leads",
    page: "docs/primitives/leader.md",
    requests: "1 GetItem",
    writeUnits: 0,
    readUnits: 0.5,
    async perform({ client, newKey, counted }) {
      const key = newKey();
      const candidate = new Leader(client(), key);
      await candidate.campaign();
      await counted(() => new Leader(client(), key).current());
      await candidate.resign();
    },
  },
];

const compute = { compute: async (): Promise<string> => "value" };

const works: readonly DocumentedOperation[] = [
  {
    name: "single flight: a value that is missing",
    page: "docs/primitives/single-flight.md",
    requests: "2 GetItem, 3 UpdateItem",
    writeUnits: 3,
    readUnits: 2,
    async perform({ client, newKey, counted }) {
      await counted(() => new SingleFlight(client(), { freshForMs: 60_000 }).getOrCompute(newKey(), compute));
    },
  },
  {
    name: "single flight: a hit",
    page: "docs/primitives/single-flight.md",
    requests: "1 GetItem",
    writeUnits: 0,
    readUnits: 1,
    async perform({ client, newKey, counted }) {
      const key = newKey();
      await new SingleFlight(client(), { freshForMs: 60_000 }).getOrCompute(key, compute);
      await counted(() => new SingleFlight(client(), { freshForMs: 60_000 }).getOrCompute(key, compute));
    },
  },
  {
    name: "job runs: run a slot",
    page: "docs/primitives/job-runs.md",
    requests: "2 UpdateItem",
    writeUnits: 2,
    readUnits: 0,
    async perform({ client, newKey, counted }) {
      await counted(() => new JobRuns(client(), newKey()).run("2026-11-21T02:00:00.000Z", () => undefined));
    },
  },
  {
    name: "job runs: the same slot again",
    page: "docs/primitives/job-runs.md",
    requests: "1 UpdateItem",
    writeUnits: 1,
    readUnits: 0,
    async perform({ client, newKey, counted }) {
      const key = newKey();
      await new JobRuns(client(), key).run("2026-11-21T02:00:00.000Z", () => undefined);
      await counted(() => new JobRuns(client(), key).tryRun("2026-11-21T02:00:00.000Z", () => undefined));
    },
  },
  {
    name: "tasks: add 10",
    page: "docs/primitives/tasks.md",
    requests: "1 TransactWriteItems",
    writeUnits: 4 * groupSize,
    readUnits: 0,
    async perform({ client, newKey, counted }) {
      const tasks = Array.from({ length: groupSize }, (_, index) => ({ id: `task-${index}` }));
      await counted(() => new TaskSet(client(), newKey()).add(tasks));
    },
  },
  {
    name: "tasks: succeed",
    page: "docs/primitives/tasks.md",
    requests: "1 TransactWriteItems",
    writeUnits: 4,
    readUnits: 0,
    async perform({ client, newKey, counted }) {
      const tasks = new TaskSet(client(), newKey());
      await tasks.add([{ id: "task" }]);
      const task = await tasks.claim();
      if (task === undefined) throw new Error("the task that was just added cannot be claimed");
      await counted(() => task.succeed());
    },
  },
];

/** The operations whose requests are promised, in the order of the documentation. */
export const documentedOperations: readonly DocumentedOperation[] = [
  ...lock,
  ...groups,
  ...fair,
  ...shared,
  ...works,
];
