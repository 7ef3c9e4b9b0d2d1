import { type Lease, type LeaseClient, LeaseServiceError, LeaseUnavailableError } from "@leasehold/client";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Semaphore } from "../../packages/client/src/semaphore/index.ts";
import {
  clockSkewMs,
  leaseDurationMs,
  type Mishap,
  mishaps,
  SimulatedWorld,
  type Tally,
} from "../support/simulated-world.ts";
import { expectToHaveHappened, runs } from "../support/simulations.ts";

const callers = 5;
/** One more, which is there before the others. */
const before = callers;

type Step =
  | Mishap
  | {
      readonly kind: "acquire";
      readonly caller: number;
      readonly waitMs: number;
      readonly heartbeat: boolean;
      /** Where the caller may be. */
      readonly reentrant: boolean;
    }
  | { readonly kind: "release"; readonly which: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("acquire" as const),
      caller: fc.nat(callers - 1),
      waitMs: fc.constantFrom(0, 0, 4_000, 9_000),
      heartbeat: fc.boolean(),
      reentrant: fc.boolean(),
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("release" as const), which: fc.nat(100) }) },
  ...mishaps(callers, 7_000),
);

/** How a run of steps is set up. */
interface Setting {
  readonly permitsOf: (caller: number) => number;
  /** Whether the last two callers come reentrantly, now and then. */
  readonly mayReenter: boolean;
  /** Whether callers are let in as they came. @default false */
  readonly fair?: boolean;
}

/** Callers in processes of their own, and the leases that they may believe in. */
class Callers {
  readonly world: SimulatedWorld<Semaphore>;
  readonly leases = new Set<Lease>();
  readonly #setting: Setting;
  /** How many may believe in a permit at this moment. */
  mostHolders = (): number => Number.POSITIVE_INFINITY;

  constructor(seed: number, tally: Tally, setting: Setting) {
    this.#setting = setting;
    this.world = new SimulatedWorld(seed, tally, {
      processes: callers + 1,
      begin: (client, _, caller) => this.#semaphore(client, caller),
      onChange: () => this.#check(),
    });
  }

  async take(one: Step): Promise<void> {
    if (one.kind === "acquire") this.acquire(one);
    else if (one.kind === "release") {
      const lease = [...this.leases][one.which % Math.max(1, this.leases.size)];
      if (lease !== undefined) this.leases.delete(lease);
      void lease?.release().catch(() => false);
    } else await this.world.befall(one);
    await this.world.clock.advance(0);
  }

  acquire({ caller, waitMs, heartbeat, reentrant }: Omit<Extract<Step, { kind: "acquire" }>, "kind">): void {
    const running = this.world.processes[caller];
    if (running === undefined) return;
    const call = running.parts.acquire({
      waitMs,
      heartbeat,
      owner: running.process.name,
      reentrant: reentrant && this.#setting.mayReenter && caller >= 3,
    });
    this.world.watch(running, call, (lease) => this.#granted(lease), isExpected);
  }

  /** The leases that are believed in; handles of one reentrant lease are one. */
  held(): Lease[] {
    const held = [...this.leases].filter((lease) => lease.held);
    return [...new Map(held.map((lease) => [lease.token, lease])).values()];
  }

  #semaphore(client: LeaseClient, caller: number): Semaphore {
    const { permitsOf, mayReenter, fair = false } = this.#setting;
    // A strict semaphore takes no reentrant calls.
    return new Semaphore(client, "k", {
      permits: permitsOf(caller),
      strict: !mayReenter && caller !== before,
      fair,
    });
  }

  #granted(lease: Lease): void {
    this.world.count("granted");
    this.leases.add(lease);
    this.#check();
  }

  #check(): void {
    const [holders, most] = [this.held().length, this.mostHolders()];
    if (holders > most) this.world.fault(`${holders} hold one of ${most} permits`);
  }
}

