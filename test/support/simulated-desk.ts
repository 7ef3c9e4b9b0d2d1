import {
  type Item,
  type Lease,
  type LeaseClient,
  LeaseServiceError,
  LeaseUnavailableError,
} from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import { expect } from "vitest";
import { type CheckIn, FairLock, QueueFullError } from "../../packages/client/src/fair/index.ts";
import { type QueueTicket, ticketsIn } from "../../packages/client/src/fair/queue-ticket.ts";
import { QueueMonitor } from "./queue-monitor.ts";
import type { Tamper } from "./simulated-weather.ts";
import { SimulatedWorld, type Tally } from "./simulated-world.ts";

export const deskProcesses = 4;
export const visitorNames: readonly string[] = ["ann", "bob", "cyd", "dee"];
/** So few that it is full now and then. */
const maxWaiters = 4;
const unfair = "unfair";
/** By then a check-out has looked, unless its look was lost. */
const lookMs = 300;
/** Longer than two requests take while the weather is calm. */
const roundMs = 1_500;

/** One who comes by: what it has been told, and what it believes. */
export class Visitor {
  readonly name: string;
  /** Of its stays: one lasts from a check-in to the next check-out. */
  stay = 0;
  /** The numbers of its check-ins: of the last one, and of the last one that was answered. */
  came = 0;
  heard = 0;
  /** It has begun to check out, and not come again since. */
  isLeaving = false;
  /** It has heard that its check-out is done: before, it only goes again. */
  hasLeft = true;
  /** When the check-outs of its stay began. */
  goings: number[] = [];
  /** It was told that it waits. */
  waits = false;
  fence = 0;
  lease: Lease | undefined;

  constructor(name: string) {
    this.name = name;
  }

  get holds(): boolean {
    return !this.isLeaving && this.lease?.held === true;
  }
}

/** Visitors at one fair lock among those who acquire it, and what must hold of what they hear and of every write. */
export class Desk {
  readonly world: SimulatedWorld<{ readonly client: LeaseClient; readonly lock: FairLock }>;
  readonly visitors: Visitor[] = visitorNames.map((name) => new Visitor(name));
  readonly leases: Set<Lease> = new Set();
  readonly #monitor: QueueMonitor;
  #callers = 0;

  constructor(seed: number, tally: Tally, tamper: Tamper = (write) => write) {
    this.world = new SimulatedWorld(seed, tally, {
      processes: deskProcesses,
      begin: (client) => ({ client, lock: new FairLock(client, "k", { maxWaiters }) }),
      onChange: ([change]) => this.#watch(change?.before, change?.after),
      tamper,
    });
    this.#monitor = new QueueMonitor(() => this.world.clock.now());
  }

