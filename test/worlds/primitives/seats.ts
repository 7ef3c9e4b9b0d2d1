/**
 * Semaphores and read-write locks: callers in processes of their own, and what must hold of all that they believe in.
 * Checked after every write that takes effect, and whenever a caller is granted something.
 */
import type { Item, Lease } from "@leasehold/client";
import fc from "fast-check";
import { ExpiryDetector } from "../../../packages/client/src/core/expiry-detector.ts";
import type { ReadWriteLock } from "../../../packages/client/src/entries/read-write.ts";
import type { Semaphore } from "../../../packages/client/src/entries/semaphore.ts";
import { type SeatRecord, seatsIn } from "../../../packages/client/src/primitives/seats/seat.ts";
import { SeatForm } from "../../../packages/client/src/primitives/seats/seat-form.ts";
import type { Write } from "../../../packages/client/src/statements/statement.ts";
import { insistingOn, leaving, recomposed, withConditions } from "../../support/recomposed.ts";
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
  type Mistakes,
  type Plant,
  replacing,
  type Scene,
  type Simulation,
  stepByStep,
} from "../simulation.ts";
import type { Change } from "../table.ts";
import type { World } from "../world.ts";
import { takingTurns, uncountedLeave } from "./fair-lock-mistakes.ts";
import { QueueMonitor } from "./queue-monitor.ts";

/** The last two of them are reentrant owners, now and then. */
const callers = 6;

export interface Wish {
  readonly caller: number;
  readonly what: "permit" | "read" | "write";
  readonly permits: number;
  readonly waitMs: number;
  readonly heartbeat: boolean;
  readonly reentrant: boolean;
  readonly lockAtLeastForMs: number;
}

/** What callers of seats do: with one of all grants, or with the last one of one caller that it still has. */
export type SeatStep =
  | ({ readonly kind: "acquire" } & Wish)
  | { readonly kind: "release" | "check"; readonly which: number }
  | { readonly kind: "release" | "check"; readonly caller: number };

const which = fc.nat(100);
const release = fc.record({ kind: fc.constant("release" as const), which });

const step: fc.Arbitrary<SeatStep | Mishap> = fc.oneof(
  drawn(8, "acquire", {
    caller: fc.nat(callers - 1),
    what: fc.constantFrom("permit", "read", "write"),
    permits: fc.constantFrom(1, 1, 1, 2, 3),
    waitMs: fc.constantFrom(0, 0, 4_000, 12_000),
    heartbeat: fc.boolean(),
    reentrant: fc.boolean(),
    lockAtLeastForMs: fc.constantFrom(0, 0, 0, 3_000),
  }),
  { weight: 6, arbitrary: release },
  drawn(3, "check", { which }),
  ...mishaps(callers),
);

/** Writers that hold for long, and renew all the time. */
const longWriters: fc.Arbitrary<SeatStep | Mishap> = fc.oneof(
  fc.nat(callers - 1).map((caller) => ({
    ...{ kind: "acquire" as const, caller, what: "write" as const, permits: 1, waitMs: 12_000 },
    ...{ heartbeat: true, reentrant: false, lockAtLeastForMs: 0 },
  })),
  drawn(3, "wait", { ms: fc.integer({ min: 1, max: 1_000 }) }),
);

/** A lease that was granted, and what it was for. */
interface Grant extends Pick<Wish, "what" | "permits"> {
  readonly lease: Lease;
  readonly running: Running<Caller>;
  readonly owner: string;
  /** Until when nobody may have its permits, were it released at once; on the world's clock. */
  readonly cooldownUntil: number;
  isReleased: boolean;
  /** Whether its handle has begun to be released. */
  isLetGo: boolean;
}

interface Caller {
  readonly semaphore: Semaphore;
  readonly lock: ReadWriteLock;
}

/** How large a case is. */
interface SeatCase {
  /** Whether the callers wait in line. @default false */
  readonly isOrdered?: boolean;
  /** @default 6 */
  readonly processes?: number;
  /** @default - by chance, from 1 to 4 */
  readonly permits?: number;
}

/** Callers of one semaphore and one read-write lock. */
export class Seats implements Scene<SeatStep> {
  readonly world: Cluster<Caller>;
  readonly permits: number;
  readonly #processes: number;
  #grants: Grant[] = [];
  /** Seats that have gone, by token and fencing token. */
  readonly #ended = new Set<string>();
  readonly #monitor: QueueMonitor;

