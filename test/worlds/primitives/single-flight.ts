import type { Lease } from "@leasehold/client";
import { attributeNames, leaseItemKey } from "@leasehold/client/schema";
import fc from "fast-check";
import type {
  ComputeContext,
  SingleFlight,
  SourcedValue,
} from "../../../packages/client/src/entries/single-flight.ts";
import {
  type CacheEntry,
  cacheSortKey,
  flightSortKey,
} from "../../../packages/client/src/primitives/single-flight/entry.ts";
import {
  Cluster,
  everyMishap,
  type Mishap,
  mishaps,
  type Running,
  WorkError,
  wallErrorMs,
} from "../cluster.ts";
import { drawn, type Scene, type Simulation, saying, stepByStep, without } from "../simulation.ts";
import type { Change } from "../table.ts";
import type { World } from "../world.ts";
import { heldGrant } from "./lease-mistakes.ts";

const processes = 4;
const keys = ["x", "y"] as const;
const freshForMs = 3_000;
/** How far two processes that know the service's time may differ in a value's age. */
const agesDifferByMs = 1_500;
/** How long one call to the service may take, at most. */
const callBudgetMs = 10_000;

export type FlightStep =
  | {
      readonly kind: "call";
      readonly process: number;
      readonly key: string;
      readonly waitMs: number;
      readonly computeMs: number;
      readonly fails: boolean;
      readonly forceRefresh: boolean;
    }
  | { readonly kind: "invalidate"; readonly process: number; readonly key: string };

const step: fc.Arbitrary<FlightStep | Mishap> = fc.oneof(
  drawn(12, "call", {
    process: fc.nat(processes - 1),
    key: fc.constantFrom(...keys),
    waitMs: fc.constantFrom(0, 3_000, 15_000),
    computeMs: fc.integer({ min: 0, max: 8_000 }),
    fails: fc.oneof(
      { weight: 4, arbitrary: fc.constant(false) },
      { weight: 1, arbitrary: fc.constant(true) },
    ),
    forceRefresh: fc.oneof(
      { weight: 3, arbitrary: fc.constant(false) },
      { weight: 1, arbitrary: fc.constant(true) },
    ),
  }),
  drawn(2, "invalidate", {
    process: fc.nat(processes - 1),
    key: fc.constantFrom(...keys),
  }),
  ...mishaps(processes),
);

interface Place {
  readonly flights: SingleFlight;
  /** Counts what makes a caller wait for another reason than another process's computation. */
  interruptions: number;
  /** Shared calls that later callers may join, by key. */
  readonly underWay: Map<string, Set<symbol>>;
  /** The leases of its computations, by key. */
  readonly computing: Map<string, Lease>;
  /** When the last of its own invalidations that have resolved was called, by key. */
  readonly forgottenAt: Map<string, number>;
}

/** An invalidation that has resolved. */
interface Forgotten {
  readonly calledAt: number;
  readonly doneAt: number;
}

/** When a computation began, and gave its value. */
interface Beginning {
  readonly at: number;
  readonly endedAt: number;
  /** How often ttl had removed something by then. */
  readonly collections: number;
}

/** How large a case is. */
interface SiteCase {
  /** @default 4 */
  readonly places?: number;
  /** @default - two of them */
  readonly wanted?: readonly string[];
  /** How long a caller waits at most, in milliseconds, where a stale value could be given to it. @default Infinity */
  readonly staleWithinMs?: number | undefined;
  /** Whether processes keep values, and refresh them ahead. @default false */
  readonly hasLevels?: boolean | undefined;
}

export class Site implements Scene<FlightStep> {
  readonly world: Cluster<Place>;
  readonly #usableForMs: number;
  /** Whether a process has come that does not know the service's time. */
  #isUntold = false;
  readonly #staleWithinMs: number;
  readonly #inProcessForMs: number;
  readonly #produced = new Map<string, Beginning>();
  /** By key. */
  readonly #forgotten = new Map<string, Forgotten[]>();
  readonly #keys: readonly string[];