function isExpected(error: unknown): boolean {
  return error instanceof LeaseUnavailableError || error instanceof LeaseServiceError;
}

/** Everybody dies: after a lease and the allowance for skew, a newcomer gets every permit. */
async function expectAllToHeal(all: Callers, permits: number, waitMs = 30_000): Promise<void> {
  const { world } = all;
  world.killAll();
  await world.clearUp();
  all.leases.clear();
  // The newcomer's clock is right, and a dead holder's may have been ahead by half the allowance.
  await world.clock.advance(leaseDurationMs + 1.5 * clockSkewMs + 1);
  for (let count = 0; count < permits; count += 1) {
    all.acquire({ caller: 1, waitMs, heartbeat: true, reentrant: true });
  }
  await world.clock.advance(waitMs);
  world.check();
  expect([all.held().length, world.pending]).toEqual([permits, 0]);
}

/** The places of those who died in a fair semaphore's queue last for as long as they meant to sleep, and 10 s. */
const healsInMs = 60_000;

const weather = ["death", "request lost", "answer lost", "sent twice", "late arrival"] as const;

describe("a semaphore under delays, lost and late answers, freezes, deaths and clocks that differ", () => {
  it("never has more than N holders, grows its fencing tokens, and leaves nothing stuck", async () => {
    const tally: Tally = {};
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        fc.integer({ min: 1, max: 4 }),
        fc.array(step, { minLength: 20, maxLength: 60 }),
        async (seed, permits, steps) => {
          const all = new Callers(seed, tally, { permitsOf: () => permits, mayReenter: true });
          all.mostHolders = () => permits;
          for (const one of steps) {
            await all.take(one);
            all.world.check();
          }
          await expectAllToHeal(all, permits);
        },
      ),
      { seed: 1, numRuns: runs(150) },
    );
    expectToHaveHappened(tally, ...weather, "granted", "takeover", "ttl removed an item");
    // The property is empty where nobody gets anything.
    expect(tally.granted).toBeGreaterThan(1_000);
  });

  it("and the same where it is fair, whoever dies, freezes or is cut off in its queue", async () => {
    const tally: Tally = {};
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        fc.integer({ min: 1, max: 3 }),
        fc.array(step, { minLength: 20, maxLength: 60 }),
        async (seed, permits, steps) => {
          const all = new Callers(seed, tally, { permitsOf: () => permits, mayReenter: true, fair: true });
          all.mostHolders = () => permits;
          for (const one of steps) {
            await all.take(one);
            all.world.check();
          }
          await expectAllToHeal(all, permits, healsInMs);
        },
      ),
      { seed: 3, numRuns: runs(100) },
    );
    expectToHaveHappened(tally, ...weather, "granted", "takeover", "ttl removed an item");
    expect(tally.granted).toBeGreaterThan(400);
  });

  it("after N was lowered, strict callers and those of before together never exceed it once they fit", async () => {
    const tally: Tally = {};
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        fc.array(step, { minLength: 40, maxLength: 120 }),
        async (seed, steps) => {
          const [many, few] = [6, 3];
          const permitsOf = (caller: number): number => (caller === before ? many : few);
          const all = new Callers(seed, tally, { permitsOf, mayReenter: false });
          for (let count = 0; count < many; count += 1) {
            await all.take({
              kind: "acquire",
              caller: before,
              waitMs: 9_000,
              heartbeat: true,
              reentrant: false,
            });
          }
          await all.world.clock.advance(15_000);
          expect(all.world.pending).toBe(0);
          const old = new Set(all.held().map(({ token }) => token));
          all.mostHolders = () => Math.max(few, all.held().filter(({ token }) => old.has(token)).length);
          for (const one of steps) {
            await all.take(one);
            all.world.check();
          }
        },
      ),
      { seed: 2, numRuns: runs(100) },
    );
    expectToHaveHappened(tally, ...weather, "granted", "takeover");
    expect(tally.granted).toBeGreaterThan(600);
  });
});
