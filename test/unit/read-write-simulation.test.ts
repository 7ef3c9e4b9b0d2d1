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
  type QueryRequest,
  type ScanPage,
  type UpdateRequest,
  type UpdateResult,
} from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ReadWriteLock, writerPlace } from "../../packages/client/src/read-write/index.ts";

const leaseDurationMs = 5_000;
const clockSkewMs = 500;
const callers = 6;
/** By how much a read that is not consistent may lag. */
const lagMs = 2_000;

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

/** The table, and what it was: every state with the time at which it ended. */
class Past {
  readonly table = new MemoryLeaseStore();
  readonly #clock: ManualClock;
  readonly #items = new Map<string, { readonly until: number; readonly item: Item | undefined }[]>();

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  update(request: UpdateRequest): UpdateResult {
    const before = this.table.peek(request.key);
    const result = this.table.updateNow(request);
    if (result.applied) {
      const past = this.#items.get(request.key.sk) ?? [];
      past.push({ until: this.#clock.monotonic(), item: before });
      this.#items.set(request.key.sk, past);
    }
    return result;
  }

  /** The item as it was some time ago. */
  at(sortKey: string, agoMs: number): Item | undefined {
    const then = this.#clock.monotonic() - agoMs;
    const state = this.#items.get(sortKey)?.find(({ until }) => until > then);
    return state === undefined ? this.table.peek({ pk: "k", sk: sortKey }) : state.item;
  }

  get sortKeys(): string[] {
    return [...this.#items.keys()].sort();
  }
}

/** The table behind a network: requests take time, arrive out of order, and one in ten is lost with its answer or before. */
class FarTable implements Pick<LeaseStore, "update" | "updateMany" | "query" | "get"> {
  readonly tableName = "far";
  readonly #past: Past;
  readonly #clock: Clock;
  readonly #draw: Draw;
  readonly #aheadMs: number;
  readonly #onGrant: (item: Item) => void;
  /** Of a process that has died nothing arrives any more, and it hears of nothing. */
  isCut = false;

  constructor(past: Past, clock: Clock, draw: Draw, aheadMs: number, onGrant: (item: Item) => void) {
    this.#past = past;
    this.#clock = clock;
    this.#draw = draw;
    this.#aheadMs = aheadMs;
    this.#onGrant = onGrant;
  }

  async update(request: UpdateRequest, { signal }: CallOptions): Promise<UpdateResult> {
    const fate = this.#draw();
    await this.#travel(signal);
    if (fate < 0.05) throw new LeaseServiceError("LEASE_NO_ANSWER", "the request was lost");
    const before = this.#past.table.peek(request.key)?.[attributeNames.token];
    const result = this.#past.update(request);
    const after = this.#past.table.peek(request.key);
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

  async get({ key, consistent }: GetRequest, { signal }: CallOptions): Promise<Item | undefined> {
    await this.#travel(signal);
    const item = this.#past.at(key.sk, this.#lagMs(consistent));
    await this.#travel(signal);
    return item;
  }

  /** Item by item, each at a moment of its own: a query is no snapshot. */
  async query(request: QueryRequest, { signal }: CallOptions): Promise<ScanPage> {
    await this.#travel(signal);
    const items: Item[] = [];
    for (const sortKey of this.#past.sortKeys) {
      const item = this.#past.at(sortKey, this.#lagMs(request.consistent));
      if (item !== undefined) items.push(item);
    }
    await this.#travel(signal);
    return { items };
  }

  #lagMs(consistent: boolean): number {
    return consistent ? 0 : this.#draw() * lagMs;
  }

  /** Up to 300 ms; a request that was cut off travels on, but not one of a process that has died. */
  async #travel(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#clock.schedule(resolve, this.#draw() * 300);
      const cut = (): void => reject(new LeaseServiceError("LEASE_NO_ANSWER", "cut off"));
      if (signal.aborted) cut();
      else signal.addEventListener("abort", cut, { once: true });
    });
    if (this.isCut) throw new LeaseServiceError("LEASE_NO_ANSWER", "nobody hears");
  }
}

