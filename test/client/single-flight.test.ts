import {
  type Lease,
  LeaseClient,
  type LeaseClientOptions,
  LeaseServiceError,
  LeaseUnavailableError,
} from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test, vi } from "vitest";
import {
  CachedFailureError,
  type CacheEntry,
  CacheUnreadableError,
  ComputationTimeoutError,
  type ResultCache,
  SingleFlight,
  type SingleFlightEvent,
  type SingleFlightOptions,
} from "../../packages/client/src/entries/single-flight.ts";
import { controlled } from "../support/computations.ts";
import { failureOf } from "../support/failure-of.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const freshForMs = 10_000;
const leaseDurationMs = 3_000;

let clock: ManualClock;
let store: ScriptedStore;
let events: SingleFlightEvent[];

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  events = [];
});

function flights(
  options: Partial<SingleFlightOptions> = {},
  clientOptions: Partial<LeaseClientOptions> = {},
): SingleFlight {
  const client = new LeaseClient({ store, clock, leaseDurationMs, ...clientOptions });
  return new SingleFlight(client, { freshForMs, onEvent: (event) => events.push(event), ...options });
}

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

  test("may be null, but not undefined, which no cache can tell from nothing", async () => {
    const shared = flights();
    expect(await shared.getOrCompute("null", { compute: () => null })).toBeNull();
    expect(await shared.getOrCompute("null", { compute: () => 1 as unknown as null })).toBeNull();
    const refused = failureOf(shared.getOrCompute("undefined", { compute: () => undefined }));
    expect(await refused).toMatchObject({ code: "LEASE_INVALID_OPTIONS", option: "compute's result" });
    expect(await shared.getOrCompute("undefined", { compute: () => 1 as number | undefined })).toBe(1);
  });
});

