import type { Lease, LeaseClient } from "@leasehold/client";
import { median, quantile } from "../statistics.ts";
import { VirtualWorld } from "./virtual-world.ts";

/** How a caller waits: with a signal that makes it give up. */
export type Acquire = (client: LeaseClient, signal?: AbortSignal) => Promise<Lease>;

/** How long a holder keeps the lock. */
export type Hold = (world: VirtualWorld) => number;

/** Always the same. */
export const constant =
  (ms: number): Hold =>
  () =>
    ms;

/** Of random length, as of requests that have nothing to do with each other. */
export const exponential =
  (meanMs: number): Hold =>
  ({ random }) =>
    -Math.log(1 - random.fraction()) * meanMs;

/** What it takes to hand a lock on. */
export interface HandOvers {
  readonly requests: number;
  readonly reads: number;
  /** From the call of release to the next holder's grant. */
  readonly p50: number;
  readonly mean: number;
  readonly p90: number;
}

const seeds = [1, 2, 3];

/**
 * Hands a lock on while as many as given wait, each in a process of its own; at each grant another caller comes: in a new
 * process, which remembers nothing, or in one that has had the lock before.
 */
export async function handOvers(
  acquire: Acquire,
  waiters: number,
  hold: Hold,
  processes: "new" | "lasting" = "new",
  count = 150,
): Promise<HandOvers> {
  const idles: number[] = [];
  let [requests, reads] = [0, 0];
  for (const seed of seeds) {
    const world = new VirtualWorld(seed);
    const { clock, sent } = world;
    let releasedAt = 0;
    let [handed, warm] = [0, Number.POSITIVE_INFINITY];
    const idle: LeaseClient[] = [];
    const use = async (): Promise<void> => {
      const client = idle.shift() ?? world.process("worker").client;
      const lease = await acquire(client);
      if (handed > warm) idles.push(clock.monotonic() - releasedAt);
      handed += 1;
      void use();
      await world.sleep(hold(world));
      releasedAt = clock.monotonic();
      await lease.release();
      if (processes === "lasting") idle.push(client);
    };
    for (let index = 0; index <= waiters; index += 1) void use();
    const until = async (goal: number): Promise<void> => {
      while (handed < goal) await clock.advance(100);
    };
    await until(2 * waiters + 10);
    warm = handed;
    const before = { ...sent };
    await until(warm + count);
    requests += (sent.reads + sent.writes - before.reads - before.writes) / (handed - warm) / seeds.length;
    reads += (sent.reads - before.reads) / (handed - warm) / seeds.length;
  }
  const mean = idles.reduce((sum, idle) => sum + idle, 0) / idles.length;
  return { requests, reads, p50: median(idles), mean, p90: quantile(idles, 0.9) };
}

/** Lets holders teach a lock how long they typically keep it, one after the other. */
async function teach(world: VirtualWorld, acquire: Acquire, holdMs: number): Promise<void> {
  const { client } = world.process("teacher");
  for (let use = 0; use < 5; use += 1) await keep(world, await world.settle(acquire(client)), holdMs);
}

async function keep(world: VirtualWorld, lease: Lease, holdMs: number): Promise<void> {
  await world.sleepFor(holdMs);
  await world.settle(lease.release());
}

/**
 * How long it takes until a caller that lives gets the lock after its release, behind so many that died waiting: at once
 * before the release, which is the worst.
 */
export async function deadAhead(acquire: Acquire, dead: number, typicalMs: number): Promise<number> {
  const waits: number[] = [];
  for (const seed of seeds) {
    const world = new VirtualWorld(seed);
    await teach(world, acquire, typicalMs);
    const holder = await world.settle(acquire(world.process("holder").client));
    const died = Array.from({ length: dead }, (_, index) => world.process(`dead${index}`));
    for (const { client } of died) {
      void acquire(client).catch(() => undefined);
      await world.sleepFor(20);
    }
    const living = acquire(world.process("alive").client);
    await world.sleepFor(Math.max(typicalMs, 15_000) + world.random.between(0, 10_000));
    for (const { die } of died) die();
    const releasedAt = world.clock.monotonic();
    void holder.release();
    await world.settle(living);
    waits.push(world.clock.monotonic() - releasedAt);
  }
  return Math.max(...waits);
}

