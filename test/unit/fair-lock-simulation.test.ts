import {
  type CallOptions,
  type Clock,
  type GetRequest,
  type Item,
  type Lease,
  LeaseClient,
  LeaseServiceError,
  type LeaseStore,
  LeaseUnavailableError,
  type UpdateRequest,
  type UpdateResult,
} from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FairLock, QueueFullError } from "../../packages/client/src/fair/index.ts";
import { readQueue } from "../../packages/client/src/fair/queue.ts";
import { waiterId } from "../../packages/client/src/schema-fair.ts";

const leaseDurationMs = 5_000;
const clockSkewMs = 500;
const processes = 5;
const maxWaiters = 8;
/** A place lasts for at most a minute of sleep and its own lease beyond. */
const longestPlaceMs = 70_000;

type Draw = () => number;

function drawsFrom(seed: number): Draw {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The table behind a network: requests take time, overtake each other, and one in ten is lost, before or after it has landed. */
class FarTable implements Pick<LeaseStore, "update" | "updateMany" | "get"> {
  readonly tableName = "far";
  readonly #world: World;
  readonly #aheadMs: number;
  /** Of a process that has died nothing arrives any more, and it hears of nothing. */
  isCut = false;

  constructor(world: World, aheadMs: number) {
    this.#world = world;
    this.#aheadMs = aheadMs;
  }

  async update(request: UpdateRequest, { signal }: CallOptions): Promise<UpdateResult> {
    const fate = this.#world.draw();
    await this.#travel(signal);
    if (fate < 0.05 || this.isCut) throw new LeaseServiceError("LEASE_NO_ANSWER", "the request was lost");
    const before = this.#world.table.peek(request.key);
    const result = this.#world.table.updateNow(request);
    if (result.applied) this.#world.watch(before, this.#world.table.peek(request.key));
    if (fate < 0.1) throw new LeaseServiceError("LEASE_NO_ANSWER", "the answer was lost");
    await this.#travel(signal);
    return { ...result, offset: { minMs: -this.#aheadMs, maxMs: -this.#aheadMs } };
  }

  async updateMany(requests: readonly UpdateRequest[], call: CallOptions): Promise<UpdateResult[]> {
    return await Promise.all(requests.map((request) => this.update(request, call)));
  }

  async get({ key }: GetRequest, { signal }: CallOptions): Promise<Item | undefined> {
    await this.#travel(signal);
    if (this.isCut) throw new LeaseServiceError("LEASE_NO_ANSWER", "nobody hears");
    const item = this.#world.table.peek(key);
    await this.#travel(signal);
    return item;
  }

  /** Up to 300 ms; a request that was cut off travels on. */
  #travel(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#world.clock.schedule(resolve, this.#world.draw() * 300);
      const cut = (): void => reject(new LeaseServiceError("LEASE_NO_ANSWER", "cut off"));
      if (signal.aborted) cut();
      else signal.addEventListener("abort", cut, { once: true });
    });
  }
}

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("acquire" as const),
      process: fc.nat(processes - 1),
      waitMs: fc.constantFrom(0, 4_000, 30_000, 120_000),
      heartbeat: fc.boolean(),
    }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant("release" as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 4_000 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("freeze" as const), ms: fc.integer({ min: 1, max: 30_000 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("kill" as const), process: fc.nat(processes - 1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("giveUp" as const), which: fc.nat(50) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Processes whose wall clocks differ by up to the allowance, and what must hold of every write that lands. */
class World {
  readonly clock = new ManualClock();
  readonly table = new MemoryLeaseStore();
  readonly draw: Draw;
  readonly faults: string[] = [];
  readonly leases = new Set<Lease>();
  readonly #locks: { lock: FairLock; table: FarTable }[] = [];
  readonly #giveUps = new Set<AbortController>();
  #fence = 0;
  #tokens = 0;
  pending = 0;
  granted = 0;
  fromQueue = 0;
  passedOver = 0;

  constructor(seed: number) {
    this.draw = drawsFrom(seed);
    for (let process = 0; process < processes; process += 1) this.start(process);
  }

  /** Begins a process, in place of an earlier one that is dead then. */
  start(process: number): FairLock {
    const dead = this.#locks[process];
    if (dead !== undefined) dead.table.isCut = true;
    const aheadMs = ((process % 3) - 1) * (clockSkewMs / 2);
    const table = new FarTable(this, aheadMs);
    const clock: Clock = {
      now: () => this.clock.now() + aheadMs,
      monotonic: () => this.clock.monotonic(),
      schedule: (callback, delayMs) => this.clock.schedule(callback, delayMs),
    };
    const randomness = {
      token: () => `token ${String(++this.#tokens).padStart(10, "0")}`,
      fraction: this.draw,
    };
    const options = { clock, owner: `process ${process}`, leaseDurationMs, clockSkewMs, randomness };
    const client = new LeaseClient({ store: table as unknown as LeaseStore, ...options });
    const lock = new FairLock(client, "k", { maxWaiters });
    this.#locks[process] = { lock, table };
    return lock;
  }

  async take(one: Step): Promise<void> {
    if (one.kind === "acquire") this.#acquire(one);
    else if (one.kind === "release") {
      for (const lease of this.leases) void lease.release().catch(() => false);
      this.leases.clear();
    } else if (one.kind === "wait") await this.clock.advance(one.ms);
    else if (one.kind === "freeze") this.clock.freeze(one.ms);
    else if (one.kind === "kill") this.start(one.process);
    else [...this.#giveUps][one.which]?.abort(new LeaseUnavailableError("k", undefined, 0));
    await this.clock.advance(0);
  }

  killAll(): void {
    for (let process = 0; process < processes; process += 1) this.start(process);
  }

  held(): Lease[] {
    return [...this.leases].filter(({ held }) => held);
  }

  /** Judges a write that has landed: who was let in, and before whom. */
  watch(before: Item | undefined, after: Item | undefined): void {
    const [queue, left] = [readQueue(before), readQueue(after)];
    if (left.length !== Number(after?.waiting ?? 0)) this.faults.push("the count of places has drifted");
    const token = after?.[attributeNames.token];
    if (token === undefined || token === before?.[attributeNames.token]) return;
    this.granted += 1;
    const fence = Number(after?.[attributeNames.fence]);
    if (fence <= this.#fence) this.faults.push(`fencing token ${fence} after ${this.#fence}`);
    this.#fence = fence;
    const own = queue.find(({ id }) => id === waiterId(String(token)));
    if (own !== undefined) this.fromQueue += 1;
    const overtaken = left.filter(({ ticket }) => ticket < (own?.ticket ?? Number.POSITIVE_INFINITY));
    for (const { owner } of overtaken) this.faults.push(`${owner} was overtaken`);
    for (const place of queue) {
      if (place === own || left.some(({ id }) => id === place.id)) continue;
      this.passedOver += 1;
      const isOver = place.until <= this.clock.now() + clockSkewMs / 2;
      if (!isOver) this.faults.push(`${place.owner} was passed over while its place stood`);
    }
  }

  #acquire({ process, waitMs, heartbeat }: Extract<Step, { kind: "acquire" }>): void {
    const entry = this.#locks[process];
    const giveUp = new AbortController();
    this.#giveUps.add(giveUp);
    this.pending += 1;
    entry?.lock
      .acquire({ waitMs, heartbeat, signal: giveUp.signal })
      .then(
        (lease) => this.leases.add(lease),
        (error: unknown) => {
          const isExpected =
            error instanceof LeaseUnavailableError ||
            error instanceof LeaseServiceError ||
            error instanceof QueueFullError;
          if (!isExpected) this.faults.push(String(error));
        },
      )
      .finally(() => {
        this.pending -= 1;
        this.#giveUps.delete(giveUp);
      });
  }
}

describe("a fair lock under delays, lost answers, deaths, freezes and clocks that differ", () => {
  it("has one holder at most, overtakes nobody whose place stands, and leaves nothing stuck", async () => {
    let [granted, fromQueue, passedOver] = [0, 0, 0];
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        fc.array(step, { minLength: 30, maxLength: 90 }),
        async (seed, steps) => {
          const world = new World(seed);
          for (const one of steps) {
            await world.take(one);
            expect(world.held().length).toBeLessThanOrEqual(1);
          }
          world.killAll();
          await world.clock.advance(longestPlaceMs + leaseDurationMs + 2 * clockSkewMs);
          const got = world.start(1).acquire({ waitMs: 20_000, heartbeat: true });
          got.then(
            (lease) => world.leases.add(lease),
            () => world.faults.push("stuck"),
          );
          await world.clock.advance(20_500);
          expect(world.held()).toHaveLength(1);
          expect(world.faults).toEqual([]);
          await world.clock.advance(120_000);
          expect(world.pending).toBe(0);
          granted += world.granted;
          fromQueue += world.fromQueue;
          passedOver += world.passedOver;
        },
      ),
      { seed: 4, numRuns: 40 },
    );
    // The property is empty where nobody waits, gets anything or dies.
    expect(granted).toBeGreaterThan(150);
    expect(fromQueue).toBeGreaterThan(60);
    expect(passedOver).toBeGreaterThan(20);
  });
});
