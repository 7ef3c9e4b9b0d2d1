import { LeaseError } from "@leasehold/client";
import { attributeNames, leaseItemKey } from "@leasehold/client/schema";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cacheSortKey, flightSortKey } from "../../packages/client/src/schema-cache.ts";
import { type ComputeContext, SingleFlight } from "../../packages/client/src/single-flight/index.ts";
import { Beliefs } from "../support/simulated-beliefs.ts";
import type { Change } from "../support/simulated-table.ts";
import type { Tamper } from "../support/simulated-weather.ts";
import {
  type Mishap,
  mishaps,
  type Running,
  SimulatedWorld,
  type Tally,
} from "../support/simulated-world.ts";
import { expectToHaveHappened, play, runs, violationOf, without } from "../support/simulations.ts";

const processes = 4;
const keys = ["x", "y"] as const;
/** How long one call to the service may take, at most. */
const callBudgetMs = 10_000;

type Step =
  | Mishap
  | {
      readonly kind: "call";
      readonly process: number;
      readonly key: string;
      readonly waitMs: number;
      readonly computeMs: number;
      readonly fails: boolean;
    };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      kind: fc.constant("call" as const),
      process: fc.nat(processes - 1),
      key: fc.constantFrom(...keys),
      waitMs: fc.constantFrom(0, 3_000, 15_000),
      computeMs: fc.integer({ min: 0, max: 8_000 }),
      fails: fc.oneof(
        { weight: 4, arbitrary: fc.constant(false) },
        { weight: 1, arbitrary: fc.constant(true) },
      ),
    }),
  },
  ...mishaps(processes),
);

/** For how long a result is kept. */
interface Keeping {
  readonly staleForMs: number;
  readonly failureForMs: number;
}

const keeping: fc.Arbitrary<Keeping> = fc.record({
  staleForMs: fc.constantFrom(0, 6_000),
  failureForMs: fc.constantFrom(0, 2_000),
});

interface Place {
  readonly flights: SingleFlight;
  /** Counts what makes a caller wait for another reason than another process's computation. */
  interruptions: number;
}

class Site {
  readonly world: SimulatedWorld<Place>;
  readonly #beliefs: Beliefs;
  readonly #produced = new Set<unknown>();

  constructor(seed: number, { staleForMs, failureForMs }: Keeping, tally: Tally, tamper?: Tamper) {
    this.world = new SimulatedWorld<Place>(seed, tally, {
      processes,
      begin: (client) => ({
        flights: new SingleFlight(client, { freshForMs: 3_000, staleForMs, failureForMs }),
        interruptions: 0,
      }),
      onChange: (changes) => this.#changed(changes),
      ...(tamper ? { tamper } : {}),
    });
    this.#beliefs = new Beliefs(this.world);
  }