describe("a holder", () => {
  test("that dies is replaced by exactly one other", async () => {
    const dead = flights({}, { clock: new ManualClock() });
    const { compute: never } = controlled();
    void failureOf(dead.getOrCompute("k", { compute: never }));
    await clock.advance(0);
    expect(never).toHaveBeenCalledTimes(1);

    // Its clock stands still, so that it renews no more.
    const compute = vi.fn(async () => "rescued");
    const values = Promise.all(Array.from({ length: 8 }, () => flights().getOrCompute("k", { compute })));
    await clock.advance(12_000);
    expect(await values).toEqual(Array.from({ length: 8 }, () => "rescued"));
    expect(compute).toHaveBeenCalledTimes(1);
  });

  test("that was frozen does not overwrite the result of the one that replaced it", async () => {
    const frozen = flights({}, { clock: new ManualClock() });
    const { compute, run } = controlled();
    const late = frozen.getOrCompute("k", { compute });
    await clock.advance(0);
    const taken = flights().getOrCompute("k", { compute: () => "newer" });
    await clock.advance(8_000);
    expect(await taken).toBe("newer");

    events.length = 0;
    run(0).resolve("older");
    expect(await late).toBe("older");
    expect(events).toContainEqual(expect.objectContaining({ type: "cacheFailed", reason: "refused" }));
    expect(await flights().getOrCompute("k", { compute: () => "third" })).toBe("newer");
  });

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

  test("whose answer to the acquisition got lost leaves nothing behind, and the next call computes", async () => {
    store.next("answer lost");
    const shared = flights();
    const failure = await failureOf(shared.getOrCompute("k", { compute: () => "value" }));
    expect(failure).toBeInstanceOf(LeaseServiceError);
    await clock.advance(0);
    expect(await shared.getOrCompute("k", { compute: () => "value", waitMs: 0 })).toBe("value");
  });

  test("whose release got lost has delivered; the next miss waits for the end of its lease at most", async () => {
    store.next(undefined, undefined, "request lost");
    const shared = flights();
    expect(await shared.getOrCompute("k", { compute: () => "first" })).toBe("first");
    await clock.advance(freshForMs);
    expect(await shared.getOrCompute("k", { compute: () => "second" })).toBe("second");
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

  test("is taken on by a waiter elsewhere as soon as that sees the lock free", async () => {
    const { compute, run } = controlled();
    const failed = failureOf(flights().getOrCompute("k", { compute }));
    await clock.advance(0);
    const other = flights().getOrCompute("k", { compute: () => "fine" });
    await clock.advance(0);
    run(0).reject(new Error("once"));
    await clock.advance(500);
    expect(await failed).toMatchObject({ message: "once" });
    expect(await other).toBe("fine");
  });

  test("that throws at once is a failure like any other", async () => {
    const compute = (): never => {
      throw new RangeError("at once");
    };
    expect(await failureOf(flights().getOrCompute("k", { compute }))).toBeInstanceOf(RangeError);
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

  test("reaches waiters elsewhere as a cached failure", async () => {
    const options = { failureForMs: 5_000 };
    const { compute, run } = controlled();
    const failed = failureOf(flights(options).getOrCompute("k", { compute }));
    await clock.advance(0);
    const waiting = failureOf(flights(options).getOrCompute("k", { compute }));
    await clock.advance(0);
    run(0).reject(new Error("down"));
    await clock.advance(1_000);
    expect(await failed).toMatchObject({ message: "down" });
    expect(await waiting).toBeInstanceOf(CachedFailureError);
    expect(compute).toHaveBeenCalledTimes(1);
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

  test("does not cost the earlier result that may stand in", async () => {
    const options = { failureForMs: 1_000, staleForMs: 60_000 };
    await flights(options).getOrCompute("k", { compute: () => "old" });
    await clock.advance(freshForMs);
    await failureOf(flights(options).getOrCompute("k", { compute: () => Promise.reject(new Error("down")) }));
    await clock.advance(1_000);
    const { compute, run } = controlled();
    const newer = flights(options).getOrCompute("k", { compute });
    await clock.advance(0);
    expect(await flights(options).getOrCompute("k", { compute })).toBe("old");
    run(0).resolve("new");
    expect(await newer).toBe("new");
  });

  test("is cut off after computeTimeoutMs: its signal aborts, the lock is free, its late result is dropped", async () => {
    const shared = flights({ computeTimeoutMs: 5_000 });
    const { compute, run } = controlled();
    const failure = failureOf(shared.getOrCompute("k", { compute }));
    await clock.advance(5_000);
    expect(await failure).toBeInstanceOf(ComputationTimeoutError);
    expect(run(0).signal.reason).toBe(await failure);
    run(0).resolve("too late");
    await clock.advance(0);
    expect(await shared.getOrCompute("k", { compute: () => "next", waitMs: 0 })).toBe("next");
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

  test("waitMs does not count while this process computes, even after it has waited for another", async () => {
    const { compute, run } = controlled();
    const failed = failureOf(flights().getOrCompute("k", { compute }));
    await clock.advance(0);
    const retry = { strategy: "fixed", delayMs: 500 } as const;
    const value = flights().getOrCompute("k", { compute, retry, waitMs: 2_000 });
    await clock.advance(1_000);
    run(0).reject(new Error("once"));
    await clock.advance(900);
    await failed;
    expect(compute).toHaveBeenCalledTimes(2);
    await clock.advance(5_000);
    run(1).resolve("value");
    expect(await value).toBe("value");
  });

  test("a wait costs 1 query for each look, ever more rarely, and no write", async () => {
    const { compute, run } = controlled();
    const holder = flights({ freshForMs: 60_000 }, { clock: new ManualClock(), leaseDurationMs: 600_000 });
    void failureOf(holder.getOrCompute("k", { compute }));
    await clock.advance(0);
    const waiting = flights({ retry: { strategy: "exponential", delayMs: 100, maxDelayMs: 10_000 } });
    const value = waiting.getOrCompute("k", { compute });
    await clock.advance(0);
    store.calls.length = 0;
    await clock.advance(6_300);
    expect(store.calls).toMatchObject(
      Array.from({ length: 6 }, () => ({ method: "query", consistent: true })),
    );
    run(0).resolve("value");
    await clock.advance(6_400);
    expect(await value).toBe("value");
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

  test("of each process's own has every process compute, though one at a time", async () => {
    let atOnce = 0;
    let most = 0;
    const compute = vi.fn(async () => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      await new Promise((resolve) => clock.schedule(() => resolve(undefined), 300));
      atOnce -= 1;
      return "value";
    });
    const each = Array.from({ length: 4 }, () =>
      flights({ cache: new Map() }).getOrCompute("k", { compute }),
    );
    await clock.advance(20_000);
    await Promise.all(each);
    expect(compute).toHaveBeenCalledTimes(4);
    expect(most).toBe(1);
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

  test("is shown to the computation", async () => {
    const shared = flights(options);
    await shared.getOrCompute("k", { compute: () => 1 });
    await clock.advance(freshForMs);
    const value = await shared.getOrCompute<number>("k", { compute: ({ stale }) => (stale ?? 0) + 1 });
    expect(value).toBe(2);
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

  test("is not given where that is not wanted", async () => {
    const unwanted = { ...options, staleOnContention: false };
    await flights(unwanted).getOrCompute("k", { compute: () => "old" });
    await clock.advance(freshForMs);
    const { compute, run } = controlled();
    const first = flights(unwanted).getOrCompute("k", { compute });
    await clock.advance(0);
    const second = flights(unwanted).getOrCompute("k", { compute });
    await clock.advance(0);
    run(0).resolve("new");
    await clock.advance(1_000);
    expect([await first, await second]).toEqual(["new", "new"]);
  });

  test("is given when the service cannot be had for the lock", async () => {
    const cache = new Map<string, CacheEntry>();
    const shared = flights({ ...options, cache });
    await shared.getOrCompute("k", { compute: () => "old" });
    await clock.advance(freshForMs);
    store.weather = "throttled";
    const compute = vi.fn(() => "new");
    expect(await shared.getOrCompute("k", { compute })).toBe("old");
    expect(compute).not.toHaveBeenCalled();
    await clock.advance(options.staleForMs);
    expect(await failureOf(shared.getOrCompute("k", { compute }))).toBeInstanceOf(LeaseServiceError);
  });
});

describe("a cache", () => {
  test("may be a Map", async () => {
    const cache = new Map<string, CacheEntry>();
    const compute = vi.fn(() => ["value"]);
    const shared = flights({ cache });
    expect(await shared.getOrCompute("k", { compute })).toEqual(["value"]);
    expect(await shared.getOrCompute("k", { compute })).toEqual(["value"]);
    expect(compute).toHaveBeenCalledTimes(1);
    expect(JSON.parse(JSON.stringify(cache.get("k")))).toEqual(cache.get("k"));
  });

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

  test("in the table that is cut short by ttl is computed again", async () => {
    await flights().getOrCompute("k", { compute: () => "old" });
    store.table.collectGarbage(Number.POSITIVE_INFINITY);
    expect(await flights().getOrCompute("k", { compute: () => "new" })).toBe("new");
  });
});

describe("bad input", () => {
  const client = (): LeaseClient => new LeaseClient({ store, clock });
  const bad: [string, Record<string, unknown>][] = [
    ["freshForMs", {}],
    ["freshForMs", { freshForMs: 0 }],
    ["staleForMs", { freshForMs, staleForMs: -1 }],
    ["staleForMs", { freshForMs, staleOnContention: true }],
    ["staleOnContention", { freshForMs, staleOnContention: "yes" }],
    ["failureForMs", { freshForMs, failureForMs: Number.NaN }],
    ["computeTimeoutMs", { freshForMs, computeTimeoutMs: 0 }],
    ["waitMs", { freshForMs, waitMs: 2 ** 31 }],
    ["cache", { freshForMs, cache: { get: () => undefined } }],
    ["heartbeat", { freshForMs, heartbeat: 15_000 }],
    ["retry.strategy", { freshForMs, retry: { strategy: "often" } }],
    ["onEvent", { freshForMs, onEvent: "log" }],
    ["options.freshFor", { freshForMs, freshFor: 1 }],
  ];

  test.each(bad)("%s is refused in %o", (option, options) => {
    const make = (): unknown => new SingleFlight(client(), options as unknown as SingleFlightOptions);
    expect(make).toThrow(expect.objectContaining({ code: "LEASE_INVALID_OPTIONS", option }));
  });

  test("a lease shorter than the client's own clockSkewMs is refused; a default allowance binds nobody", () => {
    const strict = new LeaseClient({ store, clock, clockSkewMs: 5_000 });
    const make = (itsClient: LeaseClient, leaseDurationMs: number) => () =>
      new SingleFlight(itsClient, { freshForMs, leaseDurationMs });
    expect(make(strict, 4_999)).toThrow(
      expect.objectContaining({ code: "LEASE_INVALID_OPTIONS", option: "leaseDurationMs", value: 4_999 }),
    );
    expect(make(strict, 5_000)).not.toThrow();
    expect(make(client(), 100)).not.toThrow();
  });

  test("a call is refused before anything is sent", async () => {
    const shared = flights();
    const call = (key: unknown, options: unknown): Promise<unknown> =>
      failureOf(shared.getOrCompute(key as string, options as { compute: () => number }));
    const compute = (): number => 1;
    expect(await call("", { compute })).toMatchObject({ option: "key" });
    expect(await call("k", {})).toMatchObject({ option: "compute" });
    expect(await call("k", { compute, waitMs: -1 })).toMatchObject({ option: "waitMs" });
    expect(await call("k", { compute, signal: {} })).toMatchObject({ option: "signal" });
    expect(await call("k", { compute, ttl: 1 })).toMatchObject({ option: "options.ttl" });
    expect(() => new SingleFlight({} as LeaseClient, { freshForMs })).toThrow(/client/);
    expect(store.calls).toEqual([]);
  });
});
