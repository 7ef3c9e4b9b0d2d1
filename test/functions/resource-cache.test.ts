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
  test("of many callers at once one computes, and the others get its value", async () => {
    const answers = Promise.all(
      Array.from({ length: 5 }, () => get({ waitMs: 30_000, retry: rhythms.fullJitter })),
    );
    await settled();
    expect(computing).toHaveLength(1);
    const computedAt = clock.now();
    await clock.advance(1_000);
    computing[0]?.finish("12 mugs");
    await clock.advance(29_000);
    const given = await answers;
    expect(given.map(({ source }) => source).sort()).toEqual(["computed", ...Array(4).fill("otherCall")]);
    for (const answer of given) expect(answer).toMatchObject({ value: "12 mugs", computedAt });
    expect(computing).toHaveLength(1);
  });

  describe("what a process keeps in front of the table", () => {
    test("is given again for its time without a request, and then the table's", async () => {
      const flights = flightsOf({ inProcessForMs: 1_000 });
      const first = await get({ flights, compute: async () => "12 mugs" });
      const before = store.calls.length;
      await clock.advance(999);
      expect(await get({ flights })).toEqual({ ...first, source: "process" });
      expect(store.calls).toHaveLength(before);
      await clock.advance(1);
      expect(await get({ flights })).toEqual({ ...first, source: "cache" });
    });
  });

  test("a value near its end is given at once, and added up again in the background; where that fails, the log hears why", async () => {
    const flights = flightsOf({ refreshAheadMs: 20_000 });
    const { computedAt } = await getNow("12 mugs");
    await clock.advance(50_000);
    expect(await get({ flights })).toEqual({ value: "12 mugs", source: "cache", computedAt });
    await settled();
    computing[0]?.finish("13 mugs");
    await settled();
    expect(await get({ flights })).toMatchObject({ value: "13 mugs", source: "cache" });

    await clock.advance(50_000);
    await get({ flights });
    await settled();
    computing[1]?.fail(new Error("down"));
    await settled();
    expect(failures).toMatchObject([{ type: "refreshFailed", error: { message: "down" } }]);
    expect(await get({ flights })).toMatchObject({ value: "13 mugs", source: "cache" });
  });

  test.each([
    [0, 5 * 150],
    [0.5, 5 * 200],
    [1, 5 * 250],
  ])(
    "a caller looks five times, 150 to 250 ms apart, and is refused then: by chance %d",
    async (chance, ms) => {
      const holder = get();
      await settled();
      const randomness = { token: () => crypto.randomUUID(), fraction: () => chance };
      const client = new LeaseClient({ store, clock, randomness });
      const began = clock.now();
      const refused = get({
        flights: resourceFlights(client, { freshForMs }, () => undefined),
        waitMs: 30_000,
        retry: rhythmOf("random"),
      }).then(
        () => undefined,
        (error: unknown) => ({ error, afterMs: clock.now() - began }),
      );
      await clock.advance(10_000);
      const { error, afterMs } = (await refused) ?? {};
      expect(error).toBeInstanceOf(LeaseUnavailableError);
      expect(afterMs).toBe(ms);
      computing[0]?.finish("12 mugs");
      await holder;
    },
  );

  test("while another computes, the old value is better than none", async () => {
    const { computedAt } = await getNow("old");
    clock.freeze(90_000);
    const first = get();
    await settled();
    expect(await get()).toEqual({ value: "old", source: "stale", computedAt });
    computing[0]?.finish("new");
    expect(await first).toMatchObject({ value: "new", source: "computed" });
    expect(await get()).toMatchObject({ value: "new", source: "cache" });
  });

  test("where the computation fails, the old value is given, and the log hears why", async () => {
    const { computedAt } = await getNow("old");
    clock.freeze(90_000);
    const down = new Error("down");
    const answer = await get({ compute: () => Promise.reject(down) });
    expect(answer).toEqual({ value: "old", source: "stale", computedAt });
    expect(failures).toMatchObject([{ type: "served", error: down }]);
  });

  test("a computation that takes too long is cut off, and the next caller computes", async () => {
    const first = get({ computeTimeoutMs: 5_000 });
    const refused = expect(first).rejects.toBeInstanceOf(ComputationTimeoutError);
    await clock.advance(5_000);
    await refused;
    expect(computing[0]?.signal.aborted).toBe(true);
    expect(await getNow("12 mugs")).toMatchObject({ source: "computed" });
  });

  test("a caller that was frozen beyond its lease cannot put its old value over its successor's", async () => {
    const frozen = get();
    await settled();
    // Its timers do not fire, and the clock goes on.
    clock.freeze(15_000);
    expect(await getNow("new")).toMatchObject({ value: "new", source: "computed" });

    computing[0]?.finish("old");
    expect(await frozen).toMatchObject({ value: "old", source: "computed" });
    expect(failures).toMatchObject([{ operation: "write", reason: "leaseLost" }]);
    expect(await get()).toMatchObject({ value: "new", source: "cache" });
  });

  test("ways to wait have names, and no others", () => {
    expect(rhythmOf("linear")).toMatchObject({ strategy: "linear" });
    for (const odd of ["constructor", "", "linear ", 7, undefined]) {
      expect(() => rhythmOf(odd)).toThrow(InvalidOptionsError);
    }
  });
});
