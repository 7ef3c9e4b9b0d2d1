import { InvalidOptionsError, LeaseClient, LeaseUnavailableError } from "@leasehold/client";
import {
  type CacheFailedEvent,
  ComputationTimeoutError,
  type ServedEvent,
} from "@leasehold/client/single-flight";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import {
  type CacheAnswer,
  type CacheRequest,
  cached,
  RecentValues,
  resourceFlights,
} from "../../functions/resource-cache/cache.ts";
import { rhythmOf, rhythms } from "../../functions/resource-cache/rhythms.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

let clock: ManualClock;
let store: ScriptedStore;
let computing: {
  finish: (value: string) => void;
  fail: (error: Error) => void;
  signal: AbortSignal;
}[];
let failures: (CacheFailedEvent | ServedEvent)[];

/** A call of some invocation: each has a client of its own, as if it were another process. */
function get(options: Partial<CacheRequest<string>> = {}): Promise<CacheAnswer<string>> {
  return cached({
    flights: resourceFlights(new LeaseClient({ store, clock }), 60_000, (event) => failures.push(event)),
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

  test("a refresh computes again although the value is fresh, and the next caller gets the new one", async () => {
    await getNow("12 mugs");
    await clock.advance(10);
    expect(await get({ compute: async () => "13 mugs", forceRefresh: true })).toMatchObject({
      value: "13 mugs",
      source: "computed",
    });
    expect(await get()).toMatchObject({ value: "13 mugs", source: "cache" });
  });

  describe("what a process keeps in front of the table", () => {
    const freshForMs = 60_000;

    test("is given again for its time without a request, and then the table's", async () => {
      const recent = new RecentValues(1_000, freshForMs);
      const first = await get({ recent, compute: async () => "12 mugs" });
      const before = store.calls.length;
      await clock.advance(999);
      expect(await get({ recent })).toEqual({ ...first, source: "process" });
      expect(store.calls).toHaveLength(before);
      await clock.advance(1);
      expect(await get({ recent })).toEqual({ ...first, source: "cache" });
    });

    test("is never given longer than it is fresh", async () => {
      const recent = new RecentValues(10 * freshForMs, freshForMs);
      await get({ recent, compute: async () => "12 mugs" });
      await clock.advance(freshForMs);
      expect(await get({ recent, compute: async () => "13 mugs" })).toMatchObject({ value: "13 mugs" });
    });

    test("is passed by a refresh, and holds its value afterwards", async () => {
      const recent = new RecentValues(10_000, freshForMs);
      await get({ recent, compute: async () => "12 mugs" });
      await clock.advance(1);
      const refreshed = await get({ recent, compute: async () => "13 mugs", forceRefresh: true });
      expect(refreshed).toMatchObject({ value: "13 mugs", source: "computed" });
      expect(await get({ recent })).toMatchObject({ value: "13 mugs", source: "process" });
    });

    test("is not an old value that stands in for a new one", async () => {
      const recent = new RecentValues(10_000, freshForMs);
      await getNow("12 mugs");
      await clock.advance(freshForMs);
      const fails = { recent, compute: () => Promise.reject(new Error("down")) };
      expect(await get(fails)).toMatchObject({ value: "12 mugs", source: "stale" });
      expect(await get({ recent, compute: async () => "13 mugs" })).toMatchObject({
        value: "13 mugs",
        source: "computed",
      });
    });

    test("is nothing with a time of 0, nor where the clock went back, and at most 1,000 values", async () => {
      const answer: CacheAnswer<number> = { value: 1, computedAt: 1_000, source: "cache" };
      const none = new RecentValues(0, freshForMs);
      none.keep("k", answer, 1_000);
      expect(none.get("k", 1_000)).toBeUndefined();
      const some = new RecentValues(500, freshForMs);
      some.keep("first", answer, 1_000);
      expect(some.get("first", 1_000)).toBe(answer);
      expect(some.get("first", 999)).toBeUndefined();
      for (let index = 0; index < 1_000; index += 1) some.keep(`k${index}`, answer, 1_000);
      expect(some.get("first", 1_000)).toBeUndefined();
      expect(some.get("k0", 1_000)).toBe(answer);
    });
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
        flights: resourceFlights(client, 60_000, () => undefined),
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

  test("a value that is fresh costs one read and no lock", async () => {
    await getNow("12 mugs");
    const before = store.calls.length;
    expect(await get()).toMatchObject({ value: "12 mugs", source: "cache" });
    expect(store.calls.slice(before).map(({ method }) => method)).toEqual(["get"]);
  });

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

  test("without an old value the refusal comes through, after the wait and not before", async () => {
    const first = get();
    await settled();
    let refused: unknown;
    const second = get({ waitMs: 3_000 }).catch((error: unknown) => {
      refused = error;
    });
    await clock.advance(2_900);
    expect(refused).toBeUndefined();
    await clock.advance(200);
    await second;
    expect(refused).toBeInstanceOf(LeaseUnavailableError);
    computing[0]?.finish("12 mugs");
    await first;
  });

  test("a computation keeps the lock by its heartbeat", async () => {
    const first = get();
    await clock.advance(120_000);
    await expect(get()).rejects.toBeInstanceOf(LeaseUnavailableError);
    computing[0]?.finish("12 mugs");
    expect(await first).toMatchObject({ source: "computed" });
  });

  test("a computation that fails lets the lock go, and the next caller computes", async () => {
    const first = get();
    await settled();
    computing[0]?.fail(new Error("the disk is full"));
    await expect(first).rejects.toThrow("the disk is full");
    expect(await getNow("12 mugs")).toMatchObject({ source: "computed" });
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

  test("the next caller computes after one that died while it computed", async () => {
    void get();
    await settled();
    // The dead one's timers never fire again.
    clock.freeze(15_000);
    expect(await getNow("12 mugs")).toMatchObject({ value: "12 mugs", source: "computed" });
  });

  test("ways to wait have names, and no others", () => {
    expect(rhythmOf("linear")).toMatchObject({ strategy: "linear" });
    for (const odd of ["constructor", "", "linear ", 7, undefined]) {
      expect(() => rhythmOf(odd)).toThrow(InvalidOptionsError);
    }
  });
});
