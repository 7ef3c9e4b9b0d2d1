import type { Item, Lease, LeaseClient } from "@leasehold/client";
import { attributeNames } from "@leasehold/client/schema";
import fc from "fast-check";
import type { CheckIn, FairLock } from "../../../packages/client/src/entries/fair.ts";
import { type QueueTicket, ticketsIn } from "../../../packages/client/src/primitives/fair/queue-ticket.ts";
import { Cluster, clockSkewMs, everyMishap, leaseDurationMs, type Mishap, mishaps } from "../cluster.ts";
import type { Host } from "../host.ts";
import { drawn, type Scene, type Simulation, stepByStep } from "../simulation.ts";
import type { World } from "../world.ts";
import { lineMistakes } from "./fair-lock.ts";
import { QueueMonitor } from "./queue-monitor.ts";

const deskProcesses = 4;
const visitorNames = ["ann", "bob", "cyd", "dee"];
/** So few that it is full now and then. */
const maxWaiters = 4;
const unfair = "unfair";
/** Longer than two requests take while the weather is calm. */
const roundMs = 1_500;

/** The waits of callers with a thread are shorter: so no ticket lasts longer. */
const longestTicketMs = 70_000;

/** What a visitor does, at several desks if two copies run at once. */
export type VisitStep =
  | { readonly kind: "come"; readonly who: number; readonly desks: readonly number[]; readonly join: boolean }
  | { readonly kind: "go"; readonly who: number; readonly desks: readonly number[] }
  | { readonly kind: "rounds"; readonly pausesMs: readonly number[] }
  | { readonly kind: "acquire"; readonly process: number; readonly fair: boolean }
  | { readonly kind: "release" };

const who = fc.nat(visitorNames.length - 1);
const anyProcess = fc.nat(deskProcesses - 1);
/** Two of them: a visit of which two copies run at once. */
const desks = fc.array(anyProcess, { minLength: 1, maxLength: 2 });

const step: fc.Arbitrary<VisitStep | Mishap> = fc.oneof(
  drawn(12, "come", { who, desks, join: fc.nat(4).map(Boolean) }),
  drawn(4, "go", { who, desks }),
  drawn(3, "rounds", {
    pausesMs: fc.array(fc.integer({ min: 200, max: 2_500 }), { minLength: 2, maxLength: 6 }),
  }),
  drawn(2, "acquire", { process: anyProcess, fair: fc.boolean() }),
  drawn(2, "release", {}),
  ...mishaps(deskProcesses, 20_000),
);

/** One who comes by: what it has been told, and what it believes. */
class Visitor {
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
  /** The hosts of its check-outs that are under way: each may look again when its host has woken. */
  goings: { readonly host: Host }[] = [];
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

/** How large a case is. */
interface DeskCase {
  /** @default 4 */
  readonly processes?: number;
  /** @default - four of them */
  readonly names?: readonly string[];
}

/** Visitors at one fair lock among those who acquire it, and what must hold of what they hear and of every write. */
export class Desk implements Scene<VisitStep> {
  readonly world: Cluster<{ readonly client: LeaseClient; readonly lock: FairLock }>;
  readonly visitors: Visitor[];
  readonly leases = new Set<Lease>();
  readonly #monitor: QueueMonitor;
  #callers = 0;
  #isHealing = false;