  constructor(world: World, small: SeatCase = {}) {
    const { isOrdered = false, processes = callers, permits = world.random.integer(1, 4) } = small;
    this.permits = permits;
    this.#processes = processes;
    this.world = new Cluster(world, {
      processes,
      expected: ["LEASE_UNAVAILABLE", "LEASE_UPGRADE"],
      begin: (client, { release }) => {
        const { Semaphore, ReadWriteLock, fair } = release;
        const order = isOrdered ? { order: fair() } : {};
        return {
          semaphore: new Semaphore(client, "k", { permits, ...order }),
          lock: new ReadWriteLock(client, "k", order),
        };
      },
      onChange: (changes) => {
        for (const change of changes) this.#changed(change);
        this.#check();
      },
    });
    this.#monitor = new QueueMonitor(() => this.world.clock.now());
  }

  take(one: SeatStep): void {
    if (one.kind === "acquire") this.acquire(one);
    else if (one.kind === "release") this.#release(this.#meant(one));
    else this.#checkedWrite(this.#meant(one));
  }

  acquire(wish: Wish): void {
    const running = this.world.at(wish.caller);
    const { permits, waitMs, heartbeat, lockAtLeastForMs, what } = wish;
    const { process, parts } = running;
    const reentrant = wish.reentrant && wish.caller >= this.#processes - 2;
    const startedAt = this.world.clock.monotonic();
    const options = { waitMs, heartbeat, owner: process.name, reentrant };
    const wanted = reentrant ? 1 : Math.min(permits, this.permits);
    const call =
      what === "permit"
        ? parts.semaphore.acquire({ ...options, permits: wanted, lockAtLeastForMs })
        : parts.lock[what](options);
    const cooldownUntil = startedAt + (what === "permit" ? lockAtLeastForMs : 0);
    const granted = (lease: Lease): void => {
      this.world.count(what);
      const own = { lease, running, owner: process.name };
      this.#grants.push({ ...own, what, permits: wanted, cooldownUntil, isReleased: false, isLetGo: false });
      this.#check();
    };
    this.world.watch(running, call, granted);
  }

