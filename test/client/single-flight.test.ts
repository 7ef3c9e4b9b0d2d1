import { type Lease, type LeaseClient, LeaseUnavailableError } from "@leasehold/client";
import { beforeEach, describe, expect, test, vi } from "vitest";
import {
  CachedFailureError,
  type CacheEntry,
  CacheUnreadableError,
  type ResultCache,
  SingleFlight,
  type SingleFlightOptions,
} from "../../packages/client/src/entries/single-flight.ts";
import { controlled } from "../support/computations.ts";
import { failureOf } from "../support/failure-of.ts";
import { clock, events, flightsWith, renewFlights, store } from "../support/flights.ts";

const freshForMs = 10_000;
const leaseDurationMs = 3_000;

const flights = flightsWith({ freshForMs }, { leaseDurationMs });

beforeEach(renewFlights);

const sources = (): string[] => events.flatMap((event) => (event.type === "served" ? [event.source] : []));

describe("a value that is missing", () => {
  test("is computed once for 50 callers over 8 clients; the others get the holder's result", async () => {
    const all = Array.from({ length: 8 }, () => flights());
    const compute = vi.fn(async () => {
      await new Promise((resolve) => clock.schedule(() => resolve(undefined), 2_000));
      return { total: 42 };
    });
    const values = Promise.all(
      Array.from({ length: 50 }, (_, index) => all[index % 8]?.getOrCompute("k", { compute })),
    );
    await clock.advance(8_000);
    for (const value of await values) expect(value).toEqual({ total: 42 });
    expect(compute).toHaveBeenCalledTimes(1);
    expect(sources().filter((source) => source === "computation")).toHaveLength(7);
    expect(sources().filter((source) => source === "otherProcess")).toHaveLength(43);
    // Nobody but the holder, and a heartbeat of its, has written more than its first attempt.
    expect(store.count("update") + store.count("updateMany")).toBeLessThanOrEqual(8 + 2 + 2);
  });

  test("costs 1 read for a hit", async () => {
    const shared = flights();
    await shared.getOrCompute("k", { compute: () => 1 });
    store.calls.length = 0;
    expect(await shared.getOrCompute("k", { compute: () => 2 })).toBe(1);
    expect(store.calls).toMatchObject([{ method: "get", consistent: true }]);
    expect(sources()).toEqual(["computation", "cache"]);
  });
});

describe("a holder", () => {
  test("that knows that its lease is over stores nothing, and its computation is told", async () => {
    const cache = new Map<string, CacheEntry>();
    const shared = flights({ cache, heartbeat: false });
    const { compute, run } = controlled();
    const late = shared.getOrCompute("k", { compute });
    await clock.advance(leaseDurationMs);
    expect(run(0).signal.reason).toMatchObject({ code: "LEASE_LOST" });
    run(0).resolve("late");
    expect(await late).toBe("late");
    expect(cache.size).toBe(0);
    expect(events).toContainEqual({ type: "cacheFailed", key: "k", operation: "write", reason: "leaseLost" });
  });
});

