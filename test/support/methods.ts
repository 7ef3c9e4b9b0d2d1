// Every public method that sends something, with the grant that is for it. Tests of permissions call each of them.
import { LeaseClient, type LeaseClientOptions } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { FairLock, fair } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { Leader } from "@leasehold/client/leader";
import type { LoggedEvent } from "@leasehold/client/log";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { ManualClock } from "@leasehold/client/testing";
import { together } from "@leasehold/client/together";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import type { Task } from "../../packages/jobs/src/tasks/task.ts";
import { adminOf } from "./admin.ts";
import { ScriptedStore } from "./scripted-store.ts";

/** The grants that methods need. */
export type GrantName = "read" | "operate" | "useLeases" | "usePrimitives";

/** What a method is called on. */
export interface World {
  readonly store: ScriptedStore;
  readonly clock: ManualClock;
  readonly client: LeaseClient;
  /** Another process. */
  readonly other: LeaseClient;
  readonly tasks: TaskSet;
  readonly runs: JobRuns;
  readonly semaphore: Semaphore;
  readonly readWrite: ReadWriteLock;
  readonly fair: FairLock;
  readonly operator: LeaseOperator;
  readonly flights: SingleFlight;
}

/** A table in memory, and two processes; they tell the same listener of all that happens. */
export function newWorld(
  options: Pick<LeaseClientOptions, "randomness"> & { readonly onEvent?: (event: LoggedEvent) => void } = {},
  store = new ScriptedStore(),
): World {
  const clock = new ManualClock();
  const { onEvent } = options;
  const client = new LeaseClient({ ...options, store, clock, owner: "one" });
  return {
    store,
    clock,
    client,
    other: new LeaseClient({ ...options, store, clock, owner: "other" }),
    tasks: new TaskSet(client, "set", { backoff: { delayMs: 0 } }),
    runs: new JobRuns(client, "job"),
    semaphore: new Semaphore(client, "s", { permits: 2 }),
    readWrite: new ReadWriteLock(client, "rw"),
    fair: new FairLock(client, "desk"),
    operator: new LeaseOperator(client, { by: "alice" }),
    flights: new SingleFlight(client, { freshForMs: 1_000, ...(onEvent && { onEvent }) }),
  };
}

const slot = "2025-12-31T23:00:00.000Z";
const earlier = "2025-12-31T22:00:00.000Z";
const done = (): string => "done";

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) found.push(value);
  return found;
}

async function claimed({ tasks }: World): Promise<Task> {
  await tasks.add([{ id: "1" }]);
  const task = await tasks.claim();
  if (task === undefined) throw new Error("there is no task to claim");
  return task;
}

async function parked(world: World): Promise<void> {
  await (await claimed(world)).fail("no address", { final: true });
}

/** Prepares what a call needs, unrecorded, and gives the call. */
export type Prepare = (world: World) => Promise<() => Promise<unknown>> | (() => Promise<unknown>);

/** A call that needs nothing before it. */
const call =
  (method: (world: World) => Promise<unknown>): Prepare =>
  (world) =>
  () =>
    method(world);