  constructor(world: World, small: DeskCase = {}) {
    const { processes = deskProcesses, names = visitorNames } = small;
    this.visitors = names.map((name) => new Visitor(name));
    this.world = new Cluster(world, {
      processes,
      begin: (client, { release }) => ({ client, lock: new release.FairLock(client, "k", { maxWaiters }) }),
      onChange: ([change]) => this.#watch(change?.before, change?.after),
      // In the end who is to be served when is told of desks that judge a lease at the first look.
      dates: () => (this.#isHealing || !world.isRandom ? "kept" : undefined),
      client: () => (this.#isHealing ? { clockSkewMs } : {}),
      expected: ["LEASE_UNAVAILABLE", "LEASE_QUEUE_FULL"],
    });
    this.#monitor = new QueueMonitor(() => this.world.clock.now());
  }

  async take(one: VisitStep): Promise<void> {
    if (one.kind === "rounds") {
      for (const pauseMs of one.pausesMs) await this.round(this.visitors, pauseMs);
    } else if (one.kind === "acquire") this.acquire(one.process, one.fair);
    else if (one.kind === "release") this.release();
    else {
      const visitor = this.visitors[one.who];
      if (visitor === undefined) return;
      for (const at of one.desks) {
        if (one.kind === "go") this.go(visitor, at);
        else this.comeOrGo(visitor, at, one.join);
      }
    }
  }

  come(visitor: Visitor, desk: number, join = true): void {
    const { world } = this;
    const running = world.at(desk);
    if (visitor.isLeaving) {
      // Their hosts are dead, and what they have sent may yet arrive.
      if (visitor.goings.length > 0) world.count("check-out of an earlier stay");
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
    world.watch(running, call, told);
    call.catch(() => {
      if (!visitor.waits && this.#tickets(visitor).length > 0) world.count("unheard place");
    });
  }

  go(visitor: Visitor, desk: number): void {
    const running = this.world.at(desk);
    const { goings } = visitor;
    const going = { host: running.process };
    goings.push(going);
    Object.assign(visitor, { isLeaving: true, hasLeft: false, waits: false });
    const call = running.parts.lock.checkOut({ owner: visitor.name });
    const left = (): void => {
      // A copy that may look later than this one could yet end what its owner comes to next.
      if (!goings.some((other) => other !== going && !other.host.isDead)) visitor.hasLeft = true;
    };
    this.world.watch(running, call, left);
    const forget = (): number => goings.splice(goings.indexOf(going), 1).length;
    call.then(forget, forget);
  }

  /**
   * A visitor whose check-out is not confirmed checks out again before it checks in anew: a check-out that looks after the
   * new check-in ends what that has got.
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
    const running = this.world.at(index);
    this.#callers += 1;
    const owner = `${fair ? "fair" : unfair} ${this.#callers}`;
    const call = fair
      ? running.parts.lock.acquire({ owner, waitMs: 20_000 })
      : running.parts.client.acquire("k", { owner, waitMs: 2_000 });
    const granted = (lease: Lease): void => {
      this.leases.add(lease);
      this.#check();
    };
    this.world.watch(running, call, granted);
  }

  release(): void {
    for (const lease of this.leases) void lease.release().catch(() => false);
    this.leases.clear();
  }

  /**
   * All desks close, and a caller that waits outlives whatever was left: then all who come by are served in the order in which
   * they came.
   */
  async end(): Promise<void> {
    this.#isHealing = true;
    this.world.killAll();
    await this.world.clearUp();
    this.leases.clear();
    const stuckAt = this.world.clock.now() + 2 * (longestTicketMs + leaseDurationMs);
    while (this.leases.size === 0 && this.world.clock.now() < stuckAt) {
      if (this.world.pending === 0) this.acquire(0, true);
      await this.world.clock.advance(roundMs);
    }
    if (this.leases.size === 0) this.world.fault("it is stuck");
    this.release();
    await this.world.clock.advance(roundMs);
    const line: Visitor[] = [];
    for (const name of visitorNames) {
      line.push(new Visitor(`late ${name}`));
      this.visitors.push(...line.slice(-1));
      await this.round(line, roundMs);
    }
    for (const [index, visitor] of line.entries()) {
      await this.round(line.slice(index), roundMs);
      const holders = this.holders();
      if (holders.join() !== visitor.name) this.world.fault(`${holders} hold it in place of ${visitor.name}`);
      this.go(visitor, this.#anyDesk());
      await this.world.clock.advance(roundMs);
    }
    if (this.world.pending > 0) this.world.fault(`${this.world.pending} calls have not settled`);
  }

  /** What the visitors believe: they may have come to several desks. */
  get state(): string {
    const beliefs = this.visitors.map(({ name: _, goings, lease, ...rest }) => ({
      ...rest,
      goings: goings.map(({ host }) => host.name),
      lease: lease && [lease.fencingToken, lease.held],
    }));
    return JSON.stringify(beliefs);
  }

  /** Who believes to hold the lock. */
  holders(): string[] {
    const visitors = this.visitors.filter(({ holds }) => holds).map(({ name }) => name);
    return [...visitors, ...[...this.leases].filter(({ held }) => held).map(({ owner }) => owner)];
  }

  #anyDesk(): number {
    return this.world.random.integer(0, this.world.processes.length - 1);
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
    const item = this.world.table.peek({ pk: "k", sk: "lease" });
    return ticketsIn(item).filter(({ owner }) => owner === name);
  }

  /** Judges a write that has landed: what became of the tickets, and who was let in before whom. */
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

export const checkIn: Simulation = {
  name: "check-in",
  claim:
    "check-ins have one holder at most and one ticket for each, overtake nobody whose ticket stands, and are all served",
  worlds: 100,
  mustHappen: [
    ...[...everyMishap, "told: absent", "told after its check-out", "rejected: QueueFullError"],
    // The simulation is empty where nobody comes in, is late, or meets a copy of itself.
    ["told: held", 1_000],
    ["from the queue", 200],
    ["passed over", 200],
    ["takeover", 80],
    ["unheard place", 40],
    ["check-out of an earlier stay", 10],
  ],
  mistakes: lineMistakes,
  play: stepByStep({ step, mostSteps: 90, make: (world) => new Desk(world) }),
};