  async take(one: Step): Promise<void> {
    // A process that is frozen begins nothing.
    if (one.kind === "call") this.world.processes[one.process]?.process.deliver(() => this.#call(one));
    else {
      const standsStill = one.kind === "freeze" || one.kind === "standstill";
      for (const { parts } of this.world.processes) if (standsStill) parts.interruptions += 1;
      await this.world.befall(one);
    }
    await this.world.clock.advance(0);
  }

  /** In calm weather everybody gets a value of every key. */
  async expectValuesForAll(): Promise<void> {
    const { world } = this;
    await world.clearUp();
    await world.clock.advance(60_000);
    if (world.pending > 0) world.fault(`${world.pending} callers wait for ever`);
    const call = { kind: "call" as const, waitMs: 60_000, computeMs: 200, fails: false };
    const before = world.tally.served ?? 0;
    for (const process of world.processes.keys())
      for (const key of keys) this.#call({ ...call, process, key });
    await world.clock.advance(60_000);
    const served = (world.tally.served ?? 0) - before;
    if (served < processes * keys.length) world.fault(`${served} callers were served in calm weather`);
  }

  #call({ process, key, waitMs, computeMs, fails }: Extract<Step, { kind: "call" }>): void {
    const { world } = this;
    const running = world.processes[process];
    if (running === undefined) return;
    const since = world.clock.monotonic();
    const { interruptions } = running.parts;
    const settled = (): void => {
      // An own computation, a freeze: then the time is not spent on waiting.
      if (running.parts.interruptions !== interruptions || running.process.isDead) return;
      const tookMs = world.clock.monotonic() - since;
      world.count(tookMs > waitMs ? "waited for all it had" : "waited less");
      if (tookMs > waitMs + callBudgetMs)
        world.fault(`${running.process.name} waited ${tookMs} of ${waitMs} ms`);
    };
    const compute = (context: ComputeContext<string>): Promise<string> =>
      this.#compute(running, context, computeMs, fails);
    const call = running.parts.flights.getOrCompute(key, { compute, waitMs });
    call.then(settled, settled);
    const onValue = (value: string): void => {
      world.count("served");
      if (!value.startsWith(key) || !this.#produced.has(value)) world.fault(`nobody has computed ${value}`);
    };
    world.watch(running, call, onValue, isExpected);
  }

  async #compute(
    { process, parts }: Running<Place>,
    { key, lease }: ComputeContext<string>,
    computeMs: number,
    fails: boolean,
  ): Promise<string> {
    const { world } = this;
    world.count("computation");
    parts.interruptions += 1;
    this.#beliefs.add(process, lease, leaseItemKey(key, flightSortKey));
    await process.pause(computeMs);
    parts.interruptions += 1;
    if (!lease.held) world.count("computed without a lease");
    if (fails) throw new WorkError();
    const value = `${key} ${this.#produced.size} by ${process.name}`;
    this.#produced.add(value);
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
    this.#beliefs.check();
  }
}

class WorkError extends Error {
  override readonly name = "WorkError";
}

const expectedCodes = ["LEASE_UNAVAILABLE", "LEASE_NO_ANSWER", "LEASE_CACHED_FAILURE"];

function isExpected(error: unknown): boolean {
  return error instanceof WorkError || (error instanceof LeaseError && expectedCodes.includes(error.code));
}

function sites(tally: Tally, tamper?: Tamper): fc.IAsyncProperty<[number, Keeping, Step[]]> {
  const steps = fc.array(step, { minLength: 30, maxLength: 80 });
  return fc.asyncProperty(fc.integer(), keeping, steps, async (seed, kept, all) => {
    const site = new Site(seed, kept, tally, tamper);
    await play(site, all, () => site.expectValuesForAll());
  });
}

describe("single flights under delays, lost and late answers, lagging reads, freezes, deaths, ttl and clocks that differ", () => {
  it("compute by one live holder at a time, give what was computed or a named error, and keep nobody waiting", async () => {
    const tally: Tally = {};
    await fc.assert(sites(tally), { seed: 1, numRuns: runs(200) });
    expectToHaveHappened(
      tally,
      "computation",
      "computed without a lease",
      "stored",
      "served",
      "waited for all it had",
      "waited less",
      "takeover",
      "death",
      "request lost",
      "answer lost",
      "sent twice",
      "late arrival",
      "ttl removed an item",
      "rejected: LeaseUnavailableError",
      "rejected: CachedFailureError",
      "rejected: WorkError",
    );
  });

  it.each([
    ["a takeover of a holder that has renewed", without("#version = :judgedVersion"), /believes to hold/],
    [
      "a second holder beside the first",
      without("attribute_not_exists(#token)", isGrant),
      /believes to hold/,
    ],
    [
      "an earlier holder's result in place of a later one's",
      without("#fence <= :fence"),
      /was replaced by one/,
    ],
  ])("are seen through: %s", async (_, mistake, violation) => {
    expect(await violationOf(sites({}, mistake))).toMatch(violation);
  });
});

function isGrant({ values }: { readonly values: object }): boolean {
  return ":acquiredAt" in values;
}
