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
import { type JobRun, JobRuns, TaskSet } from "@leasehold/jobs";
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
const reason = "INC-1";
const done = (): string => "done";

async function all<T>(values: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const value of values) found.push(value);
  return found;
}

/** Prepares what a call needs, unrecorded, and gives the call. */
type Prepare = (world: World) => Promise<() => Promise<unknown>> | (() => Promise<unknown>);

/** A call that needs nothing before it. */
const call =
  (method: (world: World) => Promise<unknown>): Prepare =>
  (world) =>
  () =>
    method(world);

/** A call that needs what was made before. */
const after =
  <Made>(
    make: (world: World) => Promise<Made>,
    method: (made: Made, world: World) => Promise<unknown>,
  ): Prepare =>
  async (world) => {
    const made = await make(world);
    return () => method(made, world);
  };

const acquired = ({ client }: World) => client.acquire("k", { slot });
const heldByOther = ({ other }: World) => other.acquire("k", { leaseDurationMs: 30_000 });
const completed = async ({ client }: World) => await (await client.acquire("k", { slot })).complete();
const paused = ({ operator }: World) => operator.pause("k", { forMs: 60_000, reason });
const checkedIn = ({ fair }: World) => fair.checkIn({ owner: "ticket" });
const grouped = ({ client }: World) => acquireAll(client, ["k", "l"]);
const added = ({ tasks }: World) => tasks.add([{ id: "1" }]);

async function elected({ client }: World): Promise<Leader> {
  const leader = new Leader(client, "l");
  await leader.campaign();
  return leader;
}

async function claimed(world: World): Promise<Task> {
  await added(world);
  const task = await world.tasks.claim();
  if (task === undefined) throw new Error("there is no task to claim");
  return task;
}

async function parked(world: World): Promise<void> {
  await (await claimed(world)).fail("no address", { final: true });
}

async function ended({ runs }: World): Promise<JobRun> {
  await runs.run(slot, done);
  const run = await runs.get(slot);
  if (run === undefined) throw new Error("there is no run");
  return run;
}