  #meant(step: Exclude<SeatStep, { kind: "acquire" }>): Grant | undefined {
    if ("which" in step) return this.#grants[step.which % Math.max(1, this.#grants.length)];
    const running = this.world.at(step.caller);
    const own = this.#grants.filter((grant) => grant.running === running);
    return own.findLast(({ isLetGo }) => !isLetGo) ?? own.at(-1);
  }

  /** What is believed in; handles of one reentrant lease are one. The dead believe nothing. */
  held(): Grant[] {
    const held = this.#grants.filter(({ lease, running }) => !running.process.isDead && lease.held);
    return [...new Map(held.map((grant) => [grant.lease.token, grant])).values()];
  }

  /** All processes die: after a lease and the allowance for skew, a newcomer gets everything. */
  async end(): Promise<void> {
    const { world } = this;
    this.world.killAll();
    await world.clearUp();
    this.#grants = [];
    // The newcomer's clock is right, and a dead holder's may have been ahead by half the allowance.
    await world.clock.advance(leaseDurationMs + 1.5 * clockSkewMs + 1);
    const wish = { caller: 1, permits: 1, waitMs: 30_000, heartbeat: false, lockAtLeastForMs: 0 } as const;
    for (const what of ["permit", "write", "read"] as const) {
      const count = what === "permit" ? this.permits : 1;
      for (let left = count; left > 0; left -= 1) this.acquire({ ...wish, what, reentrant: false });
      await world.clock.advance(30_000);
      world.world.check();
      const got = this.#grants.filter((grant) => grant.what === what);
      if (got.length < count) world.fault(`${got.length} of ${count} are to be had of: ${what}`);
      for (const grant of got) this.#release(grant);
      await world.clock.advance(3_000);
    }
    if (world.pending > 0) world.fault(`${world.pending} calls have not settled`);
  }

  #release(grant: Grant | undefined): void {
    if (grant === undefined) return;
    const { lease, running } = grant;
    const ended = (wasOurs: boolean): void => {
      grant.isReleased ||= wasOurs && !this.held().some(({ lease: { token } }) => token === lease.token);
    };
    grant.isLetGo = true;
    const others = this.#grants.filter((other) => other.lease.token === lease.token && !other.isLetGo);
    const wereHeld = others.filter((other) => other.lease.held);
    // A release that is not confirmed frees itself.
    this.world.watch(running, lease.release(), ended);
    if (wereHeld.some((other) => !other.lease.held))
      this.world.fault(`${grant.owner} let one handle go, and lost the others`);
  }

  /** A write of the user's own, on condition that the lease stands: stale ones must not go through. */
  #checkedWrite(grant: Grant | undefined): void {
    if (grant === undefined) return;
    const { lease } = grant;
    const { Key, ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues } =
      lease.conditionCheck({ format: "native" }).ConditionCheck;
    const { applied } = this.world.table.transact([
      {
        key: { pk: String(Key.pk), sk: String(Key.sk) },
        action: "check",
        condition: ConditionExpression,
        names: ExpressionAttributeNames,
        values: ExpressionAttributeValues,
      },
    ]);
    this.world.count(applied ? "checked write" : "stale write");
    const isOver = this.#ended.has(`${lease.token} ${lease.fencingToken}`);
    if (applied && isOver) this.world.fault(`a stale write of ${grant.owner} went through`);
  }

  #changed({ key, before, after }: Change): void {
    const { tickets, left } = this.#monitor.watch(before, after, (what) => this.world.fault(what));
    if (left.length > tickets.length) this.world.count("joined");
    const seats = this.#seatsIn(before);
    const now = this.#seatsIn(after);
    const id = ({ token, fencingToken }: SeatRecord): string => `${token} ${fencingToken}`;
    const [were, are] = [new Set(seats.map(id)), new Set(now.map(id))];
    for (const seat of seats) {
      if (are.has(id(seat))) continue;
      this.#ended.add(id(seat));
      this.world.world.tell("table", () => `the seat of ${seat.owner}, ${seat.token}, is gone`);
      const next = now.find(({ token }) => token === seat.token);
      if (next !== undefined) this.world.fault(`a seat of ${seat.owner} was taken twice`);
    }
    const sortKey = `${key.pk} ${key.sk}`;
    for (const seat of now) {
      if (were.has(id(seat)) || seat.inCooldown) continue;
      this.world.world.tell("table", () => `${seat.owner} has a seat (${seat.seat.kind}), ${id(seat)}`);
      // Back by a late copy: for nobody, and above all not for its former holder.
      for (const grant of this.#grants) if (grant.lease.token === seat.token) this.#checkedWrite(grant);
      this.world.count("grant");
      if (seats.some((one) => !are.has(id(one)))) this.world.count("takeover");
      this.world.grows(sortKey, seat.fencingToken);
      if (before?.releasedToken === seat.token)
        this.world.fault(`a revoked token of ${seat.owner} came back`);
      const intent = seats.find((one) => one.seat.kind === "intent" && are.has(id(one)));
      if (seat.seat.kind === "read" && !seat.reentrant && intent !== undefined)
        this.world.fault(`${seat.owner} reads while ${intent.owner} waits to write`);
      const same = now.filter((one) => one.owner === seat.owner && one.seat.kind === seat.seat.kind);
      if (seat.reentrant && same.filter(({ reentrant }) => reentrant).length > 1)
        this.world.fault(`${seat.owner} has two seats, reentrantly`);
    }
  }

  #seatsIn(item: Item | undefined): readonly SeatRecord[] {
    if (item?.sk !== "semaphore" && item?.sk !== "read-write") return [];
    try {
      return seatsIn(item);
    } catch (error) {
      this.world.fault(String(error));
      return [];
    }
  }

  #check(): void {
    const held = this.held();
    const now = this.world.clock.monotonic();
    const tokens = new Set(held.map(({ lease }) => lease.token));
    const closed = this.#grants.filter(
      ({ lease, running, isReleased, cooldownUntil }) =>
        isReleased && !running.process.isDead && cooldownUntil > now && !tokens.has(lease.token),
    );
    const permits = [...held, ...new Map(closed.map((grant) => [grant.lease.token, grant])).values()].reduce(
      (sum, grant) => sum + (grant.what === "permit" ? grant.permits : 0),
      0,
    );
    if (permits > this.permits) this.world.fault(`${permits} of ${this.permits} permits are held`);
    const [writer, other] = held.filter(({ what }) => what === "write");
    if (other !== undefined) this.world.fault("two writers");
    for (const { what, owner } of held) {
      if (writer === undefined || what !== "read") continue;
      if (owner === writer.owner) this.world.count("reads beside its own write");
      else this.world.fault(`${owner} reads while ${writer.owner} writes`);
    }
  }
}