  constructor(world: World, small: SiteCase = {}) {
    const { places = processes, wanted = keys, staleWithinMs = Number.POSITIVE_INFINITY } = small;
    const { hasLevels = false } = small;
    const staleForMs = world.random.pick([0, 6_000]);
    const failureForMs = world.random.pick([0, 2_000]);
    const inProcessForMs = hasLevels ? world.random.pick([0, 1_000, 2_000]) : 0;
    const refreshAheadMs = hasLevels ? world.random.pick([0, 1_500, 2_500]) : 0;
    const levels = { inProcessForMs, refreshAheadMs };
    this.#inProcessForMs = inProcessForMs;
    this.#keys = wanted;
    this.#usableForMs = freshForMs + staleForMs;
    this.#staleWithinMs = staleWithinMs;
    this.world = new Cluster<Place>(world, {
      processes: places,
      begin: (client, { release }) => ({
        flights: new release.SingleFlight(client, {
          freshForMs,
          staleForMs,
          failureForMs,
          ...(hasLevels && levels),
          onEvent: ({ type }) => type === "refreshFailed" && world.count("refresh ahead failed"),
        }),
        interruptions: 0,
        underWay: new Map(),
        computing: new Map(),
        forgottenAt: new Map(),
      }),
      onChange: (changes) => this.#changed(changes),
      expected: ["LEASE_UNAVAILABLE", "LEASE_CACHED_FAILURE"],
    });
  }