/** How long as many waiters as given take to get and release the lock once holds have become short. */
export async function drain(
  acquire: Acquire,
  waiters: number,
  typicalMs: number,
  holdMs: number,
): Promise<number> {
  const times: number[] = [];
  for (const seed of [...seeds, 4, 5]) {
    const world = new VirtualWorld(seed);
    await teach(world, acquire, typicalMs);
    const holder = await world.settle(acquire(world.process("holder").client));
    const ends: Promise<void>[] = [];
    for (let index = 0; index < waiters; index += 1) {
      const use = async (): Promise<void> => {
        const lease = await acquire(world.process(`w${index}`).client);
        await world.sleep(holdMs);
        await lease.release();
      };
      ends.push(use());
      await world.sleepFor(10);
    }
    await world.sleepFor(typicalMs);
    const releasedAt = world.clock.monotonic();
    void holder.release();
    await world.settle(Promise.all(ends));
    times.push(world.clock.monotonic() - releasedAt);
  }
  return Math.max(...times);
}

/** How long the lock stays idle when those in front give up while it is held, and then it is released. */
export async function giveUps(
  acquire: Acquire,
  waiters: number,
  leaving: number,
  holdMs: number,
): Promise<number> {
  const idles: number[] = [];
  for (const seed of [...seeds, 4, 5]) {
    const world = new VirtualWorld(seed);
    await teach(world, acquire, holdMs);
    const holder = await world.settle(acquire(world.process("holder").client));
    const giveUp = new AbortController();
    const waits: Promise<Lease>[] = [];
    for (let index = 0; index < waiters; index += 1) {
      const signal = index < leaving ? giveUp.signal : undefined;
      const wait = acquire(world.process(`w${index}`).client, signal);
      wait.catch(() => undefined);
      waits.push(wait);
      await world.sleepFor(10);
    }
    await world.sleepFor(holdMs * 0.9 * world.random.fraction());
    giveUp.abort(new Error("no more"));
    await world.sleepFor(100);
    const releasedAt = world.clock.monotonic();
    void holder.release();
    await world.settle(Promise.race(waits.slice(leaving)));
    idles.push(world.clock.monotonic() - releasedAt);
  }
  return Math.max(...idles);
}

/** What a caller sends that waits alone through a very long hold. */
export async function longHold(
  acquire: Acquire,
  typicalMs: number | undefined,
  holdMs: number,
): Promise<{ reads: number; writes: number }> {
  const world = new VirtualWorld(1);
  if (typicalMs !== undefined) await teach(world, acquire, typicalMs);
  const holder = await world.settle(
    world.process("holder").client.acquire("k", { leaseDurationMs: 2 * holdMs }),
  );
  const waiting = acquire(world.process("head").client);
  const before = { ...world.sent };
  await world.sleepFor(holdMs);
  const { reads, writes } = world.sent;
  void holder.release();
  await world.settle(waiting);
  return { reads: reads - before.reads, writes: writes - before.writes };
}

/** How many permits a second a semaphore gives among three times as many callers. */
export async function permits(acquire: Acquire, callers: number, hold: Hold): Promise<number> {
  const seconds = 20;
  const world = new VirtualWorld(1);
  let [given, isOver] = [0, false];
  const run = async (owner: string): Promise<void> => {
    const { client } = world.process(owner);
    while (!isOver) {
      const lease = await acquire(client);
      given += 1;
      await world.sleep(hold(world));
      // The next acquisition comes after the release, as in a program; sent beside it, the two would race in one process.
      await lease.release();
    }
  };
  for (let index = 0; index < callers; index += 1) void run(`p${index}`);
  await world.sleepFor(5_000);
  given = 0;
  await world.sleepFor(seconds * 1000);
  isOver = true;
  return given / seconds;
}
