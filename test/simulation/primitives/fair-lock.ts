import { type Item, type Lease, LeaseServiceError, LeaseUnavailableError } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import fc from "fast-check";
import { readQueue } from "../../../packages/client/src/fair/queue.ts";
import { FairLock, QueueFullError } from "../../../packages/client/src/fair-lock/index.ts";
import { waiterId } from "../../../packages/client/src/schema-fair.ts";
import { Cluster, clockSkewMs, leaseDurationMs, type Mishap, mishaps } from "../cluster.ts";
import { type Simulation, stepByStep } from "../simulation.ts";
import type { World } from "../world.ts";

const processes = 5;
const maxWaiters = 8;
/** A place lasts for at most a minute of sleep and its own lease beyond. */
const longestPlaceMs = 70_000;

type Step =
  | Mishap
  | {
      readonly kind: "acquire";
      readonly process: number;
      readonly waitMs: number;
      readonly heartbeat: boolean;
    }
  | { readonly kind: "release" }
  | { readonly kind: "giveUp"; readonly which: number };

const step: fc.Arbitrary<Step> = fc.oneof(
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
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("giveUp" as const), which: fc.nat(50) }) },
  ...mishaps(processes, 30_000),
);

/** Those who want one fair lock, and what must hold of every write that lands. */
class Queue {
  readonly world: Cluster<FairLock>;
  readonly leases = new Set<Lease>();
  readonly #giveUps = new Set<AbortController>();

  constructor(world: World) {
    this.world = new Cluster(world, {
      processes,
      suspends: false,
      begin: (client) => new FairLock(client, "k", { maxWaiters }),
      onChange: ([change]) => this.#watch(change?.before, change?.after),
    });
  }

  async take(one: Step): Promise<void> {
    if (one.kind === "acquire") this.acquire(one);
    else if (one.kind === "release") {
      for (const lease of this.leases) void lease.release().catch(() => false);
      this.leases.clear();
    } else if (one.kind === "giveUp") {
      [...this.#giveUps][one.which]?.abort(new LeaseUnavailableError("k", undefined, 0));
    } else await this.world.befall(one);
    await this.world.clock.advance(0);
  }

  acquire({ process, waitMs, heartbeat }: Omit<Extract<Step, { kind: "acquire" }>, "kind">): void {
    const running = this.world.processes[process];
    if (running === undefined) return;
    const giveUp = new AbortController();
    this.#giveUps.add(giveUp);
    const call = running.parts.acquire({ waitMs, heartbeat, signal: giveUp.signal });
    this.world.watch(running, call, (lease) => this.#granted(lease), isExpected);
    const forget = (): boolean => this.#giveUps.delete(giveUp);
    call.then(forget, forget);
  }

  held(): Lease[] {
    return [...this.leases].filter(({ held }) => held);
  }

  #granted(lease: Lease): void {
    this.leases.add(lease);
    this.#check();
  }

  #check(): void {
    const held = this.held();
    if (held.length > 1) this.world.fault(`${held.map(({ owner }) => owner)} hold it at once`);
  }

  /** Judges a write that has landed: who was let in, and before whom. */
  #watch(before: Item | undefined, after: Item | undefined): void {
    const { world } = this;
    this.#check();
    const [queue, left] = [readQueue(before), readQueue(after)];
    if (left.length !== Number(after?.waiting ?? 0)) world.fault("the count of places has drifted");
    const token = after?.[attributeNames.token];
    if (token === undefined || token === before?.[attributeNames.token]) return;
    const own = queue.find(({ id }) => id === waiterId(String(token)));
    if (own !== undefined) world.count("from the queue");
    const overtaken = left.filter(({ ticket }) => ticket < (own?.ticket ?? Number.POSITIVE_INFINITY));
    for (const { owner } of overtaken) world.fault(`${owner} was overtaken`);
    for (const place of queue) {
      if (place === own || left.some(({ id }) => id === place.id)) continue;
      world.count("passed over");
      const isOver = place.until <= world.clock.now() + clockSkewMs / 2;
      if (!isOver) world.fault(`${place.owner} was passed over while its place stood`);
    }
  }
}

function isExpected(error: unknown): boolean {
  return (
    error instanceof LeaseUnavailableError ||
    error instanceof LeaseServiceError ||
    error instanceof QueueFullError
  );
}

/** Everybody dies, and a newcomer gets the lock when the last ticket is over. */
async function expectItToHeal(queue: Queue): Promise<void> {
  const { world } = queue;
  world.killAll();
  await world.clearUp();
  queue.leases.clear();
  await world.clock.advance(longestPlaceMs + leaseDurationMs + 2 * clockSkewMs);
  queue.acquire({ process: 1, waitMs: 20_000, heartbeat: true });
  await world.clock.advance(20_500);
  if (queue.held().length !== 1) world.fault("it is stuck");
  if (world.pending > 0) world.fault(`${world.pending} calls have not settled`);
}

export const fairLock: Simulation = {
  name: "fair-lock",
  claim: "a fair lock has one holder at most, overtakes nobody whose place stands, and leaves nothing stuck",
  worlds: 100,
  mustHappen: {
    death: 1,
    takeover: 1,
    "request lost": 1,
    "answer lost": 1,
    "sent twice": 1,
    "late arrival": 1,
    // The simulation is empty where nobody waits, gets anything or dies.
    grant: 250,
    "from the queue": 100,
    "passed over": 30,
  },
  mistakes: [],
  play: stepByStep({
    step,
    mostSteps: 90,
    make: (world) => new Queue(world),
    end: expectItToHeal,
  }),
};