  take(one: FlightStep): void {
    const call = () => (one.kind === "call" ? this.#call(one) : this.#invalidate(one));
    // A process that is frozen begins nothing.
    this.world.at(one.process).process.deliver(call, one.kind);
  }

  async befall(mishap: Mishap): Promise<void> {
    const standsStill = mishap.kind === "freeze" || mishap.kind === "standstill";
    for (const { parts } of this.world.processes) if (standsStill) parts.interruptions += 1;
    await this.world.befall(mishap);
  }

  /** In calm weather everybody gets a value of every key. */
  async end(): Promise<void> {
    const { world } = this;
    await world.clearUp();
    await world.clock.advance(60_000);
    if (world.pending > 0) world.fault(`${world.pending} callers wait for ever`);
    const call = { kind: "call" as const, waitMs: 60_000, computeMs: 200, fails: false, forceRefresh: false };
    const before = world.tally.served ?? 0;
    for (const process of world.processes.keys())
      for (const key of this.#keys) this.#call({ ...call, process, key });
    await world.clock.advance(60_000);
    const served = (world.tally.served ?? 0) - before;
    if (served < world.processes.length * this.#keys.length)
      world.fault(`${served} callers were served in calm weather`);
  }

  #call({
    process,
    key,
    waitMs,
    computeMs,
    fails,
    forceRefresh,
  }: Extract<FlightStep, { kind: "call" }>): void {
    const { world } = this;
    const running = world.at(process);
    const since = world.clock.monotonic();
    const { interruptions } = running.parts;
    const { freezes } = running.process;
    const collections = this.#collections;
    const underWay = running.parts.underWay.get(key) ?? new Set();
    running.parts.underWay.set(key, underWay);
    // A refresh ahead has no caller, and can be joined.
    const isAlone = underWay.size === 0 && running.parts.computing.get(key)?.held !== true;
    const hasStale = !forceRefresh && this.#hasStale(key);
    const settled = (): void => {
      // An own computation, a freeze: then the time is not spent on waiting.
      if (running.parts.interruptions !== interruptions || running.process.isDead) return;
      if (running.process.freezes !== freezes) return;
      const tookMs = world.clock.monotonic() - since;
      world.count(tookMs > waitMs ? "waited for all it had" : "waited less");
      if (tookMs > this.#staleWithinMs && hasStale)
        world.fault(`${running.process.name} waited ${tookMs} ms beside a stale value`);
      if (tookMs > waitMs + callBudgetMs)
        world.fault(`${running.process.name} waited ${tookMs} of ${waitMs} ms`);
    };
    const compute = (context: ComputeContext<string>): Promise<string> =>
      this.#compute(running, context, computeMs, fails);
    const forgotten = this.#forgotten.get(key) ?? [];
    const forgottenHere = running.parts.forgottenAt.get(key);
    const forgottenForMemory = lastOf(forgotten, since - this.#inProcessForMs * longestMeasure);
    const forgottenForLook = isAlone ? lastOf(forgotten, since) : undefined;
    const id = Symbol(key);
    underWay.add(id);
    const call = running.parts.flights
      .getOrComputeWithSource<string>(key, { compute, waitMs, forceRefresh })
      .finally(() => underWay.delete(id));
    call.then(settled, settled);
    const onValue = ({ value, source }: SourcedValue<string>): void => {
      world.count("served");
      const isKept = source === "process";
      if (isKept) world.count("served from the process's memory");
      if ((isKept || source === "cache") && this.#isComputed(key)) world.count("served during a computation");
      const forgottenAt = laterOf(forgottenHere, isKept ? forgottenForMemory : forgottenForLook);
      const isOthers = !value.endsWith(` by ${running.process.name}`);
      const beginning = this.#produced.get(value);
      if (!value.startsWith(key) || beginning === undefined) world.fault(`nobody has computed ${value}`);
      else if (isKept && since - beginning.endedAt > freshForMs + this.#agesDifferByMs)
        world.fault(`${value} was fresh ${since - beginning.endedAt} ms after it was computed`);
      else if (isAlone && since - beginning.endedAt > this.#usableForMs + this.#agesDifferByMs)
        world.fault(`${value} was given ${since - beginning.endedAt} ms after it was computed`);
      else if (forceRefresh) this.#expectRefreshed(since, value, beginning, collections, isOthers);
      else if (forgottenAt !== undefined) this.#expectComputedAfter(forgottenAt, value, beginning);
    };
    world.watch(running, call, onValue);
  }

  #invalidate({ process, key }: Extract<FlightStep, { kind: "invalidate" }>): void {
    const { world } = this;
    const running = world.at(process);
    const calledAt = world.clock.monotonic();
    const onDone = (): void => {
      world.count("invalidated");
      const forgotten = { calledAt, doneAt: world.clock.monotonic() };
      this.#forgotten.set(key, [...(this.#forgotten.get(key) ?? []), forgotten]);
      const { forgottenAt } = running.parts;
      forgottenAt.set(key, Math.max(calledAt, forgottenAt.get(key) ?? 0));
      // In its own process nobody joins what may have begun before.
      running.parts.underWay.delete(key);
    };
    world.watch(running, running.parts.flights.invalidate(key), onDone);
  }

  /** Whether the table has a value that is not fresh now, and can be given for as long as a caller may wait. */
  #hasStale(key: string): boolean {
    const { data = "{}" } = this.world.table.peek(leaseItemKey(key, cacheSortKey)) ?? {};
    const entry: Partial<CacheEntry> = JSON.parse(String(data));
    const { value, freshUntil = Number.POSITIVE_INFINITY, staleUntil = 0 } = entry;
    const now = this.world.clock.now();
    const isPast = now > freshUntil + this.#agesDifferByMs;
    return value !== undefined && isPast && now + this.#staleWithinMs < staleUntil - this.#agesDifferByMs;
  }

  /** Whether a process that holds the key's lease computes. */
  #isComputed(key: string): boolean {
    return this.world.processes.some(
      ({ process, parts }) => !process.isDead && parts.computing.get(key)?.held === true,
    );
  }

  /** Those that do not know the time go by their wall clocks, which are wrong. */
  get #agesDifferByMs(): number {
    this.#isUntold ||= this.world.processes.some(({ process }) => process.dates === "stripped");
    return this.#isUntold ? agesDifferByMs + 2 * wallErrorMs : agesDifferByMs;
  }

  /** Where ttl has removed nothing since: it may have been the mark, or the lock of a computation that stood still. */
  #expectComputedAfter(forgottenAt: number, value: string, beginning: Beginning): void {
    if (beginning.collections !== this.#collections) return;
    this.world.count("served after an invalidation");
    if (beginning.at < forgottenAt) this.world.fault(`${value} was invalidated, and came back`);
  }

  /** Where ttl has removed nothing since: without the lock, tokens may begin again below those of the results. */
  #expectRefreshed(
    calledAt: number,
    value: string,
    beginning: Beginning,
    collections: number,
    isOthers: boolean,
  ): void {
    if (collections !== this.#collections) return;
    this.world.count("refreshed");
    if (isOthers) this.world.count("refreshed by another's computation");
    if (beginning.at < calledAt)
      this.world.fault(`${value} was begun before the refresh that it was given to`);
  }

  get #collections(): number {
    return this.world.tally["ttl removed an item"] ?? 0;
  }

  async #compute(
    { process, parts }: Running<Place>,
    { key, lease }: ComputeContext<string>,
    computeMs: number,
    fails: boolean,
  ): Promise<string> {
    const { world } = this;
    world.count("computation");
    parts.computing.set(key, lease);
    parts.interruptions += 1;
    const beginning = { at: world.clock.monotonic(), collections: this.#collections };
    world.beliefs.add(process, lease, leaseItemKey(key, flightSortKey));
    await process.pause(computeMs);
    parts.interruptions += 1;
    if (!lease.held) world.count("computed without a lease");
    if (fails) throw new WorkError();
    const value = `${key} ${this.#produced.size} by ${process.name}`;
    this.#produced.set(value, { ...beginning, endedAt: world.clock.monotonic() });
    return value;
  }

  /** The result of a later holder is never replaced by that of an earlier one. */
  #changed(changes: readonly Change[]): void {
    for (const { key, before, after } of changes) {
      if (key.sk !== cacheSortKey) continue;
      this.world.count("stored");
      const [was, is] = [Number(before?.[attributeNames.fence] ?? 0), Number(after?.[attributeNames.fence])];
      if (is < was) this.world.fault(`a result with ${was} was replaced by one with ${is}`);
    }
  }
}