  come(visitor: Visitor, desk: number, join = true): void {
    const { world } = this;
    const running = world.processes[desk];
    if (running === undefined) return;
    if (visitor.isLeaving) {
      visitor.stay += 1;
      Object.assign(visitor, { isLeaving: false, hasLeft: false, goings: [], lease: undefined });
    }
    visitor.came += 1;
    const { stay, fence, came } = visitor;
    const told = (answer: CheckIn): void => {
      if (answer.state === "held") this.#checkToken(visitor, answer.lease, fence);
      if (stay === visitor.stay && !visitor.isLeaving) this.#told(visitor, answer, came);
      else world.count("told after its check-out");
    };
    const call = running.parts.lock.checkIn({ owner: visitor.name, join });
    world.watch(running, call, told, isExpected);
    call.catch(() => {
      if (!visitor.waits && this.#tickets(visitor).length > 0) world.count("unheard place");
    });
  }

  go(visitor: Visitor, desk: number): void {
    const running = this.world.processes[desk];
    if (running === undefined) return;
    const { stay, goings } = visitor;
    const beganAt = this.world.clock.monotonic();
    goings.push(beganAt);
    Object.assign(visitor, { isLeaving: true, hasLeft: false, waits: false });
    const call = running.parts.lock.checkOut({ owner: visitor.name });
    const left = (): void => {
      if (stay !== visitor.stay) this.world.count("check-out of an earlier stay");
      // A copy that may look later than this one could yet end what its owner comes to next.
      else if (goings.filter((at) => at > beganAt - lookMs).length === 1) visitor.hasLeft = true;
    };
    this.world.watch(running, call, left, isExpected);
  }

  /**
   * Whoever has not heard that its check-out is done goes again before it comes anew: a check-out that looks after the new
   * check-in ends what that has got.
   */
  comeOrGo(visitor: Visitor, desk: number, join = true): void {
    if (visitor.isLeaving && !visitor.hasLeft) this.go(visitor, desk);
    else this.come(visitor, desk, join);
  }

  async round(visitors: readonly Visitor[], pauseMs: number): Promise<void> {
    for (const visitor of visitors) this.comeOrGo(visitor, this.#anyDesk());
    await this.world.clock.advance(pauseMs);
  }

  acquire(index: number, fair: boolean): void {
    const running = this.world.processes[index];
    if (running === undefined) return;
    this.#callers += 1;
    const owner = `${fair ? "fair" : unfair} ${this.#callers}`;
    const call = fair
      ? running.parts.lock.acquire({ owner, waitMs: 20_000 })
      : running.parts.client.acquire("k", { owner, waitMs: 2_000 });
    const granted = (lease: Lease): void => {
      this.leases.add(lease);
      this.#check();
    };
    this.world.watch(running, call, granted, isExpected);
  }

  release(): void {
    for (const lease of this.leases) void lease.release().catch(() => false);
    this.leases.clear();
  }

  /** The weather is calm, and whatever was left has ended: all who come by are served in the order in which they came. */
  async expectAllToBeServed(): Promise<void> {
    const line: Visitor[] = [];
    for (const name of visitorNames) {
      line.push(new Visitor(`late ${name}`));
      this.visitors.push(...line.slice(-1));
      await this.round(line, roundMs);
    }
    for (const [index, visitor] of line.entries()) {
      await this.round(line.slice(index), roundMs);
      expect(this.holders()).toEqual([visitor.name]);
      this.go(visitor, this.#anyDesk());
      await this.world.clock.advance(roundMs);
    }
  }

  /** Who believes to hold the lock. */
  holders(): string[] {
    const visitors = this.visitors.filter(({ holds }) => holds).map(({ name }) => name);
    return [...visitors, ...[...this.leases].filter(({ held }) => held).map(({ owner }) => owner)];
  }

  #anyDesk(): number {
    return this.world.random.integer(0, deskProcesses - 1);
  }

  #check(): void {
    const holders = this.holders();
    if (holders.length > 1) this.world.fault(`${holders.join(" and ")} hold it at once`);
  }

  #told(visitor: Visitor, answer: CheckIn, came: number): void {
    this.world.count(`told: ${answer.state}`);
    const { lease } = visitor;
    if (answer.state === "held") {
      const hasChanged = lease?.held && lease.fencingToken !== answer.lease.fencingToken;
      if (hasChanged) this.world.fault(`${visitor.name}'s token changed while it held the lock`);
      Object.assign(visitor, { lease: answer.lease, waits: false });
      // A copy that was answered late takes no newer answer back.
    } else if (came > visitor.heard) {
      Object.assign(visitor, { lease: undefined, waits: answer.state === "waiting" });
    }
    visitor.heard = Math.max(visitor.heard, came);
    this.#check();
  }

  /** What it is told never falls behind what it knew when it came. */
  #checkToken(visitor: Visitor, { fencingToken }: Lease, floor: number): void {
    if (fencingToken < floor) this.world.fault(`${visitor.name} was told ${fencingToken} after ${floor}`);
    visitor.fence = Math.max(visitor.fence, fencingToken);
  }

  #tickets({ name }: Visitor): QueueTicket[] {
    const item = this.world.table.memory.peek({ pk: "k", sk: "lease" });
    return ticketsIn(item).filter(({ owner }) => owner === name);
  }

  /** Judges a write that has landed: what became of the places, and who was let in before whom. */
  #watch(before: Item | undefined, after: Item | undefined): void {
    const { world } = this;
    this.#check();
    const change = this.#monitor.watch(before, after, (text) => world.fault(text));
    const owners = new Set(change.left.map(({ owner }) => owner));
    if (owners.size < change.left.length) world.fault("an owner has two tickets");
    const { token, owner } = attributeNames;
    const isNew = after?.[token] !== undefined && after[token] !== before?.[token];
    const granted = isNew ? String(after[owner]) : undefined;
    const own = change.tickets.find((ticket) => ticket.owner === granted);
    if (own !== undefined) world.count("from the queue");
    for (const ticket of change.gone(own)) this.#judgeLoss(ticket, before);
    if (granted === undefined || granted.startsWith(unfair)) return;
    const number = own?.number ?? Number.POSITIVE_INFINITY;
    for (const ticket of change.left) {
      if (ticket.number < number) world.fault(`${ticket.owner} was overtaken by ${granted}`);
    }
  }

  #judgeLoss(ticket: QueueTicket, before: Item | undefined): void {
    if (this.#monitor.mayBePassed(ticket, before)) this.world.count("passed over");
    else if (this.visitors.some(({ name, waits }) => waits && name === ticket.owner)) {
      this.world.fault(`${ticket.owner} was told that it waits, and has lost its ticket`);
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
