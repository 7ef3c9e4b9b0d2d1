import { type Item, type Lease, LeaseServiceError, LeaseUnavailableError } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FairLock, QueueFullError } from "../../packages/client/src/fair/index.ts";
import type { QueueTicket } from "../../packages/client/src/fair/queue-ticket.ts";
import { shortestTicketMs } from "../../packages/client/src/fair/queue-waiter.ts";
import { ticketIdOf } from "../../packages/client/src/fair/schema.ts";
import { QueueMonitor } from "../support/queue-monitor.ts";
import type { Tamper } from "../support/simulated-weather.ts";
import {
  clockSkewMs,
  leaseDurationMs,
  type Mishap,
  mishaps,
  SimulatedWorld,
  type Tally,
} from "../support/simulated-world.ts";
import {
  expectToHaveHappened,
  runs,
  type SentTest,
  violationOf,
  withoutTests,
} from "../support/simulations.ts";

const processes = 5;
const maxWaiters = 8;
/** Waits are no longer: so no ticket lasts longer. */
const longestTicketMs = 2 * shortestTicketMs + 10_000;

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
  readonly world: SimulatedWorld<FairLock>;
  readonly leases = new Set<Lease>();
  readonly #giveUps = new Set<AbortController>();
  readonly #monitor: QueueMonitor;

  constructor(seed: number, tally: Tally, tamper: Tamper = (write) => write) {
    this.world = new SimulatedWorld(seed, tally, {
      processes,
      begin: (client) => new FairLock(client, "k", { maxWaiters }),
      onChange: ([change]) => this.#watch(change?.before, change?.after),
      tamper,
    });
    this.#monitor = new QueueMonitor(() => this.world.clock.now());
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
    const change = this.#monitor.watch(before, after, (text) => world.fault(text));
    const token = after?.[attributeNames.token];
    const isGrant = token !== undefined && token !== before?.[attributeNames.token];
    const own = isGrant ? change.tickets.find(({ id }) => id === ticketIdOf(String(token))) : undefined;
    if (own !== undefined) world.count("from the queue");
    const number = own?.number ?? Number.POSITIVE_INFINITY;
    for (const ticket of isGrant ? change.left : []) {
      if (ticket.number < number) world.fault(`${ticket.owner} was overtaken`);
    }
    const isJoining = change.left.length > change.tickets.length - change.gone(own).length;
    // Otherwise a waiter has left, which removes its own ticket.
    for (const ticket of isGrant || isJoining ? change.gone(own) : []) this.#judgeLoss(ticket, before);
  }

  #judgeLoss(ticket: QueueTicket, before: Item | undefined): void {
    const { world } = this;
    world.count(ticket.until > world.clock.now() + clockSkewMs ? "passed in silence" : "passed over");
    if (!this.#monitor.mayBePassed(ticket, before))
      world.fault(`${ticket.owner} was passed while its ticket stood`);
  }
}

function isExpected(error: unknown): boolean {
  return (
    error instanceof LeaseUnavailableError ||
    error instanceof LeaseServiceError ||
    error instanceof QueueFullError
  );
}

function uses(tally: Tally, tamper?: Tamper): fc.IAsyncProperty<[number, Step[]]> {
  const steps = fc.array(step, { minLength: 30, maxLength: 90 });
  return fc.asyncProperty(fc.integer(), steps, async (seed, all) => {
    const queue = new Queue(seed, tally, tamper);
    const { world } = queue;
    for (const one of all) {
      await queue.take(one);
      world.check();
    }
    world.killAll();
    await world.clearUp();
    queue.leases.clear();
    await world.clock.advance(longestTicketMs + leaseDurationMs + 2 * clockSkewMs);
    queue.acquire({ process: 1, waitMs: 20_000, heartbeat: true });
    await world.clock.advance(20_500);
    world.check();
    expect([queue.held().length, world.pending]).toEqual([1, 0]);
    world.killAll();
  });
}

const isGrant = ({ values }: { readonly values: object }): boolean => ":acquiredAt" in values;
const startsWith =
  (prefix: string, test: string) =>
  (sent: SentTest): boolean =>
    sent.attribute.startsWith(prefix) && sent.test === test;

describe("a fair lock under delays, lost and late answers, deaths, freezes and clocks that differ", () => {
  it("has one holder at most, overtakes nobody whose ticket stands, and leaves nothing stuck", async () => {
    const tally: Tally = {};
    await fc.assert(uses(tally), { seed: 4, numRuns: runs(100) });
    expectToHaveHappened(
      tally,
      "death",
      "takeover",
      "request lost",
      "answer lost",
      "sent twice",
      "late arrival",
    );
    // The property is empty where nobody waits, gets anything or dies.
    expect(tally.grant).toBeGreaterThan(250);
    expect(tally["from the queue"]).toBeGreaterThan(100);
    expect(tally["passed over"]).toBeGreaterThan(30);
    expect(tally["passed in silence"]).toBeGreaterThan(30);
  });

  it.each<[string, (test: SentTest) => boolean, RegExp]>([
    ["a turn that is not bound to its ticket", startsWith("q:", "="), /drifted|overtaken|stood/],
    ["a second ticket for one waiter", startsWith("q:", "missing"), /drifted/],
    ["a waiter that leaves twice", startsWith("q:", "exists"), /drifted/],
    [
      "a newcomer that is let in past the line",
      ({ attribute, write }) => attribute === "waiting" && isGrant(write),
      /overtaken/,
    ],
    [
      "a takeover from a holder that has renewed",
      ({ attribute, test }) => attribute === "version" && test === "=",
      /hold it at once/,
    ],
  ])("is seen through: %s", async (_, isMeant, violation) => {
    expect(await violationOf(uses({}, withoutTests(isMeant)))).toMatch(violation);
  });

  it("is seen through: a ticket that is passed though its waiter has answered", async () => {
    const mistake = withoutTests(startsWith("w:", "="), (name) => `attribute_exists(${name})`);
    expect(await violationOf(uses({}, mistake))).toMatch(/while its ticket stood/);
  });
});
