/**
 * Semaphores and read-write locks in a simulated world: callers in processes of their own, and what must hold of all
 * that they believe in. Checked after every write that takes effect, and whenever a caller is granted something.
 */
import { type Item, type Lease, LeaseServiceError, LeaseUnavailableError } from "@leasehold/client";
import fc from "fast-check";
import { ReadWriteLock } from "../../packages/client/src/read-write/index.ts";
import { type SeatRecord, seatsIn } from "../../packages/client/src/seats/seat.ts";
import { Semaphore } from "../../packages/client/src/semaphore/index.ts";
import type { Change } from "./simulated-table.ts";
import {
  clockSkewMs,
  leaseDurationMs,
  type Mishap,
  mishaps,
  SimulatedWorld,
  type Tally,
} from "./simulated-world.ts";

/** The last two of them are reentrant owners, now and then. */
export const callers = 6;

const kinds = ["permit", "read", "write"] as const;

interface Wish {
  readonly caller: number;
  readonly what: (typeof kinds)[number];
  readonly permits: number;
  readonly waitMs: number;
  readonly heartbeat: boolean;
  readonly reentrant: boolean;
  readonly lockAtLeastForMs: number;
}

export type SeatStep =
  | Mishap
  | ({ readonly kind: "acquire" } & Wish)
  | { readonly kind: "release" | "check"; readonly which: number };

/** Steps of callers that ask for these things alone. */
export function seatSteps(...wanted: readonly Wish["what"][]): fc.Arbitrary<SeatStep> {
  return fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant("acquire" as const),
        caller: fc.nat(callers - 1),
        what: fc.constantFrom(...wanted),
        permits: fc.constantFrom(1, 1, 1, 2, 3),
        waitMs: fc.constantFrom(0, 0, 4_000, 12_000),
        heartbeat: fc.boolean(),
        reentrant: fc.boolean(),
        lockAtLeastForMs: fc.constantFrom(0, 0, 0, 3_000),
      }),
    },
    { weight: 6, arbitrary: fc.record({ kind: fc.constant("release" as const), which: fc.nat(100) }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("check" as const), which: fc.nat(100) }) },
    ...mishaps(callers),
  );
}

/** Steps of writers alone: that hold for long and renew all the time, or that come and go quickly. */
export function writerSteps({ holdLong }: { readonly holdLong: boolean }): fc.Arbitrary<SeatStep> {
  const longestMs = holdLong ? 1_000 : 400;
  return fc.oneof(
    {
      weight: holdLong ? 1 : 6,
      arbitrary: fc.record({
        kind: fc.constant("acquire" as const),
        caller: fc.nat(callers - 1),
        what: fc.constant("write" as const),
        permits: fc.constant(1),
        waitMs: fc.constant(holdLong ? 12_000 : 0),
        heartbeat: fc.constant(holdLong),
        reentrant: fc.constant(false),
        lockAtLeastForMs: fc.constant(0),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant("wait" as const),
        ms: fc.integer({ min: 1, max: longestMs }),
      }),
    },
    {
      weight: holdLong ? 0 : 3,
      arbitrary: fc.record({ kind: fc.constant("release" as const), which: fc.nat(100) }),
    },
  );
}

/** A lease that was granted, and what it was for. */
interface Grant extends Pick<Wish, "what" | "permits"> {
  readonly lease: Lease;
  readonly owner: string;
  /** Until when nobody may have its permits, were it released at once; on the world's clock. */
  readonly cooldownUntil: number;
  isReleased: boolean;
}

interface Caller {
  readonly semaphore: Semaphore;
  readonly lock: ReadWriteLock;
}

/** Callers of one semaphore and one read-write lock. */
export class SimulatedSeats {
  readonly world: SimulatedWorld<Caller>;
  readonly permits: number;
  #grants: Grant[] = [];
  readonly #highest = new Map<string, number>();
  /** Seats that have gone, by token and fencing token. */
  readonly #ended = new Set<string>();

  constructor(seed: number, tally: Tally, permits: number) {
    this.permits = permits;
    this.world = new SimulatedWorld(seed, tally, {
      processes: callers,
      begin: (client) => ({
        semaphore: new Semaphore(client, "k", { permits }),
        lock: new ReadWriteLock(client, "k"),
      }),
      onChange: (changes) => {
        for (const change of changes) this.#changed(change);
        this.#check();
      },
    });
  }

  async take(step: SeatStep): Promise<void> {
    const grant = "which" in step ? this.#grants[step.which % Math.max(1, this.#grants.length)] : undefined;
    if (step.kind === "acquire") this.acquire(step);
    else if (step.kind === "release") this.#release(grant);
    else if (step.kind === "check") this.#checkedWrite(grant);
    else await this.world.befall(step as Mishap);
    await this.world.clock.advance(0);
  }

