import {
  type CallOptions,
  type Clock,
  type Item,
  type Lease,
  LeaseClient,
  LeaseServiceError,
  type LeaseStore,
  LeaseUnavailableError,
  type QueryRequest,
  type ScanPage,
  type UpdateRequest,
  type UpdateResult,
} from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Semaphore } from "../../packages/client/src/semaphore/index.ts";

const leaseDurationMs = 5_000;
const clockSkewMs = 500;
const callers = 5;

/** What a run draws at random besides the steps: how long requests take, and which go astray. */
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

/** The table behind a network: requests take time, arrive out of order, and one in ten is lost with its answer or before. */
class FarTable implements Pick<LeaseStore, "update" | "updateMany" | "query"> {
  readonly tableName = "far";
  readonly #table: MemoryLeaseStore;
  readonly #clock: ManualClock;
  readonly #draw: Draw;
  readonly #aheadMs: number;
  readonly #onGrant: (item: Item) => void;
  /** Of a process that has died nothing arrives any more, and it hears of nothing. */
  isCut = false;

  constructor(
    table: MemoryLeaseStore,
    clock: ManualClock,
    draw: Draw,
    aheadMs: number,
    onGrant: (item: Item) => void,
  ) {
    this.#table = table;
    this.#clock = clock;
    this.#draw = draw;
    this.#aheadMs = aheadMs;
    this.#onGrant = onGrant;
  }

