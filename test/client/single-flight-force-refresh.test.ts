import { settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import { deferred } from "../../packages/client/src/base/clock.ts";
import type {
  CacheEntry,
  SingleFlight,
  SingleFlightOptions,
} from "../../packages/client/src/entries/single-flight.ts";
import { controlled } from "../support/computations.ts";
import { failureOf } from "../support/failure-of.ts";
import { clock, flightsWith, renewFlights, store } from "../support/flights.ts";

const freshForMs = 600_000;
const flights = flightsWith({ freshForMs });

beforeEach(renewFlights);

const forceRefresh = true;
const unwanted = { compute: (): string => "computed in vain" };
const down = new Error("down");

async function withValue(options: Partial<SingleFlightOptions> = {}): Promise<SingleFlight> {
  const shared = flights(options);
  await shared.getOrCompute("k", { compute: () => "old" });
  return shared;
}

/** What others get without computing, in this process and in another. */
async function others(shared: SingleFlight, options: Partial<SingleFlightOptions> = {}): Promise<unknown> {
  return [
    await shared.getOrComputeWithSource("k", unwanted),
    await flights(options).getOrComputeWithSource("k", unwanted),
  ];
}

const caches: readonly (readonly [string, () => Partial<SingleFlightOptions>])[] = [
  ["the table", () => ({})],
  ["a Map", () => ({ cache: new Map<string, CacheEntry>() })],
];

describe.each(caches)("in %s, a forced refresh", (_, cache) => {
  test("computes though the value is fresh; others are given the old one until the new one stands", async () => {
    const options = cache();
    const shared = await withValue(options);
    const { compute, run } = controlled();
    const refreshed = shared.getOrComputeWithSource("k", { compute, forceRefresh });
    await settled();
    const old = { value: "old", source: "cache" };
    expect(await others(shared, options)).toEqual([old, old]);
    run(0).resolve("new");
    expect(await refreshed).toEqual({ value: "new", source: "computation" });
    expect(await others(shared, options)).toMatchObject([{ value: "new" }, { value: "new" }]);
  });

  test("takes what another process began to compute after it was called", async () => {
    const options = cache();
    const before = controlled();
    void flights(options).getOrCompute("k", { compute: before.compute });
    await settled();
    const fast = { strategy: "fixed", delayMs: 50 } as const;
    const slow = { strategy: "fixed", delayMs: 1_000 } as const;
    const after = controlled();
    const refreshed = flights(options).getOrComputeWithSource("k", {
      ...unwanted,
      forceRefresh,
      retry: slow,
    });
    const other = flights(options).getOrCompute("k", { compute: after.compute, forceRefresh, retry: fast });
    await clock.advance(1_000);
    before.run(0).resolve("begun before");
    // The slow one sees the other at work.
    await clock.advance(1_000);
    after.run(0).resolve("begun after");
    expect(await other).toBe("begun after");
    await clock.advance(1_000);
    expect(await refreshed).toEqual({ value: "begun after", source: "otherProcess" });
  });
});

describe("forced refreshes of one process", () => {
  test("share a computation that has not begun", async () => {
    const shared = await withValue();
    const { compute, run } = controlled();
    const calls = [1, 2, 3].map(() => shared.getOrCompute("k", { compute, forceRefresh }));
    await settled();
    run(0).resolve("new");
    expect(await Promise.all(calls)).toEqual(["new", "new", "new"]);
    expect(compute).toHaveBeenCalledTimes(1);
  });

  test("share none that has begun: the later one computes after it", async () => {
    const shared = await withValue();
    const { compute, run } = controlled();
    const first = shared.getOrCompute("k", { compute, forceRefresh });
    await settled();
    const second = shared.getOrCompute("k", { compute, forceRefresh });
    const third = shared.getOrCompute("k", { compute, forceRefresh });
    await settled();
    expect(compute).toHaveBeenCalledTimes(1);
    run(0).resolve("first");
    expect(await first).toBe("first");
    await clock.advance(4_000);
    run(1).resolve("second");
    expect(await Promise.all([second, third])).toEqual(["second", "second"]);
    expect(compute).toHaveBeenCalledTimes(2);
  });

  test.each([
    ["joined a call that had waited for it", false],
    ["came during a look", true],
  ])("give nobody what began elsewhere before it came, even if it %s", async (_, comesDuringLook) => {
    const before = controlled();
    void flights().getOrCompute("k", { compute: before.compute });
    await settled();
    const shared = flights();
    const own = controlled();
    const waits = { forceRefresh, retry: { strategy: "fixed", delayMs: 1_000 } } as const;
    const early = shared.getOrCompute("k", { compute: own.compute, ...waits });
    const answered = deferred<void>();
    const query = store.query.bind(store);
    store.query = async (...look) => {
      store.query = query;
      const page = await query(...look);
      await answered.promise;
      return page;
    };
    if (!comesDuringLook) answered.resolve();
    await clock.advance(1_000);
    before.run(0).resolve("begun before");
    await settled();
    const between = controlled();
    const other = flights().getOrCompute("k", { compute: between.compute, forceRefresh });
    await settled();
    const late = shared.getOrCompute("k", { compute: own.compute, ...waits });
    answered.resolve();
    await settled();
    between.run(0).resolve("begun between");
    expect(await other).toBe("begun between");
    await clock.advance(2_000);
    own.run(0).resolve("begun after");
    expect(await Promise.all([early, late])).toEqual(["begun after", "begun after"]);
  });

  test("give nobody what was found before it came, even if the lock is still to be let go", async () => {
    const before = controlled();
    void flights().getOrCompute("k", { compute: before.compute });
    await settled();
    const shared = flights();
    const retry = { strategy: "fixed", delayMs: 1_000 } as const;
    const early = shared.getOrComputeWithSource("k", { ...unwanted, forceRefresh, retry });
    await clock.advance(1_000);
    before.run(0).resolve("begun before");
    await settled();
    let late: Promise<unknown> | undefined;
    const update = store.update.bind(store);
    store.update = async (...attempt) => {
      store.update = update;
      await flights().getOrCompute("k", { compute: () => "begun between", forceRefresh });
      const won = await update(...attempt);
      store.update = async (...release) => {
        store.update = update;
        late = shared.getOrComputeWithSource("k", { compute: () => "begun after", forceRefresh });
        return await update(...release);
      };
      return won;
    };
    await clock.advance(5_000);
    expect(await early).toEqual({ value: "begun between", source: "otherProcess" });
    expect(await late).toEqual({ value: "begun after", source: "computation" });
  });

  test("share none that was called before an invalidation, as its result is not stored", async () => {
    const shared = flights();
    const get = store.get.bind(store);
    let looks = 0;
    store.get = async (...look) => {
      looks += 1;
      const item = await get(...look);
      if (looks === 2) {
        // It has the lock, and has not begun to compute.
        await shared.invalidate("k");
        late = shared.getOrCompute("k", { compute: () => "called after", forceRefresh });
      }
      return item;
    };
    let late: Promise<string> | undefined;
    const early = shared.getOrCompute("k", { compute: () => "called before", forceRefresh });
    await clock.advance(1_000);
    expect([await early, await late]).toEqual(["called before", "called after"]);
    expect(await flights().getOrCompute("k", unwanted)).toBe("called after");
  });
});

describe("a forced refresh", () => {
  test("shows its computation the old value that is past its time, and no fresh one", async () => {
    const shared = await withValue({ freshForMs: 1_000, staleForMs: 60_000, failureForMs: 60_000 });
    const shown = async (): Promise<string | undefined> => {
      let found: string | undefined;
      const compute = ({ stale }: { readonly stale: string | undefined }): Promise<string> => {
        found = stale;
        return Promise.reject(down);
      };
      await failureOf(shared.getOrCompute<string>("k", { compute, forceRefresh }));
      return found;
    };
    expect(await shown()).toBeUndefined();
    await clock.advance(1_000);
    expect(await shown()).toBe("old");
    // A failure that is remembered keeps the value.
    await shared.getOrCompute("k", { compute: () => Promise.reject(down) });
    expect(await shown()).toBe("old");
  });

  test("is made once the lease of a holder that renews no more has ended", async () => {
    const shared = await withValue();
    void flights({ heartbeat: false }).getOrCompute("k", {
      compute: controlled().compute,
      forceRefresh,
    });
    await settled();
    const refreshed = shared.getOrCompute("k", { compute: () => "new", forceRefresh });
    await clock.advance(10_000);
    expect(await refreshed).toBe("new");
  });
});
