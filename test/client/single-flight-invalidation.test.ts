import { LeaseServiceError } from "@leasehold/client";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import {
  type CacheEntry,
  CacheUnwritableError,
  type ResultCache,
  type SingleFlightOptions,
} from "../../packages/client/src/entries/single-flight.ts";
import { controlled } from "../support/computations.ts";
import { failureOf } from "../support/failure-of.ts";
import { clock, events, flightsWith, renewFlights, store } from "../support/flights.ts";

const freshForMs = 10_000;
const day = 24 * 60 * 60 * 1000;
const flights = flightsWith({ freshForMs });

beforeEach(renewFlights);

/** What a process that has seen nothing yet gets, which computes what it is told. */
const valueOr = (computed: string, options: Partial<SingleFlightOptions> = {}): Promise<string> =>
  flights(options).getOrCompute("k", { compute: () => computed });

const refused = expect.objectContaining({ type: "cacheFailed", operation: "write", reason: "refused" });

describe("a value that was invalidated", () => {
  test("is computed by the next call, for 2 requests", async () => {
    await valueOr("old");
    store.calls.length = 0;
    await flights().invalidate("k");
    expect(store.calls.map(({ method }) => method)).toEqual(["get", "update"]);
    expect(store.calls[0]).toMatchObject({ consistent: true });
    expect(await valueOr("new")).toBe("new");
    expect(await valueOr("newer")).toBe("new");
  });

  test("is not given by the looks of a process that has seen it before", async () => {
    const keeping = { staleForMs: 60_000 };
    await valueOr("old", keeping);
    await clock.advance(freshForMs);
    const { compute, run } = controlled();
    void failureOf(flights(keeping).getOrCompute("k", { compute }));
    await settled();
    const waiting = flights(keeping);
    const first = waiting.getOrCompute("k", { compute: () => "new", staleOnContention: false });
    await settled();
    await flights().invalidate("k");
    const later = waiting.getOrCompute("k", { compute: () => "new" });
    await clock.advance(1_000);
    run(0).resolve("computed before");
    await clock.advance(5_000);
    expect([await first, await later]).toEqual(["new", "new"]);
  });

  test("may be invalidated twice, and by two at once", async () => {
    await valueOr("old");
    await Promise.all([flights().invalidate("k"), flights().invalidate("k")]);
    await flights().invalidate("k");
    expect(await valueOr("new")).toBe("new");
    expect(await valueOr("newer")).toBe("new");
  });
});

describe("a computation that is under way when its key is invalidated", () => {
  test("in another process gives its callers its result, and stores nothing", async () => {
    const { compute, run } = controlled();
    const before = flights().getOrCompute("k", { compute });
    await settled();
    await flights().invalidate("k");
    const after = valueOr("computed after");
    await settled();
    run(0).resolve("computed before");
    expect(await before).toBe("computed before");
    expect(events).toContainEqual(refused);
    await clock.advance(1_000);
    expect(await after).toBe("computed after");
    expect(await valueOr("later")).toBe("computed after");
  });

  test("in the same process is not joined by later callers", async () => {
    const shared = flights();
    const { compute, run } = controlled();
    const before = shared.getOrCompute("k", { compute });
    await settled();
    await shared.invalidate("k");
    const after = [1, 2].map(() => shared.getOrCompute("k", { compute: () => "computed after" }));
    await settled();
    run(0).resolve("computed before");
    expect(await before).toBe("computed before");
    await clock.advance(1_000);
    expect(await Promise.all(after)).toEqual(["computed after", "computed after"]);
    expect(compute).toHaveBeenCalledTimes(1);
  });

  test("and ends leaves the later callers together", async () => {
    const shared = flights();
    const before = controlled();
    const first = shared.getOrCompute("k", { compute: before.compute });
    await settled();
    await shared.invalidate("k");
    const later = controlled();
    const second = shared.getOrComputeWithSource("k", { compute: later.compute });
    await settled();
    before.run(0).resolve("computed before");
    await first;
    const third = shared.getOrComputeWithSource("k", { compute: later.compute });
    await clock.advance(1_000);
    later.run(0).resolve("computed after");
    await clock.advance(1_000);
    expect(later.compute).toHaveBeenCalledTimes(1);
    const given = { value: "computed after", source: "computation" };
    expect(await Promise.all([second, third])).toEqual([given, given]);
  });

  test("and whose store is on its way does not store either", async () => {
    const shared = flights();
    const { compute, run } = controlled();
    const before = shared.getOrCompute("k", { compute });
    await settled();
    const update = store.update.bind(store);
    store.update = async (...call) => {
      store.update = update;
      await flights().invalidate("k");
      return await update(...call);
    };
    run(0).resolve("computed before");
    expect(await before).toBe("computed before");
    expect(await valueOr("computed after")).toBe("computed after");
  });

  test("and that fails keeps no failure", async () => {
    const keeping = { failureForMs: 60_000 };
    const { compute, run } = controlled();
    const before = failureOf(flights(keeping).getOrCompute("k", { compute }));
    await settled();
    await flights().invalidate("k");
    run(0).reject(new Error("down"));
    expect(await before).toMatchObject({ message: "down" });
    expect(await valueOr("up again", keeping)).toBe("up again");
  });
});

