/**
 * How far each primitive goes on one key, found by the real client on a table with DynamoDB's limits: what it does in a
 * second, or the largest number that it carries without a lost lease.
 */
import type { WaitOrder } from "@leasehold/client";
import { fair } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { JobRuns, TaskSet } from "@leasehold/jobs";
import { median } from "../turns.ts";
import { documented, LimitedWorld, type Throughput } from "./limited-table.ts";

const forever = 100 * 3_600_000;

/** DynamoDB's limits, all divided by a number: for what would need too many processes to be run at full size. */
export function divided(by: number): Throughput {
  const { writesPerKey, readsPerKey, writesPerTable } = documented;
  return {
    writesPerKey: writesPerKey / by,
    readsPerKey: readsPerKey / by,
    writesPerTable: writesPerTable / by,
  };
}

/** How often in a second something is done by as many loops at a time, after a second of warming up. */
async function perSecond(
  world: LimitedWorld,
  loops: number,
  step: (loop: number) => Promise<unknown>,
  seconds: number,
): Promise<number> {
  let [done, isOver] = [0, false];
  const run = async (loop: number): Promise<void> => {
    while (!isOver) {
      try {
        await step(loop);
        done += 1;
      } catch {
        // Ignored: it was throttled for longer than the client tries, and comes again.
        await world.sleep(100);
      }
    }
  };
  for (let loop = 0; loop < loops; loop += 1) void run(loop);
  await world.clock.advance(1_000);
  done = 0;
  await world.clock.advance(seconds * 1_000);
  isOver = true;
  return done / seconds;
}

/** As many processes take one lock, in order or not; nobody keeps it for longer than it takes to let it go. */
export async function cyclesPerSecond(
  processes: number,
  seconds: number,
  order?: WaitOrder,
): Promise<number> {
  const world = new LimitedWorld();
  const clients = Array.from({ length: processes }, () => world.process());
  const step = async (loop: number): Promise<void> => {
    const lease = await clients[loop]?.acquire("k", { ...(order && { order }), waitMs: forever });
    await lease?.release();
  };
  return await perSecond(world, processes, step, seconds);
}

/** What it takes to hand a lock on in a line. */
export interface HandOver {
  /** Of all holders and waiters. */
  readonly requests: number;
  /** From the call of release to the next holder's grant: the median. */
  readonly idleMs: number;
}

/** Hands a lock on while as many as given wait in line, each alone in a new process; at each grant another one comes. */
export async function handOver(waiters: number, holds: "constant" | "random"): Promise<HandOver> {
  const [seeds, counted, holdMs] = [[1, 2, 3], 150, 1_000];
  const order = fair({ maxWaiters: 500 });
  const idles: number[] = [];
  let requests = 0;
  for (const seed of seeds) {
    const world = new LimitedWorld(documented, seed);
    const { clock, table, random } = world;
    let [handed, warm, releasedAt] = [0, Number.POSITIVE_INFINITY, 0];
    const use = async (): Promise<void> => {
      const client = world.process({ leaseDurationMs: 30_000 });
      const lease = await client.acquire("k", { order, waitMs: forever, heartbeat: true });
      if (handed > warm) idles.push(clock.monotonic() - releasedAt);
      handed += 1;
      void use();
      await world.sleep(holds === "constant" ? holdMs : -Math.log(1 - random.fraction()) * holdMs);
      releasedAt = clock.monotonic();
      await lease.release();
    };
    const until = async (goal: number): Promise<void> => {
      while (handed < goal) await clock.advance(100);
    };
    for (let index = 0; index <= waiters; index += 1) void use();
    await until(2 * waiters + 10);
    warm = handed;
    const before = table.load.sent;
    await until(warm + counted);
    requests += (table.load.sent - before) / (handed - warm) / seeds.length;
  }
  return { requests, idleMs: median(idles) };
}

/** Tries on a lock that is held, and whether its holder keeps it by its heartbeat. */
export async function triesOnHeldLock(
  tries: number,
  seconds: number,
): Promise<{ readonly served: number; readonly lost: number }> {
  const world = new LimitedWorld();
  const holder = world.process({ leaseDurationMs: 30_000 });
  await world.settle(holder.acquire("k", { heartbeat: true }));
  // A client has 32 tries under way at most: so that many come, there are many processes.
  const clients = Array.from({ length: Math.ceil(tries / 50) }, () => world.process());
  const pauseMs = (1_000 * clients.length) / tries;
  const attempt = (loop: number) => clients[loop]?.tryAcquire("k");
  let isOver = false;
  for (const [loop] of clients.entries()) {
    void (async () => {
      await world.sleep(pauseMs * world.random.fraction());
      while (!isOver) {
        // Ignored: it was throttled.
        void attempt(loop)?.catch(() => undefined);
        await world.sleep(pauseMs);
      }
    })();
  }
  await world.clock.advance(1_000);
  const { written } = await world.during(seconds);
  isOver = true;
  return { served: written, lost: world.lost };
}

/** What became of many leases that were kept for some lease durations. */
export interface Kept {
  /** The share of all requests that was throttled. */
  readonly throttled: number;
  /** Leases that were lost. */
  readonly lost: number;
}

/** Keeps as many leases of a semaphore's permits, each in a process of its own: one that has many renews them in bursts. */
export async function keepPermits(permits: number, leaseDurationMs: number): Promise<Kept> {
  const world = new LimitedWorld();
  return await keep(world, permits, leaseDurationMs, () =>
    new Semaphore(world.process({ leaseDurationMs }), "s", { permits: 1_000 }).acquire({
      heartbeat: true,
      waitMs: forever,
    }),
  );
}