describe("a computation that fails", () => {
  /** A computation that fails some times before it succeeds, and when it was begun. */
  function failing(times: number): { readonly compute: () => string; readonly begunAt: number[] } {
    const begunAt: number[] = [];
    const start = clock.monotonic();
    const compute = (): string => {
      begunAt.push(clock.monotonic() - start);
      if (begunAt.length <= times) throw new Error(`down ${begunAt.length}`);
      return "value";
    };
    return { compute, begunAt };
  }

  const backoff = { delayMs: 1_000, maxDelayMs: 3_000 };

  test("is not repeated unless that is asked for", async () => {
    const { compute, begunAt } = failing(1);
    expect(await failureOf(flights().getOrCompute("k", { compute }))).toMatchObject({ message: "down 1" });
    expect(begunAt).toEqual([0]);
  });

  test("is repeated with growing waits, under the same lease, and stored once; an event tells of each attempt", async () => {
    const { compute, begunAt } = failing(3);
    const shared = flights({ maxAttempts: 4, backoff });
    const call = shared.getOrCompute("k", { compute });
    await clock.advance(4_500);
    expect(await call).toBe("value");
    // Three quarters of 1000, 2000 and 3000 ms.
    expect(begunAt).toEqual([0, 750, 2_250, 4_500]);
    expect(events).toMatchObject([
      { type: "computed", attempt: 1, tookMs: 0, error: { message: "down 1" } },
      { type: "computed", attempt: 2, tookMs: 0, error: { message: "down 2" } },
      { type: "computed", attempt: 3, tookMs: 0, error: { message: "down 3" } },
      { type: "computed", attempt: 4, tookMs: 0 },
      { type: "served", source: "computation" },
    ]);
    expect(
      new Set(events.flatMap((event) => (event.type === "computed" ? event.fencingToken : []))),
    ).toHaveLength(1);
  });

  test("fails with its last error when its attempts are used up, and only then is the failure remembered", async () => {
    const { compute, begunAt } = failing(9);
    const failed = failureOf(
      flights({ failureForMs: 5_000 }).getOrCompute("k", { compute, maxAttempts: 2, backoff }),
    );
    const waiting = failureOf(flights({ failureForMs: 5_000 }).getOrCompute("k", { compute }));
    await clock.advance(3_000);
    expect(await failed).toMatchObject({ message: "down 2" });
    expect(await waiting).toMatchObject({
      code: "LEASE_CACHED_FAILURE",
      message: expect.stringContaining("down 2"),
    });
    expect(begunAt).toHaveLength(2);
  });

  test("is not repeated where the wait would end after computeTimeoutMs: the error comes at once, and its own", async () => {
    const { compute, begunAt } = failing(9);
    const shared = flights({ maxAttempts: 9, backoff, computeTimeoutMs: 2_250 });
    const failed = failureOf(shared.getOrCompute("k", { compute }));
    await clock.advance(750);
    expect(await failed).toMatchObject({ message: "down 2" });
    expect(begunAt).toEqual([0, 750]);
  });

  test("is not repeated when nobody waits any more, nor told twice, and its lock is let go", async () => {
    const gone = new AbortController();
    const { compute, begunAt } = failing(9);
    const shared = flights({ maxAttempts: 9, backoff });
    const left = failureOf(shared.getOrCompute("k", { compute, signal: gone.signal }));
    await clock.advance(100);
    gone.abort();
    expect(await left).toMatchObject({ code: "LEASE_ABORTED" });
    await clock.advance(60_000);
    expect(begunAt).toEqual([0]);
    expect(events).toMatchObject([{ type: "computed", attempt: 1, error: { message: "down 1" } }]);
    expect(await flights().getOrCompute("k", { compute: () => "next", waitMs: 0 })).toBe("next");
    expect(clock.pending).toBe(0);
  });

  test("is not repeated for failureForMs, here or elsewhere; then it is", async () => {
    const options = { failureForMs: 2_000 };
    const compute = vi.fn((): string => {
      throw new TypeError("not yet");
    });
    const failure = await failureOf(flights(options).getOrCompute("k", { compute }));
    expect(failure).toBeInstanceOf(TypeError);
    const cached = await failureOf(flights(options).getOrCompute("k", { compute }));
    expect(cached).toBeInstanceOf(CachedFailureError);
    expect(cached).toMatchObject({ failureName: "TypeError", retryAt: clock.now() + 2_000 });
    expect((cached as Error).message).toContain("not yet");
    expect(compute).toHaveBeenCalledTimes(1);
    await clock.advance(2_000);
    expect(await flights(options).getOrCompute("k", { compute: () => "now" })).toBe("now");
  });

  test.each([
    [512, 512],
    [513, 256],
  ])("and says so in %i characters of 2 bytes is remembered with %i of them", async (length, kept) => {
    const cache = new Map<string, CacheEntry>();
    const compute = (): never => {
      throw new Error("é".repeat(length));
    };
    await failureOf(flights({ cache, failureForMs: 2_000 }).getOrCompute("k", { compute }));
    expect(cache.get("k")?.failure).toEqual({ name: "Error", message: "é".repeat(kept) });
  });

  test("because it was cut off is not remembered, and nothing is said of the cache", async () => {
    const keeping = { failureForMs: 60_000, heartbeat: false };
    const { compute, run } = controlled();
    const caller = new AbortController();
    const left = failureOf(flights(keeping).getOrCompute("k", { compute, signal: caller.signal }));
    await clock.advance(0);
    caller.abort();
    run(0).reject(new Error("nobody waits"));
    await left;
    await clock.advance(0);
    const late = failureOf(flights(keeping).getOrCompute("k", { compute }));
    await clock.advance(leaseDurationMs);
    run(1).reject(new Error("its lease was lost"));
    expect(await late).toMatchObject({ message: "its lease was lost" });
    expect(events.filter(({ type }) => type === "cacheFailed")).toEqual([]);
    const next = flights(keeping).getOrCompute("k", { compute: () => "fine" });
    await clock.advance(2 * leaseDurationMs);
    expect(await next).toBe("fine");
  });
});