/** Each method that sends something, the grant that is for it, and calls that show all that it may send. */
export const methods: Readonly<Record<string, readonly [grant: GrantName, ...Prepare[]]>> = {
  "LeaseClient.inspect": ["read", call(({ client }) => client.inspect("k"))],
  "LeaseAdmin.inspect": ["read", call(({ client }) => adminOf(client).inspect("k"))],
  "LeaseAdmin.inspectAll": ["read", call(({ client }) => adminOf(client).inspectAll("k"))],
  "LeaseAdmin.describe": ["read", call(({ client }) => adminOf(client).describe("k"))],
  "LeaseOperator.describe": ["read", call(({ operator }) => operator.describe("k"))],
  "LeaseOperator.audit": [
    "read",
    call(({ operator }) => all(operator.audit())),
    call(({ operator }) => all(operator.audit({ key: "k" }))),
  ],
  "LeaseOperator.history": ["read", call(({ operator }) => all(operator.history("k")))],
  "LeaseOperator.stop": [
    "operate",
    async ({ client, operator }) => {
      const { token } = (await client.acquire("k")).toJSON();
      return () => operator.stop("k", { token });
    },
  ],
  "LeaseOperator.break": [
    "operate",
    async ({ client, operator }) => {
      const { token } = (await client.acquire("k")).toJSON();
      return () => operator.break("k", { token, reason: "INC-1" });
    },
    async ({ semaphore, operator }) => {
      const { token } = (await semaphore.acquire()).toJSON();
      return () => operator.break("s", { token, sortKey: "semaphore", reason: "INC-1" });
    },
  ],
  "LeaseOperator.pause": [
    "operate",
    call(({ operator }) => operator.pause("k", { forMs: 60_000, reason: "INC-1" })),
  ],
  "LeaseOperator.resume": [
    "operate",
    async ({ operator }) => {
      await operator.pause("k", { forMs: 60_000, reason: "INC-1" });
      return () => operator.resume("k");
    },
  ],
  "LeaseAdmin.list": ["read", call(({ client }) => all(adminOf(client).list()))],
  "LeaseAdmin.listPages": ["read", call(({ client }) => all(adminOf(client).listPages({ all: true })))],
  "LeaseClient.doneSlot": ["read", call(({ client }) => client.doneSlot("k"))],
  "LeaseAdmin.forceRelease": [
    "operate",
    async ({ client, other }) => {
      const { token } = await other.acquire("k");
      return () => adminOf(client).forceRelease("k", { token });
    },
  ],
  "LeaseAdmin.requestRevocation": [
    "operate",
    async ({ client, other }) => {
      const { token } = await other.acquire("k");
      return () => adminOf(client).requestRevocation("k", { token });
    },
  ],
  "LeaseAdmin.takeBackSlot": [
    "operate",
    async ({ client }) => {
      await (await client.acquire("k", { slot })).complete();
      return () => adminOf(client).takeBackSlot("k", { doneSlot: slot, to: earlier });
    },
  ],
  "LeaseClient.acquire": [
    "useLeases",
    call(({ client }) => client.acquire("k")),
    call(({ client }) => client.acquire("k", { order: fair() })),
    async ({ client, other, clock }) => {
      await other.acquire("k", { leaseDurationMs: 30_000 });
      return async () => {
        const waiting = client.acquire("k", { waitMs: 60_000 });
        await Promise.all([waiting, clock.advance(60_000)]);
      };
    },
    async ({ client, other, clock }) => {
      await other.acquire("k", { leaseDurationMs: 30_000 });
      return async () => {
        const waiting = client.acquire("k", { waitMs: 60_000, order: fair() });
        await Promise.all([waiting, clock.advance(60_000)]);
      };
    },
  ],
  "LeaseClient.tryAcquire": ["useLeases", call(({ client }) => client.tryAcquire("k"))],
  "LeaseClient.withLease": ["useLeases", call(({ client }) => client.withLease("k", done))],
  "LeaseClient.close": [
    "useLeases",
    async ({ client }) => {
      await client.acquire("k");
      return () => client.close();
    },
  ],
  "Lease.renew": [
    "useLeases",
    async ({ client }) => {
      const lease = await client.acquire("k");
      return () => lease.renew();
    },
    // Heartbeats, each by itself and in shared requests.
    async ({ client, clock }) => {
      await client.acquire("k", { heartbeat: true });
      return () => clock.advance(60_000);
    },
    async ({ store, clock }) => {
      const client = new LeaseClient({ store, clock, renewals: together() });
      await Promise.all(["k", "l", "m"].map((key) => client.acquire(key, { heartbeat: true })));
      return () => clock.advance(60_000);
    },
  ],
  "Lease.release": [
    "useLeases",
    async ({ client }) => {
      const lease = await client.acquire("k");
      return () => lease.release();
    },
  ],
  "Lease.complete": [
    "useLeases",
    async ({ client }) => {
      const lease = await client.acquire("k", { slot });
      return () => lease.complete();
    },
  ],
  "Lease.end": [
    "useLeases",
    async ({ client }) => {
      const lease = await client.acquire("k", { slot });
      return () => lease.end(true);
    },
  ],
  "FairLock.inspect": ["read", call(({ fair }) => fair.inspect())],
  "FairLock.acquire": ["useLeases", call(({ fair }) => fair.acquire())],
  "FairLock.withLease": ["useLeases", call(({ fair }) => fair.withLease({}, done))],
  "FairLock.checkIn": ["useLeases", call(({ fair }) => fair.checkIn({ owner: "ticket" }))],
  "FairLock.checkOut": [
    "useLeases",
    async ({ fair }) => {
      await fair.checkIn({ owner: "ticket" });
      return () => fair.checkOut({ owner: "ticket" });
    },
  ],
  "Leader.current": ["read", call(({ client }) => new Leader(client, "l").current())],
  "Leader.observe": [
    "read",
    ({ client }) =>
      async () => {
        for await (const _ of new Leader(client, "l").observe()) break;
      },
  ],
  "Leader.campaign": ["useLeases", call(({ client }) => new Leader(client, "l").campaign())],
  "Leader.lead": [
    "useLeases",
    ({ client }) =>
      () => {
        const stop = new AbortController();
        return new Leader(client, "l")
          .lead(() => stop.abort(), { signal: stop.signal })
          .catch(() => undefined);
      },
  ],
  "Leader.resign": [
    "useLeases",
    async ({ client }) => {
      const leader = new Leader(client, "l");
      await leader.campaign();
      return () => leader.resign();
    },
  ],
  acquireAll: [
    "useLeases",
    call(({ client }) => acquireAll(client, ["k", "l"])),
    async ({ client, other }) => {
      await other.acquire("l");
      return () => acquireAll(client, ["k", "l"]).catch(() => undefined);
    },
  ],
  "LeaseGroup.renew": [
    "useLeases",
    async ({ client }) => {
      const group = await acquireAll(client, ["k", "l"]);
      return () => group.renew();
    },
  ],
  "LeaseGroup.release": [
    "useLeases",
    async ({ client }) => {
      const group = await acquireAll(client, ["k", "l"]);
      return () => group.release();
    },
  ],
  "Semaphore.inspect": ["read", call(({ semaphore }) => semaphore.inspect())],
  "Semaphore.acquire": [
    "useLeases",
    call(({ semaphore }) => semaphore.acquire()),
    call(({ client }) => new Semaphore(client, "s", { permits: 2, order: fair() }).acquire()),
  ],
  "Semaphore.tryAcquire": ["useLeases", call(({ semaphore }) => semaphore.tryAcquire())],
  "Semaphore.withPermit": ["useLeases", call(({ semaphore }) => semaphore.withPermit({}, done))],
  "Semaphore.drain": ["read", call(({ semaphore }) => semaphore.drain())],
  "ReadWriteLock.inspect": ["read", call(({ readWrite }) => readWrite.inspect())],
  "ReadWriteLock.read": ["useLeases", call(({ readWrite }) => readWrite.read())],
  "ReadWriteLock.tryRead": ["useLeases", call(({ readWrite }) => readWrite.tryRead())],
  "ReadWriteLock.write": ["useLeases", call(({ readWrite }) => readWrite.write())],
  "ReadWriteLock.tryWrite": ["useLeases", call(({ readWrite }) => readWrite.tryWrite())],
  "ReadWriteLock.withRead": ["useLeases", call(({ readWrite }) => readWrite.withRead({}, done))],
  "ReadWriteLock.withWrite": ["useLeases", call(({ readWrite }) => readWrite.withWrite({}, done))],
  "SingleFlight.getOrCompute": [
    "usePrimitives",
    call(({ flights }) => flights.getOrCompute("k", { compute: done })),
  ],
  "SingleFlight.getOrComputeWithSource": [
    "usePrimitives",
    call(({ flights }) => flights.getOrComputeWithSource("k", { compute: done })),
  ],
  "SingleFlight.invalidate": ["usePrimitives", call(({ flights }) => flights.invalidate("k"))],
  "TaskSet.get": [
    "read",
    async (world) => {
      await world.tasks.add([{ id: "1" }]);
      return () => world.tasks.get("1");
    },
    call(({ tasks }) => tasks.get("unknown")),
  ],
  "TaskSet.counts": ["read", call(({ tasks }) => tasks.counts())],
  "TaskSet.list": ["read", call(({ tasks }) => all(tasks.list()))],
  "TaskSet.cancel": [
    "operate",
    async ({ tasks }) => {
      await tasks.add([{ id: "1" }]);
      return () => tasks.cancel("1");
    },
  ],
  "TaskSet.requeue": [
    "operate",
    async (world) => {
      await parked(world);
      return () => world.tasks.requeue("1");
    },
  ],
  "TaskSet.requeueAll": [
    "operate",
    async (world) => {
      await parked(world);
      return () => world.tasks.requeueAll();
    },
  ],
  "TaskSet.add": ["usePrimitives", call(({ tasks }) => tasks.add([{ id: "1" }]))],
  "TaskSet.claim": [
    "usePrimitives",
    async ({ tasks }) => {
      await tasks.add([{ id: "1" }]);
      return () => tasks.claim();
    },
  ],
  "TaskSet.work": [
    "usePrimitives",
    async ({ tasks }) => {
      await tasks.add([{ id: "1" }]);
      return async () => {
        for await (const task of tasks.work({ until: "drained" })) await task.succeed();
      };
    },
  ],
  "TaskSet.process": [
    "usePrimitives",
    async ({ tasks }) => {
      await tasks.add([{ id: "1" }]);
      return () => tasks.process(done, { until: "drained" });
    },
  ],
  "Task.renew": ["usePrimitives", async (world) => claimed(world).then((task) => () => task.renew())],
  "Task.succeed": ["usePrimitives", async (world) => claimed(world).then((task) => () => task.succeed())],
  "Task.succeedIn": [
    "usePrimitives",
    async (world) => {
      const task = await claimed(world);
      // It looks whether a transaction without an answer has landed.
      return () => task.succeedIn(() => Promise.reject(new Error("cut"))).catch(() => undefined);
    },
  ],
  "Task.fail": ["usePrimitives", async (world) => claimed(world).then((task) => () => task.fail("no"))],
  "Task.release": ["usePrimitives", async (world) => claimed(world).then((task) => () => task.release())],
  "JobRuns.schedule": [
    "usePrimitives",
    ({ runs }) =>
      async () => {
        const stop = new AbortController();
        const times = { next: (after: Date) => (after < new Date(slot) ? new Date(slot) : undefined) };
        await runs.schedule(times, () => stop.abort(), { catchUpMs: 86_400_000, signal: stop.signal });
      },
  ],
  "JobRuns.get": ["read", call(({ runs }) => runs.get(slot))],
  "JobRuns.runs": ["read", call(({ runs }) => all(runs.runs()))],
  "JobRuns.missed": [
    "read",
    ({ runs, clock }) =>
      () => {
        const now = clock.now();
        const next = (after: Date): Date => new Date(after.getTime() + 3_600_000);
        return all(runs.missed({ schedule: { next }, since: new Date(now - 7_200_000) }));
      },
  ],
  "JobRuns.skip": ["operate", call(({ runs }) => runs.skip(slot))],
  "JobRuns.takeBack": [
    "operate",
    async ({ runs }) => {
      await runs.run(slot, done);
      const run = await runs.get(slot);
      if (run === undefined) throw new Error("there is no run to take back");
      return () => runs.takeBack(run);
    },
  ],
  "JobRuns.run": ["usePrimitives", call(({ runs }) => runs.run(slot, done))],
  "JobRuns.tryRun": ["usePrimitives", call(({ runs }) => runs.tryRun(slot, done))],
  "JobRuns.backfill": [
    "usePrimitives",
    ({ runs, clock }) =>
      () => {
        const now = clock.now();
        const next = (after: Date): Date => new Date(after.getTime() + 3_600_000);
        const range = { schedule: { next }, since: new Date(now - 7_200_000) };
        return runs.backfill(range, done);
      },
  ],
};
