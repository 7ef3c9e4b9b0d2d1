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
});