describe("a stale value", () => {
  const options = { staleForMs: 60_000 };

  test("is not given after its time", async () => {
    await flights(options).getOrCompute("k", { compute: () => "old" });
    await clock.advance(freshForMs + options.staleForMs);
    const { compute, run } = controlled();
    const holder = flights(options).getOrCompute("k", { compute });
    await clock.advance(0);
    const refused = failureOf(flights(options).getOrCompute("k", { compute, waitMs: 0 }));
    await clock.advance(0);
    expect(await refused).toBeInstanceOf(LeaseUnavailableError);
    run(0).resolve("new");
    await holder;
  });
});

describe("a cache", () => {
  test("may be like Keyv or cache-manager: promises, a ttl in milliseconds, null for a miss", async () => {
    /** Their signatures. */
    class KeyvLike {
      readonly ttls: (number | undefined)[] = [];
      readonly #items = new Map<string, unknown>();
      async get<Value>(key: string): Promise<Value | null> {
        return (this.#items.get(key) as Value | undefined) ?? null;
      }
      async set<Value>(key: string, value: Value, ttl?: number): Promise<boolean> {
        this.#items.set(key, JSON.parse(JSON.stringify(value)));
        this.ttls.push(ttl);
        return true;
      }
    }
    const cache = new KeyvLike();
    const shared = flights({ cache, staleForMs: 1_000 });
    expect(await shared.getOrCompute("k", { compute: () => "value" })).toBe("value");
    expect(await flights({ cache }).getOrCompute("k", { compute: () => "other" })).toBe("value");
    expect(cache.ttls).toEqual([freshForMs + 1_000]);
  });

  const times = { freshUntil: 9e15, staleUntil: 9e15, fencingToken: 1 };
  test.each([
    null,
    "text",
    42,
    {},
    { value: 1 },
    times,
    ...["freshUntil", "staleUntil", "fencingToken"].map((name) => ({ ...times, value: 1, [name]: "9e15" })),
    ...[null, "text", {}, { name: "Error" }, { message: "down" }].flatMap((failure) => [
      { ...times, failure },
      { ...times, failure, value: 1 },
    ]),
  ])("that holds something else, has nothing: %o", async (found) => {
    const cache: ResultCache = { get: () => found, set: () => true };
    expect(await flights({ cache }).getOrCompute("k", { compute: () => "value" })).toBe("value");
  });

  test("that holds a failure until a time that no Date has, gives that failure", async () => {
    const cache = new Map([["k", { ...times, failure: { name: "Error", message: "down" } }]]);
    const error = await failureOf(flights({ cache }).getOrCompute("k", { compute: () => "value" }));
    expect(error).toBeInstanceOf(CachedFailureError);
    expect(error).toMatchObject({ retryAt: 9e15, message: expect.stringContaining("from +275760-09-13") });
  });

  test("that holds something else, takes a result in its place", async () => {
    const cache = new Map<string, unknown>([["k", { fencingToken: "9e15" }]]);
    const compute = vi.fn(() => "value");
    expect(await flights({ cache }).getOrCompute("k", { compute })).toBe("value");
    expect(await flights({ cache }).getOrCompute("k", { compute })).toBe("value");
    expect(compute).toHaveBeenCalledTimes(1);
  });

  test("takes a result of the holder whose result it has", async () => {
    const cache = new Map<string, CacheEntry>();
    const compute = ({ lease }: { readonly lease: Lease }): string => {
      cache.set("k", { ...times, value: "its first", fencingToken: lease.fencingToken });
      return "its second";
    };
    await flights({ cache }).getOrCompute("k", { compute });
    expect(cache.get("k")).toMatchObject({ value: "its second" });
  });

  test("that cannot be read makes nobody compute: every caller hears of it", async () => {
    const cause = new Error("connection refused");
    const cache: ResultCache = { get: () => Promise.reject(cause), set: () => true };
    const compute = vi.fn(() => 1);
    const all = Array.from({ length: 50 }, () => flights({ cache }));
    for (const failure of await Promise.all(
      all.map((one) => failureOf(one.getOrCompute("k", { compute }))),
    )) {
      expect(failure).toBeInstanceOf(CacheUnreadableError);
      expect(failure).toMatchObject({ cause });
    }
    expect(compute).not.toHaveBeenCalled();
    expect(store.calls).toEqual([]);
    const told = { type: "cacheFailed", key: "k", operation: "read", reason: "threw", error: cause };
    expect(events).toEqual(all.map(() => told));
  });

  test("that cannot be read for a moment does not end a wait", async () => {
    const cache = new Map<string, CacheEntry>();
    const { compute, run } = controlled();
    const holder = flights({ cache }).getOrCompute("k", { compute });
    await clock.advance(0);
    let reads = 0;
    const flaky: ResultCache = {
      get: (key) => {
        reads += 1;
        if (reads === 2 || reads === 3) throw new Error("for a moment");
        return cache.get(key);
      },
      set: (key, entry) => cache.set(key, entry),
    };
    const waiting = flights({ cache: flaky }).getOrCompute("k", { compute });
    await clock.advance(1_000);
    run(0).resolve("value");
    await holder;
    await clock.advance(10_000);
    expect(await waiting).toBe("value");
    expect(reads).toBeGreaterThan(3);
  });

  test("that never answers holds nobody up for longer than its 10 s", async () => {
    const never = (): Promise<never> => new Promise(() => undefined);
    const unread = failureOf(
      flights({ cache: { get: never, set: never } }).getOrCompute("k", { compute: () => 1 }),
    );
    await clock.advance(10_000);
    expect(await unread).toBeInstanceOf(CacheUnreadableError);
    expect(await unread).toMatchObject({ cause: { message: "no answer within 10000 ms" } });
    const unwritten = flights({ cache: { get: () => undefined, set: never } }).getOrCompute("k", {
      compute: () => 1,
    });
    await clock.advance(10_000);
    expect(await unwritten).toBe(1);
  });

  test("in the table refuses what is not JSON or too large, and lets the lock go", async () => {
    const shared = flights();
    for (const value of [new Date(), { at: Number.NaN }, "x".repeat(400 * 1024)]) {
      const failure = await failureOf(shared.getOrCompute<unknown>("k", { compute: () => value }));
      expect(failure).toMatchObject({ code: "LEASE_INVALID_OPTIONS" });
    }
    expect(await shared.getOrCompute("k", { compute: () => "small", waitMs: 0 })).toBe("small");
  });
});

describe("bad input is refused by its name, before anything is sent:", () => {
  const compute = (): number => 1;
  /** Of a SingleFlight and of a call. */
  const ofBoth: [string, object][] = [
    ["waitMs", { waitMs: 2 ** 31 }],
    ["waitMs", { waitMs: -1 }],
    ["computeTimeoutMs", { computeTimeoutMs: 0 }],
    ["computeTimeoutMs", { computeTimeoutMs: 2 ** 31 }],
    ["retry.strategy", { retry: { strategy: "often" } }],
    ["retry.delayMs", { retry: { strategy: "fixed", delayMs: 0 } }],
    ["staleOnContention", { staleOnContention: "yes" }],
    ["staleOnError", { staleOnError: true }],
    ["staleOnError", { staleOnError: "yes" }],
    ["inProcessForMs", { inProcessForMs: -1 }],
    ["maxAttempts", { maxAttempts: 0 }],
    ["maxAttempts", { maxAttempts: 1_001 }],
    ["maxAttempts", { maxAttempts: 1.5 }],
    ["backoff.delayMs", { backoff: { delayMs: -1 } }],
    ["backoff.maxDelayMs", { backoff: { delayMs: 100, maxDelayMs: 99 } }],
    ["backoff.factor", { backoff: { factor: 2 } }],
  ];

  test.each<[string, object]>([
    ...ofBoth,
    ["freshForMs", { freshForMs: undefined }],
    ["freshForMs", { freshForMs: 0 }],
    ["staleForMs", { staleForMs: -1 }],
    ["staleForMs", { staleOnContention: true }],
    ["failureForMs", { failureForMs: Number.NaN }],
    ["inProcessForMs", { inProcessForMs: 1.5 }],
    ["inProcessForMs", { inProcessForMs: Number.POSITIVE_INFINITY }],
    ["maxInProcess", { maxInProcess: 0 }],
    ["maxInProcess", { maxInProcess: 1_000_001 }],
    ["refreshAheadMs", { refreshAheadMs: -1 }],
    ["refreshAheadMs", { refreshAheadMs: freshForMs }],
    ["cache", { cache: { get: () => undefined } }],
    ["isCacheable", { isCacheable: true }],
    ["heartbeat", { heartbeat: 15_000 }],
    ["onEvent", { onEvent: "log" }],
    ["options.freshFor", { freshFor: 1 }],
  ])("%s of a SingleFlight in %o", (option, options) => {
    expect(() => flights(options)).toThrow(
      expect.objectContaining({ code: "LEASE_INVALID_OPTIONS", option }),
    );
  });

  test.each<[string, object, Partial<SingleFlightOptions>?]>([
    ...ofBoth,
    ["compute", { compute: undefined }],
    ["signal", { signal: {} }],
    ["staleOnContention", { staleOnContention: true }],
    ["staleOnContention", { forceRefresh: true, staleOnContention: true }, { staleForMs: 1 }],
    ["staleOnError", { forceRefresh: true, staleOnError: true }, { staleForMs: 1 }],
    ["inProcessForMs", { inProcessForMs: 5_001 }, { inProcessForMs: 5_000 }],
    ["inProcessForMs", { inProcessForMs: 1, forceRefresh: true }, { inProcessForMs: 5_000 }],
    ["forceRefresh", { forceRefresh: "yes" }],
    ["options.heartbeat", { heartbeat: true }],
  ])("%s of a call in %o", async (option, options, ofFlight = {}) => {
    const failure = await failureOf(flights(ofFlight).getOrCompute("k", { compute, ...options }));
    expect(failure).toMatchObject({ code: "LEASE_INVALID_OPTIONS", option });
    expect(store.calls).toEqual([]);
  });

  test("a key that is none, of a call and of an invalidation, and a client that is none", async () => {
    expect(await failureOf(flights().getOrCompute("", { compute }))).toMatchObject({ option: "key" });
    expect(await failureOf(flights().invalidate(""))).toMatchObject({ option: "key" });
    expect(() => new SingleFlight({} as LeaseClient, { freshForMs })).toThrow(/client/);
    expect(store.calls).toEqual([]);
  });
});