/** Keeps as many leases of different locks, each in a process of its own. */
export async function keepLeases(leases: number, leaseDurationMs: number, limits: Throughput): Promise<Kept> {
  const world = new LimitedWorld(limits);
  return await keep(world, leases, leaseDurationMs, (index) =>
    world.process({ leaseDurationMs }).acquire(`k${index}`, { heartbeat: true, waitMs: forever }),
  );
}

/** Acquires them one after the other within two leases, so that renewals do not come together, and keeps them for three. */
async function keep(
  world: LimitedWorld,
  count: number,
  leaseDurationMs: number,
  acquire: (index: number) => Promise<unknown>,
): Promise<Kept> {
  const acquired: Promise<unknown>[] = [];
  for (let index = 0; index < count; index += 1) {
    acquired.push(acquire(index));
    await world.clock.advance((2 * leaseDurationMs) / count);
  }
  await world.settle(Promise.all(acquired));
  const { throttled, sent } = await world.during((3 * leaseDurationMs) / 1_000);
  return { throttled: throttled / sent, lost: world.lost };
}

/** Has as many processes begin to wait, within a minute, for a lock that stays held. */
async function waitInVain(world: LimitedWorld, waiters: number, order?: WaitOrder): Promise<void> {
  const options = order && { order };
  await world.settle(world.process({ leaseDurationMs: 3_600_000 }).acquire("k", options));
  for (let index = 0; index < waiters; index += 1) {
    const waiting = world.process().acquire("k", { ...options, waitMs: forever });
    // Ignored: nobody lets it go in this measurement.
    void waiting.catch(() => undefined);
    await world.clock.advance(60_000 / waiters);
  }
}

/** What share of the looks of as many waiting processes is throttled, once they have waited for some minutes. */
export async function throttledLooks(waiters: number, limits: Throughput): Promise<number> {
  const world = new LimitedWorld(limits);
  await waitInVain(world, waiters);
  await world.clock.advance(60_000);
  const { throttled, sent } = await world.during(60);
  return throttled / sent;
}

/** Write units a second that as many processes in line take, while the lock stays held. */
export async function unitsOfLine(waiters: number, seconds: number): Promise<number> {
  const world = new LimitedWorld();
  await waitInVain(world, waiters, fair({ maxWaiters: 500 }));
  return (await world.during(seconds)).written;
}

/** Tasks of one set that as many workers claim and end in a second. */
export async function tasksPerSecond(workers: number, seconds: number): Promise<number> {
  const world = new LimitedWorld();
  const tasks = new TaskSet(world.process(), "set");
  const enough = Math.ceil((seconds + 3) * 250);
  for (let first = 0; first < enough; first += 50) {
    const batch = Array.from({ length: 50 }, (_, index) => ({ id: `task-${first + index}` }));
    await world.settle(tasks.add(batch));
    await world.clock.advance(250);
  }
  const sets = Array.from({ length: workers }, () => new TaskSet(world.process(), "set"));
  const step = async (loop: number): Promise<void> => {
    const task = await sets[loop]?.claim();
    if (task === undefined) throw new Error("no task was found at this look");
    await task.succeed();
  };
  return await perSecond(world, workers, step, seconds);
}

/** Slots of one job that as many processes run in a second. */
export async function slotsPerSecond(processes: number, seconds: number): Promise<number> {
  const world = new LimitedWorld();
  const jobs = Array.from({ length: processes }, () => new JobRuns(world.process(), "job"));
  // One after the other, all of them past.
  let slot = world.clock.now() - 86_400_000;
  const step = async (loop: number): Promise<void> => {
    slot += 1;
    await jobs[loop]?.run(new Date(slot), () => undefined);
  };
  return await perSecond(world, processes, step, seconds);
}

/** Hits of one cached value by as many processes, each of which asks again at once. */
export async function hitsPerSecond(processes: number, seconds: number): Promise<number> {
  const world = new LimitedWorld();
  const flights = Array.from(
    { length: processes },
    () => new SingleFlight(world.process(), { freshForMs: 3_600_000 }),
  );
  const ask = async (loop: number) => flights[loop]?.getOrCompute("k", { compute: () => "value" });
  await world.settle(ask(0));
  return await perSecond(world, processes, ask, seconds);
}

/** As many processes take groups of two locks, of which they share one, whenever it is free. */
export async function sharingGroupsPerSecond(processes: number, seconds: number): Promise<number> {
  const world = new LimitedWorld();
  const clients = Array.from({ length: processes }, () => world.process());
  const step = async (loop: number): Promise<void> => {
    const client = clients[loop];
    if (client === undefined) return;
    const group = await acquireAll(client, ["shared", `own${loop}`], { waitMs: forever });
    await group.release();
  };
  return await perSecond(world, processes, step, seconds);
}

/** Groups of as many locks that one process takes and lets go in a second. */
export async function groupsPerSecond(locks: number, seconds: number): Promise<number> {
  const world = new LimitedWorld();
  const client = world.process();
  const keys = Array.from({ length: locks }, (_, index) => `g${index}`);
  return await perSecond(world, 1, async () => (await acquireAll(client, keys)).release(), seconds);
}

/** The largest number for which something holds, to within a twentieth; it holds for the least. */
export async function largest(
  least: number,
  most: number,
  holds: (n: number) => Promise<boolean>,
): Promise<number> {
  let [yes, no] = [least, most];
  while (no - yes > Math.max(1, yes / 20)) {
    const middle = Math.round((yes + no) / 2);
    if (await holds(middle)) yes = middle;
    else no = middle;
  }
  return yes;
}