  async update(request: UpdateRequest, { signal }: CallOptions): Promise<UpdateResult> {
    const fate = this.#draw();
    await this.#travel(signal);
    if (fate < 0.05 || this.isCut) throw new LeaseServiceError("LEASE_NO_ANSWER", "the request was lost");
    const before = this.#table.peek(request.key)?.[attributeNames.token];
    const result = this.#table.updateNow(request);
    const after = this.#table.peek(request.key);
    if (result.applied && after?.[attributeNames.token] !== undefined) {
      if (after[attributeNames.token] !== before) this.#onGrant(after);
    }
    if (fate < 0.1) throw new LeaseServiceError("LEASE_NO_ANSWER", "the answer was lost");
    await this.#travel(signal);
    const offset = { minMs: -this.#aheadMs, maxMs: -this.#aheadMs };
    return { ...result, offset };
  }

  async updateMany(requests: readonly UpdateRequest[], call: CallOptions): Promise<UpdateResult[]> {
    return await Promise.all(requests.map((request) => this.update(request, call)));
  }

  async query(request: QueryRequest, call: CallOptions): Promise<ScanPage> {
    await this.#travel(call.signal);
    if (this.isCut) throw new LeaseServiceError("LEASE_NO_ANSWER", "nobody hears");
    const page = await this.#table.query(request, call);
    await this.#travel(call.signal);
    return page;
  }

  /** Up to 300 ms; a request that was cut off travels on. */
  #travel(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#clock.schedule(resolve, this.#draw() * 300);
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
      caller: fc.nat(callers - 1),
      waitMs: fc.constantFrom(0, 0, 4_000, 9_000),
      heartbeat: fc.boolean(),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("release" as const), which: fc.nat(100) }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 3_000 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("freeze" as const), ms: fc.integer({ min: 1, max: 7_000 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("collect" as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Callers in processes of their own, whose wall clocks differ by up to the allowance. */
class World {
  readonly clock = new ManualClock();
  readonly table = new MemoryLeaseStore();
  readonly leases = new Set<Lease>();
  readonly faults: string[] = [];
  pending = 0;
  /** Whether the last two callers are reentrant. */
  readonly mayReenter: boolean;
  granted = 0;
  readonly #draw: Draw;
  readonly #fences = new Map<string, number>();
  readonly #tables: FarTable[] = [];

  constructor(seed: number, mayReenter: boolean) {
    this.mayReenter = mayReenter;
    this.#draw = drawsFrom(seed);
  }

  client(caller: number): LeaseClient {
    const aheadMs = ((caller % 3) - 1) * (clockSkewMs / 2);
    const onGrant = (item: Item): void => this.#noteGrant(item);
    const table = new FarTable(this.table, this.clock, this.#draw, aheadMs, onGrant);
    this.#tables.push(table);
    const store = table as unknown as LeaseStore;
    const clock: Clock = {
      now: () => this.clock.now() + aheadMs,
      monotonic: () => this.clock.monotonic(),
      schedule: (callback, delayMs) => this.clock.schedule(callback, delayMs),
    };
    let tokens = 0;
    const randomness = { token: () => `${caller}/${++tokens}/${this.#draw()}`, fraction: this.#draw };
    const owner = `caller ${caller}`;
    return new LeaseClient({ store, clock, owner, leaseDurationMs, clockSkewMs, randomness });
  }

  /** Does one step, and says whether callers may count on what they hold. */
  async take(one: Step, semaphores: readonly Semaphore[]): Promise<void> {
    if (one.kind === "acquire") this.#acquire(one, semaphores[one.caller]);
    else if (one.kind === "release") {
      const lease = [...this.leases][one.which % Math.max(1, this.leases.size)];
      if (lease !== undefined) this.leases.delete(lease);
      void lease?.release().catch(() => false);
    } else if (one.kind === "wait") await this.clock.advance(one.ms);
    else if (one.kind === "freeze") this.clock.freeze(one.ms);
    else this.table.collectGarbage(this.clock.now());
    await this.clock.advance(0);
  }

  /** Everybody dies, with whatever they hold and have under way. */
  killAll(): void {
    for (const table of this.#tables) table.isCut = true;
  }

  /** The leases that their holders may believe in; handles of one reentrant lease are one. */
  held(): Lease[] {
    const byToken = new Map([...this.leases].filter(({ held }) => held).map((lease) => [lease.token, lease]));
    return [...byToken.values()];
  }

  #acquire(one: Extract<Step, { kind: "acquire" }>, semaphore: Semaphore | undefined): void {
    const { caller, waitMs, heartbeat } = one;
    // A reentrant call takes over what its owner holds by others: whoever mixes them has two that believe in one permit.
    const reentrant = this.mayReenter && caller >= 3;
    this.pending += 1;
    semaphore
      ?.acquire({ waitMs, heartbeat, reentrant })
      .then(
        (lease) => {
          this.granted += 1;
          this.leases.add(lease);
        },
        (error: unknown) => {
          const isExpected = error instanceof LeaseUnavailableError || error instanceof LeaseServiceError;
          if (!isExpected) this.faults.push(String(error));
        },
      )
      .finally(() => {
        this.pending -= 1;
      });
  }

  #noteGrant(item: Item): void {
    const place = String(item[attributeNames.sortKey]);
    const fence = Number(item[attributeNames.fence]);
    const before = this.#fences.get(place) ?? 0;
    if (fence <= before) this.faults.push(`${place}: fencing token ${fence} after ${before}`);
    this.#fences.set(place, fence);
  }
}

/** Everybody dies: after a lease and the allowance for skew, a newcomer gets every permit. */
async function expectAllToHeal(world: World, permits: number): Promise<void> {
  world.killAll();
  // The newcomer's clock is right, and a dead holder's may have been ahead by half the allowance.
  await world.clock.advance(leaseDurationMs + 1.5 * clockSkewMs + 1);
  const newcomer = new Semaphore(world.client(1), "k", { permits });
  const got: Lease[] = [];
  for (let count = 0; count < permits; count += 1) {
    void newcomer.acquire({ waitMs: 30_000, heartbeat: 1_000 }).then((lease) => got.push(lease));
  }
  await world.clock.advance(30_000);
  expect(got.filter(({ held }) => held)).toHaveLength(permits);
}

describe("a semaphore under delays, lost answers, freezes and clocks that differ", () => {
  it("never has more than N holders, grows its fencing tokens, and leaves nothing stuck", async () => {
    let granted = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        fc.integer({ min: 1, max: 4 }),
        fc.array(step, { minLength: 20, maxLength: 60 }),
        async (seed, permits, steps) => {
          const world = new World(seed, true);
          const semaphores = Array.from(
            { length: callers },
            (_, caller) => new Semaphore(world.client(caller), "k", { permits }),
          );
          for (const one of steps) {
            await world.take(one, semaphores);
            expect(world.held().length).toBeLessThanOrEqual(permits);
          }
          expect(world.faults).toEqual([]);
          granted += world.granted;
          await expectAllToHeal(world, permits);
          expect(world.pending).toBe(0);
        },
      ),
      { seed: 1, numRuns: 60 },
    );
    // The property is empty where nobody gets anything.
    expect(granted).toBeGreaterThan(300);
  });

  it("after N was lowered, strict callers and those of before together never exceed it once they fit", async () => {
    let granted = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        fc.array(step, { minLength: 40, maxLength: 120 }),
        async (seed, steps) => {
          const [many, few] = [6, 3];
          const world = new World(seed, false);
          const before = new Semaphore(world.client(0), "k", { permits: many });
          for (let count = 0; count < many; count += 1) {
            const acquire = { kind: "acquire", caller: 0, waitMs: 9_000, heartbeat: true } as const;
            await world.take(acquire, [before]);
          }
          await world.clock.advance(10_000);
          expect(world.pending).toBe(0);
          const old = new Set(world.held().map(({ token }) => token));
          const semaphores = Array.from(
            { length: callers },
            (_, caller) => new Semaphore(world.client(caller), "k", { permits: few, strict: true }),
          );
          world.granted = 0;
          for (const one of steps) {
            await world.take(one, semaphores);
            const held = world.held();
            const stillOld = held.filter(({ token }) => old.has(token)).length;
            expect(held.length).toBeLessThanOrEqual(Math.max(few, stillOld));
          }
          expect(world.faults).toEqual([]);
          granted += world.granted;
        },
      ),
      { seed: 2, numRuns: 60 },
    );
    expect(granted).toBeGreaterThan(100);
  });
});