describe("an invalidation", () => {
  test("whose answer is lost has forgotten the value; to repeat it is harmless", async () => {
    await valueOr("old");
    store.next("answer lost");
    const shared = flights();
    expect(await failureOf(shared.invalidate("k"))).toBeInstanceOf(LeaseServiceError);
    await shared.invalidate("k");
    expect(await valueOr("new")).toBe("new");
  });

  test("that did not arrive says so, and has forgotten nothing", async () => {
    await valueOr("old");
    store.next("request lost");
    expect(await failureOf(flights().invalidate("k"))).toBeInstanceOf(LeaseServiceError);
    expect(await valueOr("new")).toBe("old");
  });

  test("of which a copy arrives late costs no later result", async () => {
    await valueOr("old");
    await flights().invalidate("k");
    const copy = store.calls.at(-1)?.requests[0];
    if (copy === undefined) throw new Error("nothing was written");
    await valueOr("new");
    expect(store.table.updateNow(copy)).toMatchObject({ applied: false });
    expect(await valueOr("newer")).toBe("new");
  });

  test("that a later result overtakes leaves that result, for 1 request more", async () => {
    await valueOr("old");
    const update = store.update.bind(store);
    store.update = async (...call) => {
      store.update = update;
      await clock.advance(freshForMs);
      await valueOr("computed after");
      store.calls.length = 0;
      return await update(...call);
    };
    await flights().invalidate("k");
    expect(store.calls.map(({ method }) => method)).toEqual(["update", "get"]);
    expect(await valueOr("newer")).toBe("computed after");
  });

  test("is remembered for the client's retention, and then left to ttl", async () => {
    await flights().invalidate("k");
    expect(store.table.collectGarbage(clock.now() + 7 * day)).toBe(0);
    expect(store.table.collectGarbage(clock.now() + 7 * day + 2_000)).toBe(1);
    expect(await valueOr("new")).toBe("new");
  });

  test("forgets a value whose lock ttl has removed", async () => {
    const keeping = { freshForMs: 30 * day };
    await valueOr("old", keeping);
    await clock.advance(8 * day);
    expect(store.table.collectGarbage(clock.now())).toBe(1);
    await flights().invalidate("k");
    expect(await valueOr("new", keeping)).toBe("new");
    expect(await valueOr("newer", keeping)).toBe("new");
  });

  test.each([1, 20, 60 * 60 * 1000, 6 * day])(
    "by a clock that is %i ms ahead costs those behind no result",
    async (aheadMs) => {
      await flights({}, { clock: new ManualClock(clock.now() + aheadMs) }).invalidate("k");
      expect(await valueOr("first")).toBe("first");
      expect(await valueOr("second")).toBe("first");
    },
  );

  test("of a value whose lock ttl has removed costs those with a clock behind no result either", async () => {
    const keeping = { freshForMs: 30 * day };
    await valueOr("old", keeping);
    const behind = new ManualClock(clock.now() + 7 * day);
    await clock.advance(8 * day);
    expect(store.table.collectGarbage(clock.now())).toBe(1);
    await flights().invalidate("k");
    expect(await flights(keeping, { clock: behind }).getOrCompute("k", { compute: () => "new" })).toBe("new");
    expect(await valueOr("newer", keeping)).toBe("new");
  });

  test("of a key whose lock was never used costs 1 read more", async () => {
    await flights().invalidate("k");
    expect(store.calls.map(({ method }) => method)).toEqual(["get", "get", "update"]);
  });

  test("that comes before the first acquisition leaves its result, which is computed after", async () => {
    const update = store.update.bind(store);
    store.update = async (...call) => {
      store.update = update;
      await flights().invalidate("k");
      return await update(...call);
    };
    expect(await valueOr("first")).toBe("first");
    expect(await valueOr("second")).toBe("first");
  });
});

