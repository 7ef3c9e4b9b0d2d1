import { type Lease, type LeaseClient, LeaseUnavailableError } from "@leasehold/client";
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test, vi } from "vitest";
import {
  CachedFailureError,
  type CacheEntry,
  CacheUnreadableError,
  type ResultCache,
  SingleFlight,
  type SingleFlightOptions,
} from "../../packages/client/src/entries/single-flight.ts";
import { singleFlightContract } from "../contract/single-flight-contract.ts";
import { controlled } from "../support/computations.ts";
import { failureOf } from "../support/failure-of.ts";
import { clock, events, flightsWith, renewFlights, store } from "../support/flights.ts";

const freshForMs = 10_000;
const leaseDurationMs = 3_000;

const flights = flightsWith({ freshForMs }, { leaseDurationMs });

beforeEach(renewFlights);

const memory = new MemoryLeaseStore();
singleFlightContract(() => ({ store: memory }));

const requests = (): string[] => store.calls.map(({ method }) => method);
const sources = (): string[] => events.flatMap((event) => (event.type === "served" ? [event.source] : []));

describe("a value that is missing", () => {
  test("is computed once for 50 callers of one process, who share every request", async () => {
    const shared = flights();
    const compute = vi.fn(async () => {
      await new Promise((resolve) => clock.schedule(() => resolve(undefined), 500));
      return "value";
    });
    const values = Promise.all(Array.from({ length: 50 }, () => shared.getOrCompute("k", { compute })));
    await clock.advance(500);
    expect(new Set(await values)).toEqual(new Set(["value"]));
    expect(compute).toHaveBeenCalledTimes(1);
    // Look, acquire, look again, store, release.
    expect(requests()).toEqual(["get", "update", "get", "update", "update"]);
  });

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

  test("costs no second look where the fencing token shows that nobody can have stored since", async () => {
    const shared = flights();
    await shared.getOrCompute("k", { compute: () => 1 });
    await clock.advance(freshForMs);
    store.calls.length = 0;
    expect(await shared.getOrCompute("k", { compute: () => 2 })).toBe(2);
    expect(requests()).toEqual(["get", "update", "update", "update"]);
  });

  test("is looked for again where somebody else has held the lock since", async () => {
    const compute = vi.fn(async () => "first");
    const [one, two] = [flights(), flights()];
    await one.getOrCompute("k", { compute });
    await clock.advance(freshForMs);
    // The second process looks, and is overtaken by a whole computation before it gets to the lock.
    const get = store.get.bind(store);
    let overtake = true;
    store.get = async (request, options) => {
      const item = await get(request, options);
      if (overtake) {
        overtake = false;
        await one.getOrCompute("k", { compute: () => "second" });
      }
      return item;
    };
    expect(await two.getOrCompute("k", { compute })).toBe("second");
    expect(compute).toHaveBeenCalledTimes(1);
    expect(sources()).toEqual(["computation", "computation", "otherProcess"]);
  });

  test("is fresh from the end of its computation on, however long that has taken", async () => {
    const { compute, run } = controlled();
    const value = flights().getOrCompute("k", { compute });
    await clock.advance(freshForMs - 1);
    run(0).resolve("value");
    await value;
    await clock.advance(freshForMs - 1);
    expect(await flights().getOrCompute("k", { compute: () => "newer" })).toBe("value");
    await clock.advance(1);
    expect(await flights().getOrCompute("k", { compute: () => "newer" })).toBe("newer");
  });

  test("waits for each key by itself", async () => {
    const shared = flights();
    const { compute, run } = controlled();
    const slow = shared.getOrCompute("slow", { compute });
    expect(await shared.getOrCompute("quick", { compute: () => "done" })).toBe("done");
    await clock.advance(0);
    run(0).resolve("at last");
    expect(await slow).toBe("at last");
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

  test("that lost its lease before it could compute tells the computation so", async () => {
    const cache: ResultCache = {
      // The second look takes longer than the lease lasts.
      get: vi
        .fn()
        .mockReturnValueOnce(undefined)
        .mockImplementation(async () => clock.freeze(leaseDurationMs)),
      set: () => true,
    };
    const compute = vi.fn(({ signal }: { signal: AbortSignal }) => signal.throwIfAborted());
    expect(await failureOf(flights({ cache }).getOrCompute("k", { compute }))).toMatchObject({
      code: "LEASE_LOST",
    });
  });

  test("keeps its lease for as long as it computes", async () => {
    const { compute, run } = controlled();
    const held = flights().getOrCompute("k", { compute });
    const other = failureOf(flights().getOrCompute("k", { compute, waitMs: 20_000 }));
    await clock.advance(20_000);
    expect(await other).toBeInstanceOf(LeaseUnavailableError);
    // The waiter sees the renewals, and makes no attempt that would be refused.
    expect(store.calls.filter((call) => call.requests.some(({ values }) => ":owner" in values))).toHaveLength(
      2,
    );
    run(0).resolve("done");
    expect(await held).toBe("done");
    expect(compute).toHaveBeenCalledTimes(1);
  });

  test("whose answer to the store got lost has stored all the same", async () => {
    // Acquire passes; the store's answer is lost.
    store.next(undefined, "answer lost");
    expect(await flights().getOrCompute("k", { compute: () => "stored" })).toBe("stored");
    expect(await flights().getOrCompute("k", { compute: () => "again" })).toBe("stored");
  });
});

describe("a computation that fails", () => {
  test("fails with the same error for every caller in the process, lets the lock go, and the next call computes", async () => {
    const shared = flights();
    const { compute, run } = controlled();
    const failures = [1, 2, 3].map(() => failureOf(shared.getOrCompute("k", { compute })));
    await clock.advance(0);
    const error = new Error("no such table");
    run(0).reject(error);
    for (const failure of await Promise.all(failures)) expect(failure).toBe(error);
    expect(await shared.getOrCompute("k", { compute: () => "fine", waitMs: 0 })).toBe("fine");
    expect(events).toContainEqual(expect.objectContaining({ type: "computed", error }));
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
    [1_500, 375],
  ])("and says so in %i characters of 2 bytes is remembered with %i of them", async (length, kept) => {
    const cache = new Map<string, CacheEntry>();
    const compute = (): never => {
      throw new Error("é".repeat(length));
    };
    await failureOf(flights({ cache, failureForMs: 2_000 }).getOrCompute("k", { compute }));
    expect(cache.get("k")?.failure).toEqual({ name: "Error", message: "é".repeat(kept) });
  });

  test("reaches its caller, and is remembered, also if its name and its message are no text", async () => {
    const cache = new Map<string, CacheEntry>();
    const thrown = Object.assign(new Error(), { name: Symbol("mine"), message: { code: 7 } });
    const compute = (): never => {
      throw thrown;
    };
    const call = flights({ cache, failureForMs: 2_000 }).getOrCompute("k", { compute });
    expect(await failureOf(call)).toBe(thrown);
    expect(cache.get("k")?.failure).toEqual({ name: "Symbol(mine)", message: "[object Object]" });
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

describe("a caller's signal and patience", () => {
  test("let that caller go alone", async () => {
    const shared = flights();
    const { compute, run } = controlled();
    const impatient = new AbortController();
    const first = failureOf(shared.getOrCompute("k", { compute, signal: impatient.signal }));
    const second = shared.getOrCompute("k", { compute });
    await clock.advance(0);
    const reason = new Error("enough");
    impatient.abort(reason);
    expect(await first).toMatchObject({ code: "LEASE_ABORTED", key: "k", cause: reason });
    expect(run(0).signal.aborted).toBe(false);
    run(0).resolve("value");
    expect(await second).toBe("value");
  });

  test("end the computation, and free the lock, when nobody waits any more", async () => {
    const shared = flights();
    const { compute, run } = controlled();
    const caller = new AbortController();
    const gone = failureOf(shared.getOrCompute("k", { compute, signal: caller.signal }));
    await clock.advance(0);
    caller.abort();
    await gone;
    await clock.advance(0);
    expect(run(0).signal.aborted).toBe(true);
    expect(await shared.getOrCompute("k", { compute: () => "other", waitMs: 0 })).toBe("other");
    expect(clock.pending).toBe(0);
  });

  test("an aborted signal is refused before anything is sent", async () => {
    const signal = AbortSignal.abort(new Error("before"));
    const failure = failureOf(flights().getOrCompute("k", { compute: () => 1, signal }));
    expect(await failure).toMatchObject({ code: "LEASE_ABORTED", cause: signal.reason });
    expect(store.calls).toEqual([]);
  });

  test("waitMs bounds the wait for another process, for each caller by itself", async () => {
    const { compute, run } = controlled();
    const holder = flights().getOrCompute("k", { compute });
    await clock.advance(0);
    const shared = flights();
    const short = failureOf(shared.getOrCompute("k", { compute, waitMs: 1_000 }));
    const long = shared.getOrCompute("k", { compute, waitMs: 60_000 });
    await clock.advance(1_000);
    expect(await short).toBeInstanceOf(LeaseUnavailableError);
    const none = failureOf(shared.getOrCompute("k", { compute, waitMs: 0 }));
    await clock.advance(5_000);
    expect(await none).toBeInstanceOf(LeaseUnavailableError);
    run(0).resolve("value");
    await clock.advance(10_000);
    expect(await long).toBe("value");
    expect(await holder).toBe("value");
    expect(compute).toHaveBeenCalledTimes(1);
  });
});

describe("a cache elsewhere", () => {
  test("costs a waiter 1 read of the lock for each look, and nobody a request for a hit", async () => {
    const cache = new Map<string, CacheEntry>();
    const { compute, run } = controlled();
    const holder = flights({ cache }, { leaseDurationMs: 600_000 }).getOrCompute("k", { compute });
    await clock.advance(0);
    const value = flights({ cache, retry: { strategy: "fixed", delayMs: 1_000 } }).getOrCompute("k", {
      compute,
    });
    await clock.advance(0);
    store.calls.length = 0;
    await clock.advance(4_000);
    expect(store.calls).toMatchObject(
      Array.from({ length: 4 }, () => ({ method: "get", consistent: false })),
    );
    run(0).resolve("value");
    await holder;
    await clock.advance(1_000);
    expect(await value).toBe("value");
    store.calls.length = 0;
    expect(await flights({ cache }).getOrCompute("k", { compute })).toBe("value");
    expect(store.calls).toEqual([]);
  });
});

describe("a stale value", () => {
  const options = { staleForMs: 60_000 };

  test("is given at once to other processes and other callers while one computes", async () => {
    const shared = flights(options);
    await shared.getOrCompute("k", { compute: () => "old" });
    await clock.advance(freshForMs);
    const { compute, run } = controlled();
    const first = shared.getOrCompute("k", { compute });
    const second = shared.getOrCompute("k", { compute });
    expect(await second).toBe("old");
    expect(await shared.getOrCompute("k", { compute })).toBe("old");
    expect(await flights(options).getOrCompute("k", { compute })).toBe("old");
    run(0).resolve("new");
    expect(await first).toBe("new");
    expect(sources()).toEqual(["computation", "stale", "stale", "stale", "computation"]);
    expect(compute).toHaveBeenCalledTimes(1);
    expect(await flights(options).getOrCompute("k", { compute })).toBe("new");
  });

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

  test("is not given after its time to a caller that joins a computation which began before", async () => {
    await flights(options).getOrCompute("k", { compute: () => "old" });
    await clock.advance(freshForMs + options.staleForMs - 1);
    const shared = flights(options);
    const { compute, run } = controlled();
    const first = shared.getOrCompute("k", { compute });
    await clock.advance(0);
    expect(await shared.getOrCompute("k", { compute })).toBe("old");
    await clock.advance(1);
    const late = shared.getOrCompute("k", { compute });
    run(0).resolve("new");
    expect(await Promise.all([first, late])).toEqual(["new", "new"]);
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

  test("that cannot be read at the second look makes nobody compute, and the lock is let go", async () => {
    const get = vi
      .fn()
      .mockReturnValueOnce(undefined)
      .mockRejectedValueOnce(new Error("gone"))
      .mockReturnValue(undefined);
    const shared = flights({ cache: { get, set: () => true } });
    const compute = vi.fn(() => 1);
    expect(await failureOf(shared.getOrCompute("k", { compute }))).toBeInstanceOf(CacheUnreadableError);
    expect(compute).not.toHaveBeenCalled();
    expect(await shared.getOrCompute("k", { compute, waitMs: 0 })).toBe(1);
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

  test("that cannot be written costs the caller nothing; an event tells", async () => {
    const error = new Error("read-only");
    const cache: ResultCache = { get: () => undefined, set: () => Promise.reject(error) };
    const shared = flights({ cache });
    expect(await shared.getOrCompute("k", { compute: () => "value" })).toBe("value");
    expect(events).toContainEqual({
      type: "cacheFailed",
      key: "k",
      operation: "write",
      reason: "threw",
      error,
    });
    expect(await shared.getOrCompute("k", { compute: () => "again", waitMs: 0 })).toBe("again");
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

  test("in the table leaves its items to ttl, and not before their time", async () => {
    await flights({ staleForMs: 5_000 }).getOrCompute("k", { compute: () => "value" });
    expect(store.table.collectGarbage(clock.now() + freshForMs + 5_000)).toBe(0);
    expect(store.table.collectGarbage(clock.now() + freshForMs + 6_001)).toBe(1);
    expect(store.table.peek({ pk: "k", sk: "cache" })).toBeUndefined();
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

  test("a lease shorter than the client's own clockSkewMs; a default allowance binds nobody", () => {
    const strict = { clockSkewMs: 5_000, leaseDurationMs: 15_000 };
    const refusal = { code: "LEASE_INVALID_OPTIONS", option: "leaseDurationMs", value: 4_999 };
    expect(() => flights({ leaseDurationMs: 4_999 }, strict)).toThrow(expect.objectContaining(refusal));
    expect(() => flights({ leaseDurationMs: 5_000 }, strict)).not.toThrow();
    expect(() => flights({ leaseDurationMs: 100 })).not.toThrow();
  });
});