  acquire(wish: Wish): void {
    const running = this.world.processes[wish.caller];
    if (running === undefined) return;
    const { permits, waitMs, heartbeat, lockAtLeastForMs, what } = wish;
    const { process, parts } = running;
    const reentrant = wish.reentrant && wish.caller >= callers - 2;
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
      const grant = { lease, what, permits: wanted, owner: process.name, cooldownUntil, isReleased: false };
      this.#grants.push(grant);
      this.#check();
    };
    this.world.watch(running, call, granted, isExpected);
  }

  /** What is believed in; handles of one reentrant lease are one. */
  held(): Grant[] {
    const held = this.#grants.filter(({ lease }) => lease.held);
    return [...new Map(held.map((grant) => [grant.lease.token, grant])).values()];
  }

  /** All processes die: after a lease and the allowance for skew, a newcomer gets everything. */
  async expectAllToHeal(): Promise<void> {
    const { world } = this;
    world.killAll();
    await world.clearUp();
    this.#grants = [];
    // The newcomer's clock is right, and a dead holder's may have been ahead by half the allowance. Intents last for 10 s.
    await world.clock.advance(leaseDurationMs + 1.5 * clockSkewMs + 1);
    const wish = { caller: 1, permits: 1, waitMs: 30_000, heartbeat: false, lockAtLeastForMs: 0 } as const;
    for (const what of ["permit", "write", "read"] as const) {
      const count = what === "permit" ? this.permits : 1;
      for (let left = count; left > 0; left -= 1) this.acquire({ ...wish, what, reentrant: false });
      await world.clock.advance(30_000);
      world.check();
      const got = this.#grants.filter((grant) => grant.what === what);
      if (got.length < count) world.fault(`${got.length} of ${count} are to be had of: ${what}`);
      for (const grant of got) this.#release(grant);
      await world.clock.advance(3_000);
    }
    if (world.pending > 0) world.fault(`${world.pending} calls never settled`);
  }

  #release(grant: Grant | undefined): void {
    if (grant === undefined) return;
    const { lease } = grant;
    const released = lease.release().then((wasOurs) => {
      grant.isReleased ||= wasOurs && !this.held().some(({ lease: { token } }) => token === lease.token);
    });
    // Ignored: a release that is not confirmed frees itself.
    void released.catch(() => undefined);
  }

  /** A write of the user's own, on condition that the lease stands: stale ones must not go through. */
  #checkedWrite(grant: Grant | undefined): void {
    if (grant === undefined) return;
    const { lease } = grant;
    const { Key, ConditionExpression, ExpressionAttributeNames, ExpressionAttributeValues } =
      lease.conditionCheck({ format: "native" }).ConditionCheck;
    const { applied } = this.world.table.memory.transactNow([
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
    const seats = this.#seatsIn(before);
    const now = this.#seatsIn(after);
    const id = ({ token, fencingToken }: SeatRecord): string => `${token} ${fencingToken}`;
    const [were, are] = [new Set(seats.map(id)), new Set(now.map(id))];
    for (const seat of seats) {
      if (are.has(id(seat))) continue;
      this.#ended.add(id(seat));
      const next = now.find(({ token }) => token === seat.token);
      if (next !== undefined) this.world.fault(`a seat of ${seat.owner} was taken twice`);
    }
    const sortKey = `${key.pk} ${key.sk}`;
    for (const seat of now) {
      if (were.has(id(seat)) || seat.inCooldown) continue;
      // Back by a late copy: for nobody, and above all not for its former holder.
      for (const grant of this.#grants) if (grant.lease.token === seat.token) this.#checkedWrite(grant);
      this.world.count("grant");
      if (seats.some((one) => !are.has(id(one)))) this.world.count("takeover");
      const highest = this.#highest.get(sortKey) ?? 0;
      if (seat.fencingToken <= highest)
        this.world.fault(`a fencing token of ${sortKey} went from ${highest} to ${seat.fencingToken}`);
      this.#highest.set(sortKey, seat.fencingToken);
      if (before?.releasedToken === seat.token)
        this.world.fault(`a revoked token of ${seat.owner} came back`);
      const same = now.filter((one) => one.owner === seat.owner && one.seat.kind === seat.seat.kind);
      if (seat.reentrant && same.filter(({ reentrant }) => reentrant).length > 1)
        this.world.fault(`${seat.owner} has two seats, reentrantly`);
    }
  }

  #seatsIn(item: Item | undefined): readonly SeatRecord[] {
    try {
      return item?.sk === "semaphore" || item?.sk === "read-write" ? seatsIn(item) : [];
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
      ({ lease, isReleased, cooldownUntil }) => isReleased && cooldownUntil > now && !tokens.has(lease.token),
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

function isExpected(error: unknown): boolean {
  return error instanceof LeaseUnavailableError || error instanceof LeaseServiceError || isUpgrade(error);
}

function isUpgrade(error: unknown): boolean {
  return (error as { code?: string }).code === "LEASE_UPGRADE";
}
