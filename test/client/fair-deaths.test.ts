/** Waiters in line that die one after the other: for how long the dead keep the living out. */
import { type Item, type Lease, LeaseClient } from "@leasehold/client";
import { FairLock, fair } from "@leasehold/client/fair";
import { leaseItemKey } from "@leasehold/client/schema";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { ScriptedStore } from "../support/scripted-store.ts";

const clockSkewMs = 500;
/** What is promised: so long after a release, and after the last death, a living waiter is served. */
const promisedMs = 11_000 + clockSkewMs;
/** A living waiter looks so often while the lock is free. */
const lookMs = 1_000;
const waitMs = 3_600_000;

/** No waiter shortens its sleeps. */
const randomness = { token: () => crypto.randomUUID(), fraction: () => 0 };

let clock: ManualClock;
/** Holds the table, which all processes share. */
let store: ScriptedStore;
/** Who got a lease, and when, in milliseconds since `startedAt`. */
let served: Map<string, number>;
let startedAt: number;

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  served = new Map();
});

/** A process of its own, which may die. */
class Process {
  readonly store = new ScriptedStore(store.table);
  readonly client: LeaseClient;
  readonly owner: string;

  /** @param knowsTime whether answers tell it the service's time. */
  constructor(owner: string, knowsTime = true) {
    this.owner = owner;
    this.store.isLocal = knowsTime;
    const times = { leaseDurationMs: 30_000, clockSkewMs };
    this.client = new LeaseClient({ store: this.store, clock, owner, randomness, ...times });
  }

  lock(maxWaiters = 100): FairLock {
    return new FairLock(this.client, "k", { maxWaiters });
  }

  semaphore(permits: number): Semaphore {
    return new Semaphore(this.client, "k", { permits, order: fair() });
  }

  /** Waits until something has been acquired, and keeps it. */
  async waits(acquired: Promise<Lease>): Promise<this> {
    acquired.then(
      () => served.set(this.owner, clock.now() - startedAt),
      () => undefined,
    );
    await clock.advance(100);
    return this;
  }

  /** From now on nothing that it sends arrives. */
  die(): void {
    this.store.cutOff();
  }

  writes(): number {
    return this.store.count("update");
  }
}

async function line(...owners: string[]): Promise<Process[]> {
  const processes: Process[] = [];
  for (const owner of owners) {
    const process = new Process(owner);
    processes.push(await process.waits(process.lock().acquire({ waitMs, leaseDurationMs: 600_000 })));
  }
  return processes;
}

/** Holds the lock for a minute, so that all waiters expect long holds, and lets it go: time counts from then. */
async function holdAndRelease(begin: () => Promise<Process[]>): Promise<Process[]> {
  const first = await new Process("holder").lock().acquire({ leaseDurationMs: 600_000 });
  const processes = await begin();
  await clock.advance(60_000);
  processes[0]?.die();
  await first.release();
  startedAt = clock.now();
  return processes;
}

const itemNow = (sortKey?: string): Item => store.table.peek(leaseItemKey("k", sortKey)) ?? {};

describe("behind a head that is dead at the release, and a second waiter that dies later,", () => {
  it.each([0, 500, 1_500, 3_000, 6_000, 9_000, 11_000])(
    "the third has the lock in time: the second dies after %i ms",
    async (diesAfterMs) => {
      const [, second] = (await holdAndRelease(() => line("w1", "w2", "w3", "w4"))) as [Process, Process];
      await clock.advance(diesAfterMs);
      second.die();
      await clock.advance(promisedMs + lookMs);
      expect([...served.keys()]).toEqual(["w3"]);
    },
  );
});

describe("while the dead are waited for,", () => {
  it("the first living waiter writes each 4 s, and those behind it once at most", async () => {
    const processes = await holdAndRelease(() => line("w1", "w2", "w3", "w4", "w5", "w6"));
    const before = processes.map((process) => process.writes());
    await clock.advance(11_000);
    const written = processes.map((process, index) => process.writes() - (before[index] ?? 0));
    expect(written[1]).toBeGreaterThanOrEqual(2);
    expect(written[1]).toBeLessThanOrEqual(3);
    expect(Math.max(...written.slice(2))).toBeLessThanOrEqual(1);
  });

  it("a waiter behind a caller that has to check in writes only when that one's ticket ends", async () => {
    const desk = new Process("desk").lock();
    const first = await new Process("holder").lock().acquire();
    await desk.checkIn({ owner: "visitor", leaseDurationMs: 60_000 });
    const [behind] = (await line("w1")) as [Process];
    await first.release();
    await clock.advance(2_000);
    const before = behind.writes();
    await clock.advance(40_000);
    expect(behind.writes()).toBe(before);
    await clock.advance(20_000);
    expect([...served.keys()]).toEqual(["w1"]);
  });
});

describe("of a semaphore whose callers have numbers of their own,", () => {
  const comes = async (owner: string, permits: number, asks = 1): Promise<Lease | undefined> => {
    const process = new Process(owner);
    let got: Lease | undefined;
    const acquired = process.semaphore(permits).acquire({ permits: asks, waitMs, heartbeat: true });
    void acquired.then((lease) => {
      got = lease;
    });
    await process.waits(acquired);
    return got;
  };

  beforeEach(() => {
    startedAt = clock.now();
  });

  it("callers without a permit keep nobody out of a semaphore that nobody has used before", async () => {
    for (const owner of ["p1", "p2"]) await comes(owner, 0);
    await comes("a", 1);
    expect([...served.keys()]).toEqual(["a"]);
    expect(itemNow("semaphore").waiting).toBeUndefined();
  });

  it("callers without a permit keep nobody out that waits for a release, and have their refusal in the end", async () => {
    const held = await comes("x", 1);
    const paused = new Process("p").semaphore(0).acquire({ waitMs: 30_000 });
    const refused = expect(paused).rejects.toThrow("paused with permits: 0");
    await comes("a", 1);
    await held?.release();
    await clock.advance(2_000);
    expect([...served.keys()]).toEqual(["x", "a"]);
    await clock.advance(30_000);
    await refused;
  });
});

it("with one permit, a waiter behind the head looks as often as one for a lock", async () => {
  const looksOf = async (kind: "lock" | "semaphore"): Promise<number[]> => {
    store = new ScriptedStore();
    const begin = (process: Process): Promise<Lease> => {
      const options = { waitMs, leaseDurationMs: 600_000 };
      return kind === "lock" ? process.lock().acquire(options) : process.semaphore(1).acquire(options);
    };
    const first = await begin(new Process("holder"));
    const waiters = [new Process("w1"), new Process("w2"), new Process("w3")];
    for (const waiter of waiters) await waiter.waits(begin(waiter));
    await clock.advance(60_000);
    waiters[0]?.die();
    await first.release();
    await clock.advance(10_000);
    return waiters.slice(1).map((waiter) => waiter.store.count("get"));
  };
  expect(await looksOf("semaphore")).toEqual(await looksOf("lock"));
});
