import { type Item, type Lease, LeaseUnavailableError } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import fc from "fast-check";
import type { FairLock } from "../../../packages/client/src/entries/fair.ts";
import { unresponsiveAfterMs } from "../../../packages/client/src/primitives/fair/queue.ts";
import { type QueueTicket, ticketIdOf } from "../../../packages/client/src/primitives/fair/queue-ticket.ts";
import { shortestTicketMs } from "../../../packages/client/src/primitives/fair/queue-waiter.ts";
import {
  Cluster,
  clockSkewMs,
  everyMishap,
  leaseDurationMs,
  type Mishap,
  mishaps,
  type Running,
} from "../cluster.ts";
import {
  drawn,
  exists,
  isGrant,
  type Mistakes,
  type Scene,
  type Simulation,
  stepByStep,
  without,
} from "../simulation.ts";
import type { World } from "../world.ts";
import { staleTakeover } from "./lease-mistakes.ts";
import { QueueMonitor } from "./queue-monitor.ts";

const processes = 5;
/** Waits are no longer: so no ticket lasts longer. */
const longestTicketMs = 2 * shortestTicketMs + 10_000;

/** What those who want the lock do. */
export type QueueStep =
  | {
      readonly kind: "acquire";
      readonly process: number;
      readonly waitMs: number;
      readonly heartbeat: boolean;
    }
  /** Of what one process holds, or of all that is held. */
  | { readonly kind: "release"; readonly process?: number }
  | { readonly kind: "giveUp"; readonly which: number };

const step: fc.Arbitrary<QueueStep | Mishap> = fc.oneof(
  drawn(6, "acquire", {
    process: fc.nat(processes - 1),
    waitMs: fc.constantFrom(0, 4_000, 30_000, 120_000),
    heartbeat: fc.boolean(),
  }),
  drawn(5, "release", {}),
  drawn(1, "giveUp", { which: fc.nat(50) }),
  ...mishaps(processes, 30_000),
);

/** How large a case is, and how much of it may go wrong. */
interface QueueCase {
  /** @default 5 */
  readonly processes?: number;
  /** @default 8 */
  readonly maxWaiters?: number;
  /** Whether processes at most die: then no call of those that live fails, and none of them is passed. @default false */
  readonly isCalm?: boolean;
}

/** Those who want one fair lock, and what must hold of every write that lands. */
export class Queue implements Scene<QueueStep> {
  readonly world: Cluster<FairLock>;
  readonly leases = new Map<Lease, Running<FairLock>>();
  readonly #maxWaiters: number;
  readonly #isCalm: boolean;
  readonly #giveUps = new Set<AbortController>();
  readonly #monitor: QueueMonitor;

  constructor(world: World, small: QueueCase = {}) {
    const { maxWaiters = 8, isCalm = false } = small;
    this.#maxWaiters = maxWaiters;
    this.#isCalm = isCalm;
    this.world = new Cluster(world, {
      processes: small.processes ?? processes,
      begin: (client, { release }) => new release.FairLock(client, "k", { maxWaiters }),
      onChange: ([change]) => this.#watch(change?.before, change?.after),
      expected: ["LEASE_UNAVAILABLE", "LEASE_QUEUE_FULL"],
    });
    this.#monitor = new QueueMonitor(() => this.world.clock.now());
  }