/** Hours of the last two, for a schedule that nobody has served. */
function missedBy({ clock }: World) {
  const next = (after: Date): Date => new Date(after.getTime() + 3_600_000);
  return { schedule: { next }, since: new Date(clock.now() - 7_200_000) };
}

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
    after(acquired, ({ token }, { operator }) => operator.stop("k", { token })),
  ],
  "LeaseOperator.break": [
    "operate",
    after(acquired, ({ token }, { operator }) => operator.break("k", { token, reason })),
    after(
      ({ semaphore }) => semaphore.acquire(),
      ({ token }, { operator }) => operator.break("s", { token, sortKey: "semaphore", reason }),
    ),
  ],
  "LeaseOperator.pause": ["operate", call(paused)],
  "LeaseOperator.resume": ["operate", after(paused, (_, { operator }) => operator.resume("k"))],
  "LeaseAdmin.list": ["read", call(({ client }) => all(adminOf(client).list()))],
  "LeaseAdmin.listPages": ["read", call(({ client }) => all(adminOf(client).listPages({ all: true })))],
  "LeaseClient.doneSlot": ["read", call(({ client }) => client.doneSlot("k"))],
  "LeaseAdmin.forceRelease": [
    "operate",
    after(heldByOther, ({ token }, { client }) => adminOf(client).forceRelease("k", { token })),
  ],
  "LeaseAdmin.requestRevocation": [
    "operate",
    after(heldByOther, ({ token }, { client }) => adminOf(client).requestRevocation("k", { token })),
  ],
  "LeaseAdmin.takeBackSlot": [
    "operate",
    after(completed, (_, { client }) => adminOf(client).takeBackSlot("k", { doneSlot: slot, to: earlier })),
  ],
  "LeaseClient.acquire": [
    "useLeases",
    call(({ client }) => client.acquire("k")),
    call(({ client }) => client.acquire("k", { order: fair() })),
    ...[undefined, fair()].map((order) =>
      after(heldByOther, (_, { client, clock }) => {
        const waiting = client.acquire("k", { waitMs: 60_000, ...(order && { order }) });
        return Promise.all([waiting, clock.advance(60_000)]);
      }),
    ),
  ],
  "LeaseClient.tryAcquire": ["useLeases", call(({ client }) => client.tryAcquire("k"))],
  "LeaseClient.withLease": ["useLeases", call(({ client }) => client.withLease("k", done))],
  "LeaseClient.close": ["useLeases", after(acquired, (_, { client }) => client.close())],
  "Lease.renew": [
    "useLeases",
    after(acquired, (lease) => lease.renew()),
    // Heartbeats, each by itself and in shared requests.
    after(
      ({ client }) => client.acquire("k", { heartbeat: true }),
      (_, { clock }) => clock.advance(60_000),
    ),
    after(
      ({ store, clock }) => {
        const client = new LeaseClient({ store, clock, renewals: together() });
        return Promise.all(["k", "l", "m"].map((key) => client.acquire(key, { heartbeat: true })));
      },
      (_, { clock }) => clock.advance(60_000),
    ),
  ],
  "Lease.release": ["useLeases", after(acquired, (lease) => lease.release())],
  "Lease.complete": ["useLeases", after(acquired, (lease) => lease.complete())],
  "Lease.end": ["useLeases", after(acquired, (lease) => lease.end(true))],
  "FairLock.inspect": ["read", call(({ fair }) => fair.inspect())],
  "FairLock.acquire": ["useLeases", call(({ fair }) => fair.acquire())],
  "FairLock.withLease": ["useLeases", call(({ fair }) => fair.withLease({}, done))],
  "FairLock.checkIn": ["useLeases", call(checkedIn)],
  "FairLock.checkOut": ["useLeases", after(checkedIn, (_, { fair }) => fair.checkOut({ owner: "ticket" }))],
  "Leader.current": ["read", call(({ client }) => new Leader(client, "l").current())],
  "Leader.observe": [
    "read",
    call(async ({ client }) => {
      for await (const _ of new Leader(client, "l").observe()) break;
    }),
  ],
  "Leader.campaign": ["useLeases", call(elected)],
  "Leader.lead": [
    "useLeases",
    call(({ client }) => {
      const stop = new AbortController();
      return new Leader(client, "l").lead(() => stop.abort(), { signal: stop.signal }).catch(() => undefined);
    }),
  ],
  "Leader.resign": ["useLeases", after(elected, (leader) => leader.resign())],
  acquireAll: [
    "useLeases",
    call(grouped),
    after(heldByOther, (_, world) => grouped(world).catch(() => undefined)),
  ],
  "LeaseGroup.renew": ["useLeases", after(grouped, (group) => group.renew())],
  "LeaseGroup.release": ["useLeases", after(grouped, (group) => group.release())],
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
    after(added, (_, { tasks }) => tasks.get("1")),
    call(({ tasks }) => tasks.get("unknown")),
  ],
  "TaskSet.counts": ["read", call(({ tasks }) => tasks.counts())],
  "TaskSet.list": ["read", call(({ tasks }) => all(tasks.list()))],
  "TaskSet.cancel": ["operate", after(added, (_, { tasks }) => tasks.cancel("1"))],
  "TaskSet.requeue": ["operate", after(parked, (_, { tasks }) => tasks.requeue("1"))],
  "TaskSet.requeueAll": ["operate", after(parked, (_, { tasks }) => tasks.requeueAll())],
  "TaskSet.add": ["usePrimitives", call(added)],
  "TaskSet.claim": ["usePrimitives", after(added, (_, { tasks }) => tasks.claim())],
  "TaskSet.work": [
    "usePrimitives",
    after(added, async (_, { tasks }) => {
      for await (const task of tasks.work({ until: "drained" })) await task.succeed();
    }),
  ],
  "TaskSet.process": [
    "usePrimitives",
    after(added, (_, { tasks }) => tasks.process(done, { until: "drained" })),
  ],
  "Task.renew": ["usePrimitives", after(claimed, (task) => task.renew())],
  "Task.succeed": ["usePrimitives", after(claimed, (task) => task.succeed())],
  "Task.succeedIn": [
    "usePrimitives",
    // It looks whether a transaction without an answer has landed.
    after(claimed, (task) => task.succeedIn(() => Promise.reject(new Error("cut"))).catch(() => undefined)),
  ],
  "Task.fail": ["usePrimitives", after(claimed, (task) => task.fail("no"))],
  "Task.release": ["usePrimitives", after(claimed, (task) => task.release())],
  "JobRuns.schedule": [
    "usePrimitives",
    call(async ({ runs }) => {
      const stop = new AbortController();
      const times = { next: (after: Date) => (after < new Date(slot) ? new Date(slot) : undefined) };
      await runs.schedule(times, () => stop.abort(), { catchUpMs: 86_400_000, signal: stop.signal });
    }),
  ],
  "JobRuns.get": ["read", call(({ runs }) => runs.get(slot))],
  "JobRuns.runs": ["read", call(({ runs }) => all(runs.runs()))],
  "JobRuns.missed": ["read", call((world) => all(world.runs.missed(missedBy(world))))],
  "JobRuns.skip": ["operate", call(({ runs }) => runs.skip(slot))],
  "JobRuns.takeBack": ["operate", after(ended, (run, { runs }) => runs.takeBack(run))],
  "JobRuns.run": ["usePrimitives", call(({ runs }) => runs.run(slot, done))],
  "JobRuns.tryRun": ["usePrimitives", call(({ runs }) => runs.tryRun(slot, done))],
  "JobRuns.backfill": ["usePrimitives", call((world) => world.runs.backfill(missedBy(world), done))],
};
