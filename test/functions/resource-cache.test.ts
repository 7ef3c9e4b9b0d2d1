import { InvalidOptionsError, LeaseClient, LeaseUnavailableError } from "@leasehold/client";
import { ComputationTimeoutError, type SingleFlight } from "@leasehold/client/single-flight";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import {
  type CacheAnswer,
  type CacheRequest,
  type CacheTrouble,
  cached,
  resourceFlights,
  rhythmOf,
  rhythms,
} from "../../functions/resource-cache/cache.ts";
import { follow } from "../support/follow.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

let clock: ManualClock;
let store: ScriptedStore;
let computing: {
  finish: (value: string) => void;
  fail: (error: Error) => void;
  signal: AbortSignal;
}[];
let failures: CacheTrouble[];

const freshForMs = 60_000;

/** What an invocation of another process, or of this one, shares with the later ones there. */
const flightsOf = (times: { inProcessForMs?: number; refreshAheadMs?: number } = {}): SingleFlight =>
  resourceFlights(new LeaseClient({ store, clock }), { freshForMs, ...times }, (event) =>
    failures.push(event),
  );

/** A call of some invocation: each has a client of its own, as if it were another process. */
function get(options: Partial<CacheRequest<string>> = {}): Promise<CacheAnswer<string>> {
  return cached({
    flights: flightsOf(),
    key: "resource-cache/north",
    compute: (signal) => new Promise((finish, fail) => computing.push({ finish, fail, signal })),
    waitMs: 0,
    retry: rhythms.untilExpiry,
    computeTimeoutMs: 200_000,
    now: () => clock.now(),
    ...options,
  });
}

/** A call that computes this value at once. */
function getNow(value: string): Promise<CacheAnswer<string>> {
  return get({ compute: async () => value });
}

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  computing = [];
  failures = [];
});

describe("the resource cache", () => {
  test("says where each value comes from: computed once for many callers, from the cache, and from this process", async () => {
    const answers = Promise.all(
      Array.from({ length: 5 }, () => get({ waitMs: 30_000, retry: rhythms.fullJitter })),
    );
    await settled();
    const computedAt = clock.now();
    await clock.advance(1_000);
    computing[0]?.finish("12 mugs");
    await clock.advance(29_000);
    const given = await answers;
    expect(given.map(({ source }) => source).sort()).toEqual(["computed", ...Array(4).fill("otherCall")]);
    for (const answer of given) expect(answer).toMatchObject({ value: "12 mugs", computedAt });

    const flights = flightsOf({ inProcessForMs: 1_000 });
    const cached = { value: "12 mugs", computedAt, source: "cache" };
    expect(await get({ flights })).toEqual(cached);
    expect(await get({ flights })).toEqual({ ...cached, source: "process" });
    await clock.advance(1_000);
    expect(await get({ flights })).toEqual(cached);
    expect(computing).toHaveLength(1);
    expect(failures).toEqual([]);
  });

  test("gives an old value while another computes, and where the computation fails: then the log hears why", async () => {
    const { computedAt } = await getNow("old");
    const old = { value: "old", source: "stale", computedAt };
    clock.freeze(90_000);
    const first = get();
    await settled();
    expect(await get()).toEqual(old);
    expect(failures).toEqual([]);
    const down = new Error("down");
    computing[0]?.fail(down);
    expect(await first).toEqual(old);
    expect(failures).toMatchObject([{ type: "served", error: down }]);
    clock.freeze(24 * 60 * 60 * 1_000);
    await expect(get({ compute: () => Promise.reject(down) })).rejects.toBe(down);
  });

  test("adds up again in the background what is near its end; where that fails, the log hears why", async () => {
    const flights = flightsOf({ refreshAheadMs: 20_000 });
    const { computedAt } = await getNow("12 mugs");
    await clock.advance(50_000);
    expect(await get({ flights })).toEqual({ value: "12 mugs", source: "cache", computedAt });
    await settled();
    computing[0]?.fail(new Error("down"));
    await settled();
    expect(failures).toMatchObject([{ type: "refreshFailed", error: { message: "down" } }]);
    expect(await get({ flights })).toMatchObject({ value: "12 mugs", source: "cache" });
  });

  test("computes for the next caller 10 s after one that has stopped, whose old value is not kept: the log hears why", async () => {
    const frozen = get();
    await settled();
    // Its timers do not fire, and the clock goes on.
    clock.freeze(9_000);
    await expect(getNow("new")).rejects.toBeInstanceOf(LeaseUnavailableError);
    clock.freeze(3_000);
    expect(await getNow("new")).toMatchObject({ value: "new", source: "computed" });
    computing[0]?.finish("old");
    expect(await frozen).toMatchObject({ value: "old", source: "computed" });
    expect(failures).toMatchObject([{ operation: "write", reason: "leaseLost" }]);
    expect(await get()).toMatchObject({ value: "new", source: "cache" });
  });

  test("cuts off a computation that takes too long, and the next caller computes", async () => {
    const refused = expect(get({ computeTimeoutMs: 5_000 })).rejects.toBeInstanceOf(ComputationTimeoutError);
    await clock.advance(5_000);
    await refused;
    expect(computing[0]?.signal.aborted).toBe(true);
    expect(await getNow("12 mugs")).toMatchObject({ source: "computed" });
  });

  test.each([
    [0, 5 * 150],
    [0.5, 5 * 200],
    [1, 5 * 250],
  ])("by the rhythm random looks five times, 150 to 250 ms apart: by chance %d", async (chance, ms) => {
    void get();
    await settled();
    const randomness = { token: () => crypto.randomUUID(), fraction: () => chance };
    const client = new LeaseClient({ store, clock, randomness });
    const flights = resourceFlights(client, { freshForMs }, () => undefined);
    const began = clock.monotonic();
    const refused = follow(get({ flights, waitMs: 30_000, retry: rhythmOf("random") }), clock);
    await clock.advance(10_000);
    expect(refused).toMatchObject({ error: expect.any(LeaseUnavailableError), at: began + ms });
  });

  test("knows ways to wait by name, and no others", () => {
    expect(rhythmOf("linear")).toMatchObject({ strategy: "linear" });
    for (const odd of ["constructor", "", "linear ", 7, undefined]) {
      expect(() => rhythmOf(odd)).toThrow(InvalidOptionsError);
    }
  });
});