const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("acquire" as const),
      caller: fc.nat(callers - 1),
      writes: fc.oneof(
        { weight: 2, arbitrary: fc.constant(false) },
        { weight: 1, arbitrary: fc.constant(true) },
      ),
      waitMs: fc.constantFrom(0, 0, 4_000, 12_000),
      heartbeat: fc.boolean(),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("release" as const), which: fc.nat(100) }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 3_000 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("freeze" as const), ms: fc.integer({ min: 1, max: 7_000 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("stall" as const),
      caller: fc.nat(callers - 1),
      ms: fc.integer({ min: 1, max: 9_000 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("kill" as const), caller: fc.nat(callers - 1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("collect" as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface Process {
  /** On the monotonic clock: until then its timers do not fire, and it hears of no answer. */
  stalledUntil: number;
  readonly lock: ReadWriteLock;
  readonly table: FarTable;
  readonly leases: Map<Lease, "read" | "write">;
}

/** Callers in processes of their own, whose wall clocks differ by up to the allowance. */
class World {
  readonly clock = new ManualClock();
  readonly past = new Past(this.clock);
  readonly faults: string[] = [];
  readonly processes: Process[];
  readonly granted = { read: 0, write: 0 };
  pending = 0;
  together = 0;
  readonly #draw: Draw;
  #writerFence = 0;

  constructor(seed: number) {
    this.#draw = drawsFrom(seed);
    this.processes = Array.from({ length: callers }, (_, caller) => this.start(caller));
  }

  start(caller: number): Process {
    const aheadMs = ((caller % 3) - 1) * (clockSkewMs / 2);
    const isStalled = (): boolean => this.clock.monotonic() < process.stalledUntil;
    const schedule: Clock["schedule"] = (callback, delayMs) => {
      let cancel = this.clock.schedule(fire, delayMs);
      const { clock } = this;
      function fire(): void {
        if (isStalled()) cancel = clock.schedule(fire, process.stalledUntil - clock.monotonic());
        else callback();
      }
      return () => cancel();
    };
    const clock: Clock = {
      now: () => this.clock.now() + aheadMs,
      monotonic: () => this.clock.monotonic(),
      schedule,
    };
    const table = new FarTable(this.past, clock, this.#draw, aheadMs, (item) => this.#noteGrant(item));
    const store = table as unknown as LeaseStore;
    // Few places, so that readers meet at them.
    const fraction = (): number => Math.floor(this.#draw() * 4) / 256;
    const randomness = { token: () => `${caller}/${this.#draw()}/${this.#draw()}`, fraction };
    const owner = `caller ${caller}`;
    const client = new LeaseClient({ store, clock, owner, leaseDurationMs, clockSkewMs, randomness });
    const lock = new ReadWriteLock(client, "k");
    const process: Process = { stalledUntil: 0, lock, table, leases: new Map() };
    return process;
  }

  async take(one: Step): Promise<void> {
    if (one.kind === "acquire") this.acquire(one);
    else if (one.kind === "release") this.#release(one.which);
    else if (one.kind === "wait") await this.advance(one.ms);
    else if (one.kind === "freeze") this.clock.freeze(one.ms);
    else if (one.kind === "kill") this.kill(one.caller);
    else if (one.kind === "stall") this.#stall(one.caller, one.ms);
    else this.past.table.collectGarbage(this.clock.now());
    await this.advance(0);
  }

  /** Looks at who believes in what all the time. */
  async advance(ms: number): Promise<void> {
    for (let left = ms; left >= 0; left -= 25) {
      await this.clock.advance(Math.min(left, 25));
      this.check();
    }
  }

  check(): void {
    const held = this.processes.flatMap(({ leases }) => [...leases].filter(([lease]) => lease.held));
    const writers = held.filter(([, kind]) => kind === "write").length;
    if (writers > 1 || (writers === 1 && held.length > 1)) {
      this.faults.push(`${writers} writers beside ${held.length - writers} readers`);
    }
    if (writers === 0 && held.length > 1) this.together += 1;
  }

  acquire(one: {
    readonly caller: number;
    readonly writes: boolean;
    readonly waitMs: number;
    readonly heartbeat: boolean;
  }): void {
    const { caller, writes, waitMs, heartbeat } = one;
    const process = this.processes[caller];
    if (process === undefined) return;
    this.pending += 1;
    const kind = writes ? "write" : "read";
    process.lock[kind]({ waitMs, heartbeat })
      .then(
        (lease) => {
          this.granted[kind] += 1;
          process.leases.set(lease, kind);
          this.check();
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

  /** What it holds is not given back, and nobody acts on it any more; another process starts in its stead. */
  kill(caller: number): void {
    const process = this.processes[caller];
    if (process !== undefined) process.table.isCut = true;
    this.processes[caller] = this.start(caller);
  }

  #stall(caller: number, ms: number): void {
    const process = this.processes[caller];
    if (process !== undefined) process.stalledUntil = this.clock.monotonic() + ms;
  }

  #release(which: number): void {
    const all = this.processes.flatMap(({ leases }) =>
      [...leases.keys()].map((lease) => ({ lease, leases })),
    );
    const one = all[which % Math.max(1, all.length)];
    one?.leases.delete(one.lease);
    void one?.lease.release().catch(() => false);
  }

  #noteGrant(item: Item): void {
    if (item[attributeNames.sortKey] !== writerPlace) return;
    const fence = Number(item[attributeNames.fence]);
    if (fence <= this.#writerFence) this.faults.push(`fencing token ${fence} after ${this.#writerFence}`);
    this.#writerFence = fence;
  }
}

describe("a read-write lock under delays, lost answers, lagging reads, stalls, deaths and clocks that differ", () => {
  it("never has a live writer beside anybody, counts its writers up, and leaves nothing stuck", async () => {
    const granted = { read: 0, write: 0, together: 0 };
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        fc.array(step, { minLength: 30, maxLength: 80 }),
        async (seed, steps) => {
          const world = new World(seed);
          for (const one of steps) {
            await world.take(one);
            expect(world.faults).toEqual([]);
          }
          granted.read += world.granted.read;
          granted.write += world.granted.write;
          granted.together += world.together;
          // Everybody dies: a newcomer gets the write lock, and another one the read lock after it.
          for (let caller = 0; caller < callers; caller += 1) world.kill(caller);
          await world.advance(leaseDurationMs + 1.5 * clockSkewMs + 1);
          for (const writes of [true, false]) {
            const before = world.granted;
            const wanted = before.read + before.write + 1;
            world.acquire({ caller: 1, writes, waitMs: 60_000, heartbeat: true });
            await world.advance(20_000);
            expect(world.granted.read + world.granted.write).toBe(wanted);
            const leases = [...(world.processes[1]?.leases.keys() ?? [])];
            expect(leases.some(({ held }) => held)).toBe(true);
            for (const lease of leases) void lease.release().catch(() => false);
            await world.advance(3_000);
          }
          await world.advance(20_000);
          expect([world.pending, world.faults]).toEqual([0, []]);
        },
      ),
      { seed: 1, numRuns: 120 },
    );
    // The property is empty where nobody gets anything, or readers never share.
    expect(granted.read).toBeGreaterThan(400);
    expect(granted.write).toBeGreaterThan(120);
    expect(granted.together).toBeGreaterThan(100);
  });

  it("lets every writer in within the readers' time and its own looks while readers keep coming", async () => {
    const waits: number[] = [];
    await fc.assert(
      fc.asyncProperty(fc.integer(), async (seed) => {
        const world = new World(seed);
        const draw = drawsFrom(seed + 1);
        let written = 0;
        // A new reader every 150 ms; each stays for up to 2 s, so that there is never a moment without one.
        for (let elapsed = 0; elapsed < 40_000; elapsed += 150) {
          if (elapsed === 5_000 - (5_000 % 150)) {
            const since = world.clock.monotonic();
            const lock = world.processes[0]?.lock;
            void lock?.write({ waitMs: 30_000, retry: { strategy: "fixed", delayMs: 200 } }).then(
              (lease) => {
                written += 1;
                waits.push(world.clock.monotonic() - since);
                void lease.release().catch(() => false);
              },
              (error: unknown) => world.faults.push(String(error)),
            );
          }
          const process = world.processes[1 + Math.floor(draw() * (callers - 1))];
          const stayMs = draw() * 2_000;
          void process?.lock.tryRead().then(
            (lease) => {
              if (lease === undefined) return;
              world.granted.read += 1;
              process.leases.set(lease, "read");
              world.clock.schedule(() => void lease.release().catch(() => false), stayMs);
            },
            () => undefined,
          );
          await world.advance(150);
        }
        expect([written, world.faults]).toEqual([1, []]);
        expect(world.granted.read).toBeGreaterThan(50);
      }),
      { seed: 2, numRuns: 12 },
    );
    // A reader whose release is lost ends with its lease.
    expect(Math.max(...waits)).toBeLessThan(2 * (leaseDurationMs + clockSkewMs) + 5_000);
  });
});