  take(one: QueueStep): void {
    if (one.kind === "acquire") this.acquire(one);
    else if (one.kind === "release") this.#release(one.process);
    else [...this.#giveUps][one.which]?.abort(new LeaseUnavailableError("k", undefined, 0));
  }

  acquire({ process, waitMs, heartbeat }: Omit<Extract<QueueStep, { kind: "acquire" }>, "kind">): void {
    const running = this.world.at(process);
    const giveUp = new AbortController();
    this.#giveUps.add(giveUp);
    const call = running.parts.acquire({ waitMs, heartbeat, signal: giveUp.signal });
    const granted = (lease: Lease): void => {
      this.leases.set(lease, running);
      this.#check();
    };
    this.world.watch(running, call, granted, this.#isCalm ? () => false : undefined);
    const forget = (): boolean => this.#giveUps.delete(giveUp);
    call.then(forget, forget);
  }

  /** What is held by those that live: the dead believe nothing. */
  held(): Lease[] {
    const all = [...this.leases];
    return all.flatMap(([lease, { process }]) => (process.isDead || !lease.held ? [] : [lease]));
  }

  #release(process: number | undefined): void {
    const only = process === undefined ? undefined : this.world.at(process);
    for (const [lease, running] of this.leases) {
      if (only !== undefined && running !== only) continue;
      this.world.watch(running, lease.release());
      this.leases.delete(lease);
    }
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
    const isNew = token !== undefined && token !== before?.[attributeNames.token];
    const own = isNew ? change.tickets.find(({ id }) => id === ticketIdOf(String(token))) : undefined;
    if (own !== undefined) world.count("from the queue");
    const number = own?.number ?? Number.POSITIVE_INFINITY;
    for (const ticket of isNew ? change.left : []) {
      if (ticket.id === own?.id) world.fault(`${ticket.owner} has the lock, and still its ticket`);
      if (ticket.number < number) world.fault(`${ticket.owner} was overtaken`);
    }
    const isJoining = change.left.length > change.tickets.length - change.gone(own).length;
    if (isJoining && change.left.length > this.#maxWaiters) world.fault(`${change.left.length} wait at once`);
    // Otherwise a waiter has left, which removes its own ticket.
    for (const ticket of isNew || isJoining ? change.gone(own) : []) this.#judgeLoss(ticket, before);
  }

  #judgeLoss(ticket: QueueTicket, before: Item | undefined): void {
    const { world } = this;
    world.count(ticket.until > world.clock.now() + clockSkewMs ? "passed in silence" : "passed over");
    // Waiters that go by observation alone learn too late that a holder has died: they may seem unresponsive.
    const lives = world.processes.some(({ process, isBlind }) => !isBlind && process.name === ticket.owner);
    if (!this.#monitor.mayBePassed(ticket, before) || (this.#isCalm && lives))
      world.fault(`${ticket.owner} was passed while its ticket stood`);
  }

  /**
   * Everybody dies, and a newcomer gets the lock when the last ticket is over. One who goes by observation alone is refused
   * while the dead fill the line: it sees the end of the lease by its second try, and their silence by its third.
   */
  async end(): Promise<void> {
    const { world } = this;
    world.killAll();
    await world.clearUp();
    this.leases.clear();
    await world.clock.advance(longestTicketMs + leaseDurationMs + 2 * clockSkewMs);
    const waitMs = 30_000;
    for (let tries = 0; tries < 3; tries += 1) {
      if (world.pending === 0 && this.held().length === 0)
        this.acquire({ process: 1, waitMs, heartbeat: true });
      await world.clock.advance(unresponsiveAfterMs + 1_000);
    }
    await world.clock.advance(waitMs + 500);
    if (this.held().length !== 1) world.fault("it is stuck");
    if (world.pending > 0) world.fault(`${world.pending} calls have not settled`);
  }
}

/** What is planted in what is sent to a line. */
export const lineMistakes: Mistakes = {
  "a turn that is not bound to its ticket": [
    without({ of: /^q:/, test: "=" }),
    /drifted|come back without its number|overtaken|stood/,
  ],
  "a second ticket for one waiter": [without({ of: /^q:/, test: "missing" }), /drifted|two tickets/],
  "a newcomer that is let in past the line": [without({ of: "waiting", by: isGrant }), /overtaken/],
  "a ticket that is passed though its waiter has answered": [
    without({ of: /^w:/, test: "=", left: exists }),
    /while its ticket stood|has lost its ticket/,
  ],
  ...staleTakeover,
};

export const mistakes: Mistakes = {
  ...lineMistakes,
  "a waiter that leaves twice": [without({ of: /^q:/, test: "exists" }), /drifted/],
};

export const fairLock: Simulation = {
  name: "fair-lock",
  claim: "a fair lock has one holder at most, overtakes nobody whose ticket stands, and leaves nothing stuck",
  worlds: 150,
  mustHappen: [
    ...everyMishap,
    // The simulation is empty where nobody waits, gets anything or dies.
    ["grant", 250],
    ["from the queue", 100],
    ["passed over", 30],
    ["passed in silence", 30],
  ],
  mistakes,
  play: stepByStep({ step, mostSteps: 90, make: (world) => new Queue(world) }),
};
