import { type Lease, type LeaseClient, LeaseServiceError, LeaseUnavailableError } from "@leasehold/client";
import fc from "fast-check";
import { ReadWriteLock } from "../../../packages/client/src/read-write/index.ts";
import { Cluster, clockSkewMs, leaseDurationMs, type Mishap, mishaps, type Running } from "../cluster.ts";
import type { Weather } from "../network.ts";
import { Random } from "../random.ts";
import { type Simulation, stepByStep } from "../simulation.ts";
import type { World } from "../world.ts";

const callers = 6;

type Step =
  | Mishap
  | {
      readonly kind: "acquire";
      readonly caller: number;
      readonly writes: boolean;
      readonly waitMs: number;
      readonly heartbeat: boolean;
    }
  | { readonly kind: "release"; readonly which: number };

const step: fc.Arbitrary<Step> = fc.oneof(
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
  ...mishaps(callers),
);

interface Caller {
  readonly lock: ReadWriteLock;
  readonly leases: Map<Lease, "read" | "write">;
}

/** Readers and writers in processes of their own. */
class Company {
  readonly world: Cluster<Caller>;

  constructor(world: World, weather?: Weather) {
    // Few places, so that readers meet at them.
    const random = new Random(world.seed + 1);
    let tokens = 0;
    const randomness = {
      token: () => `token ${++tokens}`,
      fraction: () => random.integer(0, 3) / 256,
    };
    this.world = new Cluster<Caller>(world, {
      processes: callers,
      begin: (client: LeaseClient) => ({ lock: new ReadWriteLock(client, "k"), leases: new Map() }),
      onChange: () => this.check(),
      client: { randomness },
      weather,
    });
  }

  async take(one: Step): Promise<void> {
    if (one.kind === "acquire") this.acquire(one);
    else if (one.kind === "release") this.#release(one.which);
    else await this.world.befall(one);
    await this.world.clock.advance(0);
  }

  acquire({ caller, writes, waitMs, heartbeat }: Omit<Extract<Step, { kind: "acquire" }>, "kind">): void {
    const running = this.world.processes[caller];
    if (running === undefined) return;
    const kind = writes ? "write" : "read";
    const call = running.parts.lock[kind]({ waitMs, heartbeat });
    this.world.watch(running, call, (lease) => this.granted(running, lease, kind), isExpected);
  }

  granted({ parts }: Running<Caller>, lease: Lease, kind: "read" | "write"): void {
    this.world.count(kind);
    parts.leases.set(lease, kind);
    this.check();
  }

  check(): void {
    const all = this.world.processes.flatMap(({ parts }) => [...parts.leases]);
    const held = all.filter(([lease]) => lease.held);
    const writers = held.filter(([, kind]) => kind === "write").length;
    if (writers > 1 || (writers === 1 && held.length > 1)) {
      this.world.fault(`${writers} writers beside ${held.length - writers} readers`);
    }
    if (writers === 0 && held.length > 1) this.world.count("together");
  }

  #release(which: number): void {
    const all = this.world.processes.flatMap(({ parts }) =>
      [...parts.leases.keys()].map((lease) => ({ lease, leases: parts.leases })),
    );
    const one = all[which % Math.max(1, all.length)];
    one?.leases.delete(one.lease);
    void one?.lease.release().catch(() => false);
  }
}

function isExpected(error: unknown): boolean {
  return error instanceof LeaseUnavailableError || error instanceof LeaseServiceError;
}

/** Everybody dies: a newcomer gets the write lock, and the read lock after it. */
async function expectAllToHeal(company: Company): Promise<void> {
  const { world } = company;
  world.killAll();
  await world.clearUp();
  await world.clock.advance(leaseDurationMs + 1.5 * clockSkewMs + 10);
  const newcomer = world.processes[1]?.parts;
  for (const writes of [true, false]) {
    company.acquire({ caller: 1, writes, waitMs: 60_000, heartbeat: true });
    await world.clock.advance(20_000);
    const leases = [...(newcomer?.leases.keys() ?? [])];
    if (!leases.some(({ held }) => held)) world.fault(`stuck for ${writes ? "writers" : "readers"}`);
    for (const lease of leases) void lease.release().catch(() => false);
    await world.clock.advance(3_000);
  }
  if (world.pending > 0) world.fault(`${world.pending} calls have not settled`);
}

const alone: Simulation = {
  name: "read-write",
  claim:
    "a read-write lock never has a live writer beside anybody, counts its writers up, and leaves nothing stuck",
  worlds: 120,
  mustHappen: {
    death: 1,
    takeover: 1,
    "request lost": 1,
    "answer lost": 1,
    "sent twice": 1,
    "late arrival": 1,
    // The simulation is empty where nobody gets anything, or readers never share.
    read: 400,
    write: 120,
    together: 100,
  },
  mistakes: [],
  play: stepByStep({ step, mostSteps: 80, make: (world) => new Company(world), end: expectAllToHeal }),
};

/** Rough, but not so that hardly a request is answered in time. */
const fairWeather: Weather = {
  requestLost: 0.05,
  answerLost: 0.05,
  slow: 0.03,
  usualMs: 150,
  throttled: 0,
  conflict: 0,
};

/** A new reader every 150 ms; each stays for up to 2 s, so that there is never a moment without one. */
async function readAllTheTime(world: World): Promise<void> {
  const company = new Company(world, fairWeather);
  const { processes, clock } = company.world;
  const random = new Random(world.seed + 2);
  const writesAt = 4_950;
  for (let elapsed = 0; elapsed < 40_000; elapsed += 150) {
    if (elapsed === writesAt) {
      const since = world.now;
      const lock = processes[0]?.parts.lock;
      void lock?.write({ waitMs: 30_000, retry: { strategy: "fixed", delayMs: 200 } }).then(
        (lease) => {
          // A reader whose release is lost ends with its lease. A writer may lose its gate, when one renewal after the other
          // gets no answer, and then has later readers to wait for.
          const isLate = world.now - since >= 2 * (leaseDurationMs + clockSkewMs) + 5_000;
          world.count(isLate ? "a writer that lost its gate" : "a writer in time");
          void lease.release().catch(() => false);
        },
        (error: unknown) => {
          if (error instanceof LeaseServiceError) world.count("a writer without an answer");
          else world.fault(String(error));
        },
      );
    }
    const running = processes[random.integer(1, callers - 1)];
    const stayMs = random.between(0, 2_000);
    void running?.parts.lock.tryRead().then(
      (lease) => {
        if (lease === undefined) return;
        company.granted(running, lease, "read");
        clock.schedule(() => void lease.release().catch(() => false), stayMs);
      },
      () => undefined,
    );
    await clock.advance(150);
    world.check();
  }
  const ends = ["a writer in time", "a writer that lost its gate", "a writer without an answer"];
  if (!ends.some((end) => world.tally[end] === 1)) world.fault("the writer was never let in");
  if ((world.tally.read ?? 0) <= 20) world.fault(`${world.tally.read} readers were let in`);
}

const crowded: Simulation = {
  name: "read-write:crowded",
  claim: "the same while readers keep coming: a writer gets in within the readers' time and its own looks",
  worlds: 12,
  mustHappen: { "a writer in time": 9 },
  mistakes: [],
  play: readAllTheTime,
};

export const readWrite: readonly Simulation[] = [alone, crowded];
