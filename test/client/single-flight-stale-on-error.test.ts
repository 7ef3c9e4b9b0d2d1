import { LeaseUnavailableError } from "@leasehold/client";
import { settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
import {
  CachedFailureError,
  type CacheEntry,
  CacheUnreadableError,
  type GetOrComputeOptions,
  type ResultCache,
  type SingleFlight,
  type SingleFlightOptions,
} from "../../packages/client/src/entries/single-flight.ts";
import { controlled } from "../support/computations.ts";
import { failureOf } from "../support/failure-of.ts";
import { client, clock, events, flightsWith, renewFlights, store } from "../support/flights.ts";

const freshForMs = 10_000;
const staleForMs = 60_000;
const old = { value: "old", source: "stale" };

const flights = flightsWith({ freshForMs, staleForMs });

beforeEach(renewFlights);

/** A SingleFlight whose key has a value that is past its time. */
async function withOldValue(options: Partial<SingleFlightOptions> = {}): Promise<SingleFlight> {
  const shared = flights(options);
  await shared.getOrCompute("k", { compute: () => "old" });
  await clock.advance(freshForMs);
  events.length = 0;
  return shared;
}

const down = new Error("down");
const fails = { compute: (): Promise<string> => Promise.reject(down) };
const unwanted = { compute: (): string => "computed in vain" };
const served = (): readonly object[] => events.filter(({ type }) => type === "served");

describe("a stale value is given in place of an error", () => {
  test("where the computation fails, to the caller that computes too; events tell of the failure", async () => {
    const shared = await withOldValue();
    expect(await shared.getOrComputeWithSource("k", fails)).toEqual(old);
    expect(events).toMatchObject([
      { type: "computed", error: down },
      { type: "served", source: "stale", error: down },
    ]);
    // The value and the lock are as they were: the next call computes.
    expect(await shared.getOrComputeWithSource("k", { compute: () => "new", waitMs: 0 })).toEqual({
      value: "new",
      source: "computation",
    });
    expect(served()[1]).not.toHaveProperty("error");
  });

  test("where a caller that rather waits has waited for waitMs in vain", async () => {
    const shared = await withOldValue();
    void failureOf(flights().getOrCompute("k", { compute: controlled().compute }));
    await settled();
    const patient = { ...unwanted, staleOnContention: false, staleOnError: true, waitMs: 2_000 };
    const call = shared.getOrComputeWithSource("k", patient);
    let isDone = false;
    void call.then(() => {
      isDone = true;
    });
    await clock.advance(1_999);
    expect(isDone).toBe(false);
    await clock.advance(1);
    expect(await call).toEqual(old);
    expect(served()).toMatchObject([{ error: expect.any(LeaseUnavailableError) }]);
  });

  test("while a failure is remembered, for no longer than staleForMs, however long that is", async () => {
    const shared = await withOldValue({ failureForMs: 10 * staleForMs });
    await shared.getOrCompute("k", fails);
    expect(events).toMatchObject([{ type: "computed" }, { type: "served" }]);
    expect(await shared.getOrComputeWithSource("k", unwanted)).toEqual(old);
    expect(await flights().getOrComputeWithSource("k", unwanted)).toEqual(old);
    expect(served().slice(1)).toMatchObject([
      { error: expect.any(CachedFailureError) },
      { error: expect.any(CachedFailureError) },
    ]);
    await clock.advance(staleForMs);
    expect(await failureOf(shared.getOrCompute("k", unwanted))).toBeInstanceOf(CachedFailureError);
  });

  test("where a waiter finds the failure of another process", async () => {
    const shared = await withOldValue({ failureForMs: 5_000 });
    const { compute, run } = controlled();
    const failing = flights({ failureForMs: 5_000, staleOnError: false }).getOrCompute("k", { compute });
    const failed = failureOf(failing);
    await settled();
    const patient = { ...unwanted, staleOnContention: false, staleOnError: true };
    const waiting = shared.getOrComputeWithSource("k", patient);
    await settled();
    run(0).reject(down);
    expect(await failed).toBe(down);
    await clock.advance(1_000);
    expect(await waiting).toEqual(old);
  });

  test("where the cache cannot be read again under the lock", async () => {
    const entries = new Map<string, CacheEntry>();
    let reads = 0;
    let brokenFrom = Number.POSITIVE_INFINITY;
    const cache: ResultCache = {
      get: (key) => {
        reads += 1;
        if (reads >= brokenFrom) throw down;
        return entries.get(key);
      },
      set: (key, entry) => entries.set(key, entry),
    };
    const shared = await withOldValue({ cache });
    await failureOf(shared.getOrCompute("k", { ...fails, staleOnError: false }));
    brokenFrom = reads + 2;
    expect(await shared.getOrComputeWithSource("k", unwanted)).toEqual(old);
    expect(served().at(-1)).toMatchObject({ error: expect.any(CacheUnreadableError) });
  });
});

describe("the error is given", () => {
  const strict = { staleOnError: false };

  test.each<[string, Partial<SingleFlightOptions>, Partial<GetOrComputeOptions<string>>]>([
    ["where the SingleFlight wants that", strict, {}],
    ["where the call wants that", {}, strict],
    ["where the SingleFlight takes no stale value at all", { staleOnContention: false }, {}],
    ["where the call takes no stale value at all", {}, { staleOnContention: false }],
  ])("%s", async (_, options, call) => {
    const shared = await withOldValue(options);
    expect(await failureOf(shared.getOrCompute("k", { ...fails, ...call }))).toBe(down);
  });

  test("where the value's time has run out while it was computed", async () => {
    const shared = await withOldValue();
    const { compute, run } = controlled();
    const failed = failureOf(shared.getOrCompute("k", { compute }));
    await clock.advance(staleForMs);
    run(0).reject(down);
    expect(await failed).toBe(down);
  });

  test("where a waiter's look has seen that the value was invalidated", async () => {
    const shared = await withOldValue();
    void failureOf(flights().getOrCompute("k", { compute: controlled().compute }));
    await settled();
    const patient = { ...unwanted, staleOnContention: false, staleOnError: true, waitMs: 2_000 };
    const failed = failureOf(shared.getOrCompute("k", patient));
    await settled();
    await flights().invalidate("k");
    await clock.advance(2_000);
    expect(await failed).toBeInstanceOf(LeaseUnavailableError);
  });

  test("where it is a mistake: a result that no cache can hold, a store that has a bug", async () => {
    const shared = await withOldValue();
    const bad = { compute: (): unknown => undefined };
    expect(await failureOf(shared.getOrCompute("k", bad))).toMatchObject({ code: "LEASE_INVALID_OPTIONS" });
    const bug = new TypeError("a bug");
    const update = store.update.bind(store);
    for (const sortKey of ["cache", "cache#flight"]) {
      store.update = (request, call) =>
        request.key.sk === sortKey ? Promise.reject(bug) : update(request, call);
      expect(await failureOf(shared.getOrCompute("k", unwanted))).toBe(bug);
    }
  });

  test("to a caller whose signal aborts, and where the client is closed", async () => {
    await withOldValue();
    const shared = flights({ staleOnContention: false, staleOnError: true });
    const gone = new AbortController();
    const { compute } = controlled();
    const left = failureOf(shared.getOrCompute("k", { compute, signal: gone.signal }));
    const closed = failureOf(shared.getOrCompute("k", { compute }));
    await settled();
    gone.abort(new Error("left"));
    expect(await left).toMatchObject({ code: "LEASE_ABORTED" });
    void client.close();
    await clock.advance(60_000);
    expect(await closed).toBeInstanceOf(Error);
    expect(served()).toEqual([]);
  });
});