/** Hosts measure times up to so much too long. */
const longestMeasure = 1.01;

/** When the last of these invalidations was called that had resolved by a time. */
function lastOf(forgotten: readonly Forgotten[], by: number): number | undefined {
  const done = forgotten.filter(({ doneAt }) => doneAt <= by).map(({ calledAt }) => calledAt);
  return done.length > 0 ? Math.max(...done) : undefined;
}

function laterOf(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.max(one, other);
}

export const singleFlight: Simulation = {
  name: "single-flight",
  claim:
    "single flights compute by one live holder at a time, give what was computed or a named error, and keep nobody waiting",
  worlds: 200,
  mustHappen: [
    "computation",
    "computed without a lease",
    "stored",
    "served",
    "invalidated",
    "served after an invalidation",
    "refreshed",
    "refreshed by another's computation",
    "waited for all it had",
    "waited less",
    ...everyMishap,
    "rejected: LeaseUnavailableError",
    "rejected: CachedFailureError",
    "rejected: WorkError",
    "served from the process's memory",
    "served during a computation",
    "refresh ahead failed",
  ],
  mistakes: {
    ...heldGrant,
    "an earlier holder's result in place of a later one's": [
      without({ of: "fence", test: "<=" }),
      /was replaced by one/,
    ],
    // A mark with the last holder's own fencing token.
    "an invalidation that the last holder can store over": [
      saying(
        ":fence",
        (fence) => Number(fence) - 0.5,
        ({ key, values }) => key.sk === cacheSortKey && !Number.isInteger(values[":fence"]),
      ),
      /was invalidated, and came back/,
    ],
  },
  play: stepByStep({ step, mostSteps: 80, make: (world) => new Site(world, { hasLevels: true }) }),
};