describe("a cache elsewhere", () => {
  test("forgets for 1 request, and takes no result of a computation that was under way", async () => {
    const cache = new Map<string, CacheEntry>();
    const { compute, run } = controlled();
    const before = flights({ cache }).getOrCompute("k", { compute });
    await settled();
    store.calls.length = 0;
    await flights({ cache }).invalidate("k");
    expect(store.calls).toMatchObject([{ method: "get", consistent: true }]);
    run(0).resolve("computed before");
    expect(await before).toBe("computed before");
    expect(events).toContainEqual(refused);
    expect(await valueOr("new", { cache })).toBe("new");
    expect(await valueOr("newer", { cache })).toBe("new");
  });

  test.each([0, 5])(
    "keeps one mark for many invalidations where the last token is %i",
    async (fencingToken) => {
      const cache = new Map<string, CacheEntry>();
      const entry = { value: "old", freshUntil: 9e15, staleUntil: 9e15, fencingToken };
      if (fencingToken > 0) cache.set("k", entry);
      for (let times = 1; times <= 3; times += 1) {
        await flights({ cache }).invalidate("k");
        expect(cache.get("k")).toEqual({ freshUntil: 0, staleUntil: 0, fencingToken: fencingToken + 0.5 });
      }
    },
  );

  test("that cannot be read has not forgotten where there is no lock to tell the last holder", async () => {
    const cause = new Error("gone");
    const cache: ResultCache = { get: () => Promise.reject(cause), set: () => true };
    expect(await failureOf(flights({ cache }).invalidate("k"))).toMatchObject({
      code: "LEASE_CACHE_UNWRITABLE",
      cause,
    });
  });

  test("that compares tokens refuses a result even if the invalidation came after the holder's last check", async () => {
    const map = new Map<string, CacheEntry>();
    const cache: ResultCache = {
      get: (key) => map.get(key),
      set: (key, entry, _, token) => (map.get(key)?.fencingToken ?? 0) <= token && map.set(key, entry),
    };
    const hurried: ResultCache = {
      get: cache.get,
      set: async (...entry) => {
        await flights({ cache }).invalidate("k");
        return cache.set(...entry);
      },
    };
    expect(await valueOr("computed before", { cache: hurried })).toBe("computed before");
    expect(await valueOr("new", { cache })).toBe("new");
  });

  test("that cannot be checked before a store keeps what it has", async () => {
    const map = new Map<string, CacheEntry>();
    let reads = 0;
    const cache: ResultCache = {
      get: (key) => {
        reads += 1;
        if (reads === 3) throw new Error("gone");
        return map.get(key);
      },
      set: (key, entry) => map.set(key, entry),
    };
    expect(await valueOr("value", { cache })).toBe("value");
    expect(map.size).toBe(0);
    expect(events).toContainEqual(expect.objectContaining({ type: "cacheFailed", operation: "write" }));
  });

  test("that throws, or says that it has stored nothing, has not forgotten", async () => {
    const entry = { value: "old", freshUntil: 9e15, staleUntil: 9e15, fencingToken: 1 };
    const cause = new Error("read-only");
    const throws: ResultCache = { get: () => entry, set: () => Promise.reject(cause) };
    const failure = await failureOf(flights({ cache: throws }).invalidate("k"));
    expect(failure).toBeInstanceOf(CacheUnwritableError);
    expect(failure).toMatchObject({ code: "LEASE_CACHE_UNWRITABLE", key: "k", cause });
    const refuses: ResultCache = { get: () => entry, set: () => false };
    expect(await failureOf(flights({ cache: refuses }).invalidate("k"))).toBeInstanceOf(CacheUnwritableError);
    const hasLater: ResultCache = { get: () => ({ ...entry, fencingToken: 9e15 }), set: () => false };
    expect(await failureOf(flights({ cache: hasLater }).invalidate("k"))).toBeUndefined();
    const hasNothing: ResultCache = { get: () => undefined, set: () => false };
    expect(await failureOf(flights({ cache: hasNothing }).invalidate("k"))).toBeUndefined();
  });

  test("that never answers holds an invalidation up for 10 s", async () => {
    const cache: ResultCache = { get: () => undefined, set: () => new Promise(() => undefined) };
    const failure = failureOf(flights({ cache }).invalidate("k"));
    await clock.advance(10_000);
    expect(await failure).toBeInstanceOf(CacheUnwritableError);
    expect(clock.pending).toBe(0);
  });
});