/** Plants a mistake: what one of the form's methods writes, changed. */
export const writing = (
  method: "acquire" | "renew" | "release" | "cancel",
  change: (write: Write) => Write,
): Plant =>
  replacing(SeatForm.prototype, method, (write, given) =>
    change((write as (...given: readonly unknown[]) => Write)(...given)),
  );

/** Without the conditions of the attributes that begin like this. */
const notInsistingOn =
  (prefix: string) =>
  (write: Write): Write =>
    withConditions(write, (condition, attribute) => (attribute.startsWith(prefix) ? undefined : condition));

/** With bounds that allow one more. */
function oneMore(write: Write): Write {
  for (const placeholder in write.values)
    if (placeholder.startsWith(":most_")) write.values[placeholder] = Number(write.values[placeholder]) + 1;
  return write;
}

const tooMany = /permits are held|two writers|reads while|the fencing token of/;
const tooManyOrMiscounted = /permits are held|two writers|reads while|differs from/;

export const mistakes: Mistakes = {
  "a proof without the fencing token": [
    replacing(SeatForm.prototype, "proof", (proof, given) =>
      insistingOn(proof(...given), "attribute_exists(#SeatFence)"),
    ),
    /a stale write of .* went through/,
  ],
  "a bound that is off by one": [writing("acquire", oneMore), tooMany],
  "a counter that a release does not count down": [
    writing("release", (write) => leaving(write, "#permits")),
    /permits differs from what the seats take/,
  ],
  "passing a seat that was renewed since it was judged": [
    writing("acquire", notInsistingOn("s:")),
    tooManyOrMiscounted,
  ],
  "no mark of a revoked token": [
    writing("acquire", notInsistingOn("releasedToken")),
    /a revoked token of .* came back/,
  ],
  "a seat that is taken twice by two copies of one write": [
    writing("acquire", notInsistingOn("f:")),
    /taken twice|differs from/,
  ],
  "a cooldown that ends at once": [
    replacing(SeatForm.prototype, "release", (release, [ending]) =>
      release({ ...ending, cooldown: undefined }),
    ),
    /permits are held/,
  ],
  "a takeover before the end of a lease": [
    replacing(
      ExpiryDetector.prototype,
      "judgeAll",
      (_, [leases]) => new Map(leases.map((lease) => [lease, { reason: "serviceClock", claimableInMs: 0 }])),
    ),
    tooMany,
  ],
  "a ttl that does not outlast the other seats": [
    writing("release", (write) => recomposed(write, (part) => part, { set: "#ttl = :ttl" }, { ":ttl": 1 })),
    tooMany,
  ],
  "a reentrant owner that nothing marks": [
    writing("acquire", (write) => leaving(notInsistingOn("o:")(write), "#Mark")),
    /has two seats, reentrantly/,
  ],
};

const withSteps = (
  any: fc.Arbitrary<SeatStep | Mishap>,
  mostSteps: number,
  isOrdered = false,
): Simulation["play"] =>
  stepByStep({ step: any, mostSteps, make: (world) => new Seats(world, { isOrdered }) });

const all: Simulation = {
  name: "seats",
  claim:
    "semaphores and read-write locks are within their bounds, prove their holders, and leave nothing stuck",
  worlds: 150,
  mustHappen: [
    ...[
      ...everyMishap,
      "permit",
      "read",
      "write",
      "checked write",
      "stale write",
      "reads beside its own write",
    ],
    // The simulation is empty where nobody gets anything.
    ["grant", 1_500],
  ],
  mistakes,
  play: withSteps(step, 70),
};

const long: Simulation = {
  name: "seats:long-writers",
  claim: "writers that renew all the time are alone, whichever copy of a renewal comes last",
  worlds: 20,
  mustHappen: ["write", "takeover", "sent twice", "late arrival"],
  mistakes: {
    "a renewal that does not compare versions": [writing("renew", notInsistingOn("s:")), /two writers/],
  },
  play: withSteps(longWriters, 200),
};

const inOrder: Simulation = {
  name: "seats:in-order",
  claim: "semaphores and read-write locks whose callers wait in line keep their bounds, and count their line",
  worlds: 100,
  mustHappen: [...all.mustHappen.slice(0, -1), ["joined", 200], ["grant", 500]],
  mistakes: {
    "a bound that is off by one where callers wait in line": [takingTurns(oneMore), tooMany],
    ...uncountedLeave,
  },
  play: withSteps(step, 70, true),
};

export const seats: readonly Simulation[] = [all, long, inOrder];
