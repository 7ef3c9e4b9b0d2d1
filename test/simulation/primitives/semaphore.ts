import { type Lease, type LeaseClient, LeaseServiceError, LeaseUnavailableError } from "@leasehold/client";
import fc from "fast-check";
import { Semaphore } from "../../../packages/client/src/semaphore/index.ts";
import { Cluster, clockSkewMs, leaseDurationMs, type Mishap, mishaps } from "../cluster.ts";
import { type Simulation, stepByStep } from "../simulation.ts";
import type { World } from "../world.ts";

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
  readonly world: Cluster<Semaphore>;
  readonly leases = new Set<Lease>();
  readonly #setting: Setting;
  /** How many may believe in a permit at this moment. */
  mostHolders = (): number => Number.POSITIVE_INFINITY;

  constructor(world: World, setting: Setting) {
    this.#setting = setting;
    this.world = new Cluster(world, {
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
  await world.clock.advance(leaseDurationMs + 1.5 * clockSkewMs + 10);
  for (let count = 0; count < permits; count += 1) {
    all.acquire({ caller: 1, waitMs, heartbeat: true, reentrant: true });
  }
  await world.clock.advance(waitMs + 1_000);
  const held = all.held().length;
  if (held !== permits) world.fault(`${held} of ${permits} permits were to be had`);
  if (world.pending > 0) world.fault(`${world.pending} calls have not settled`);
}

/** The places of those who died in a fair semaphore's queue last for as long as they meant to sleep, and 10 s. */
const healsInMs = 60_000;

const misfortunes = { death: 1, "request lost": 1, "answer lost": 1, "sent twice": 1, "late arrival": 1 };

/** As many permits as chance has it. */
function withPermits(most: number, fair: boolean): Simulation["play"] {
  return stepByStep({
    step,
    fewestSteps: 20,
    mostSteps: 60,
    make: (world) => {
      const permits = world.random.integer(1, most);
      const all = new Callers(world, { permitsOf: () => permits, mayReenter: true, fair });
      all.mostHolders = () => permits;
      return all;
    },
    end: (all) => expectAllToHeal(all, all.mostHolders(), fair ? healsInMs : undefined),
  });
}

const plain: Simulation = {
  name: "semaphore",
  claim: "a semaphore never has more than N holders, grows its fencing tokens, and leaves nothing stuck",
  worlds: 150,
  // The simulation is empty where nobody gets anything.
  mustHappen: { ...misfortunes, takeover: 1, "ttl removed an item": 1, granted: 800 },
  mistakes: [],
  play: withPermits(4, false),
};

const fair: Simulation = {
  name: "semaphore:fair",
  claim: "the same where it is fair, whoever dies, freezes or is cut off in its queue",
  worlds: 100,
  mustHappen: { ...misfortunes, takeover: 1, "ttl removed an item": 1, granted: 400 },
  mistakes: [],
  play: withPermits(3, true),
};

const [many, few] = [6, 3];

/** Those of before let go one by one: as long as more than N are left, nobody else comes in. */
const lowered: Simulation = {
  name: "semaphore:lowered",
  claim: "after N was lowered, strict callers and those of before together never exceed it once they fit",
  worlds: 100,
  mustHappen: { ...misfortunes, takeover: 1, granted: 600 },
  mistakes: [],
  play: stepByStep<Step, Callers>({
    step,
    fewestSteps: 40,
    mostSteps: 120,
    opening: Array.from({ length: many }, () => ({
      kind: "acquire",
      caller: before,
      waitMs: 9_000,
      heartbeat: true,
      reentrant: false,
    })),
    make: (world) =>
      new Callers(world, { permitsOf: (caller) => (caller === before ? many : few), mayReenter: false }),
    begin: async (all) => {
      await all.world.clock.advance(15_000);
      const old = new Set(all.held().map(({ token }) => token));
      all.mostHolders = () => Math.max(few, all.held().filter(({ token }) => old.has(token)).length);
    },
    end: async () => undefined,
  }),
};

export const semaphore: readonly Simulation[] = [plain, fair, lowered];
