import { settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { GetOrComputeOptions, SingleFlight } from "../../packages/client/src/entries/single-flight.ts";
import { controlled } from "../support/computations.ts";
import { failureOf } from "../support/failure-of.ts";
import { client, clock, events, flightsWith, holdNextRead, renewFlights, store } from "../support/flights.ts";

const freshForMs = 60_000;
const inProcessForMs = 5_000;

const flights = flightsWith({ freshForMs, inProcessForMs }, {});
/** Those of processes that keep nothing. */
const others = flightsWith({ freshForMs }, {});

beforeEach(renewFlights);

const get = (
  from: SingleFlight,
  value: unknown = "unwanted",
  options: Partial<GetOrComputeOptions<unknown>> = {},
) => from.getOrComputeWithSource("k", { compute: async () => value, ...options });

describe("the values that a process keeps", () => {
  test("are none by default", async () => {
    const one = flights({ inProcessForMs: 0 });
    await get(one, "first");
    expect(await get(one)).toEqual({ value: "first", source: "cache" });
    const byDefault = others();
    expect(await get(byDefault)).toEqual({ value: "first", source: "cache" });
    expect(await get(byDefault)).toEqual({ value: "first", source: "cache" });
  });

  test("cost no request, and are told", async () => {
    const one = flights();
    await get(one, "first");
    const before = store.calls.length;
    expect(await get(one)).toEqual({ value: "first", source: "process" });
    expect(store.calls).toHaveLength(before);
    expect(events.at(-1)).toEqual({ type: "served", key: "k", source: "process", waitedMs: 0 });
  });

  test("may be null", async () => {
    const one = flights();
    await get(one, null);
    expect(await get(one)).toEqual({ value: null, source: "process" });
  });

  test("stand before another cache, too", async () => {
    const cache = new Map<string, unknown>();
    const read = vi.spyOn(cache, "get");
    const one = flights({ cache });
    await get(one, "first");
    read.mockClear();
    expect(await get(one)).toEqual({ value: "first", source: "process" });
    expect(read).not.toHaveBeenCalled();
  });

  test.each([
    ["a process that was frozen", () => clock.freeze(inProcessForMs)],
    ["a machine that was suspended, and whose monotonic clock stood still", () => clock.jump(inProcessForMs)],
    [
      "a wall clock that was set back",
      () => {
        clock.jump(-3_600_000);
        clock.freeze(inProcessForMs);
      },
    ],
  ])("grow old by the clock that shows the most time: %s", async (_, passes) => {
    const one = flights();
    await get(others(), "first");
    await get(one);
    expect(await get(one)).toMatchObject({ source: "process" });
    passes();
    expect(await get(one)).toEqual({ value: "first", source: "cache" });
  });

  test("are fresh no longer than by the monotonic clock, however the wall clock is set back", async () => {
    const one = flights({ inProcessForMs: 2 * freshForMs });
    await get(one, "first");
    clock.jump(-3_600_000);
    clock.freeze(freshForMs - 1);
    expect(await get(one)).toMatchObject({ source: "process" });
    clock.freeze(1);
    expect((await get(one)).source).not.toBe("process");
  });

  test("count their time from before the look, however late its answer comes", async () => {
    await get(others(), "first");
    const one = flights();
    const answer = holdNextRead();
    const slow = get(one);
    await settled();
    clock.freeze(inProcessForMs - 1);
    answer();
    expect(await slow).toEqual({ value: "first", source: "cache" });
    expect(await get(one)).toMatchObject({ source: "process" });
    clock.freeze(1);
    expect(await get(one)).toMatchObject({ source: "cache" });
  });

  test("are as new as each caller asks", async () => {
    const one = flights();
    await get(one, "first");
    await clock.advance(1_000);
    expect(await get(one, "", { inProcessForMs: 1_001 })).toMatchObject({ source: "process" });
    expect(await get(one, "", { inProcessForMs: 1_000 })).toMatchObject({ source: "cache" });
    expect(await get(one, "", { inProcessForMs: 0 })).toMatchObject({ source: "cache" });
    expect(await get(one, "", { inProcessForMs: 1 })).toMatchObject({ source: "process" });
  });

  test("are as many as allowed: the one that was not used for the longest time goes", async () => {
    const one = flights({ maxInProcess: 2 });
    const sourceOf = async (key: string): Promise<string> =>
      (await one.getOrComputeWithSource(key, { compute: () => key })).source;
    for (const key of ["a", "b"]) await sourceOf(key);
    expect(await sourceOf("a")).toBe("process");
    await sourceOf("c");
    expect(await sourceOf("b")).toBe("cache");
    expect(await sourceOf("c")).toBe("process");
    expect(await sourceOf("a")).toBe("cache");
  });

  test("stay where a call asks in vain for another one", async () => {
    const one = flights({ maxInProcess: 1 });
    await get(one, "first");
    await failureOf(one.getOrCompute("other", { compute: () => Promise.reject(new Error("down")) }));
    expect(await get(one)).toEqual({ value: "first", source: "process" });
  });

  test("are 1,000 by default", async () => {
    const one = flights({ cache: new Map() });
    const sourceOf = async (key: number): Promise<string> =>
      (await one.getOrComputeWithSource(`${key}`, { compute: () => key })).source;
    for (let key = 0; key < 1_001; key += 1) await sourceOf(key);
    expect(await sourceOf(1)).toBe("process");
    expect(await sourceOf(0)).toBe("cache");
  });

  test("are refused to a call of a client that is closed", async () => {
    const one = flights();
    await get(one, "first");
    await client.close();
    expect(await failureOf(get(one))).toMatchObject({ code: "LEASE_CLIENT_CLOSED" });
  });
});

describe("what a process does not keep", () => {
  test("an error, of the computation or stored", async () => {
    const one = flights({ failureForMs: 1_000 });
    await failureOf(get(one, "", { compute: () => Promise.reject(new Error("down")) }));
    expect(await failureOf(get(one))).toMatchObject({ code: "LEASE_CACHED_FAILURE" });
    const before = store.calls.length;
    expect(await failureOf(get(one))).toMatchObject({ code: "LEASE_CACHED_FAILURE" });
    expect(store.calls.length).toBe(before + 1);
    await clock.advance(1_000);
    expect(await get(one, "first")).toMatchObject({ source: "computation" });
  });

  test("a value that stands in for a newer one", async () => {
    const one = flights({ freshForMs: 1_000, staleForMs: 60_000 });
    await get(one, "first");
    await clock.advance(1_000);
    const fails = { compute: () => Promise.reject(new Error("down")) };
    expect(await get(one, "", fails)).toEqual({ value: "first", source: "stale" });
    expect(await get(one, "second")).toEqual({ value: "second", source: "computation" });
  });

  test("a value that may not be stored", async () => {
    const one = flights({ isCacheable: () => false });
    await get(one, "first");
    expect(await get(one, "second")).toEqual({ value: "second", source: "computation" });
  });

  test.each(["throttled", "rejected", "answer lost", "hangs"] as const)(
    "a value whose store was not confirmed: %s",
    async (fate) => {
      const one = flights({ inProcessForMs: freshForMs });
      store.next(undefined, fate);
      const call = get(one, "first");
      await clock.advance(15_000);
      await call;
      expect((await get(one, "second")).source).not.toBe("process");
    },
  );

  test("a value that was computed beyond its lease", async () => {
    const one = flights({ heartbeat: false, leaseDurationMs: 1_000 });
    const { compute, run } = controlled();
    const late = one.getOrCompute("k", { compute });
    await clock.advance(1_000);
    run(0).resolve("late");
    expect(await late).toBe("late");
    expect(await get(one, "first")).toEqual({ value: "first", source: "computation" });
  });

  test("a value that the cache refused", async () => {
    const one = flights({ cache: { get: () => undefined, set: () => false } });
    await get(one, "first");
    expect(await get(one, "second")).toEqual({ value: "second", source: "computation" });
  });

  test("a value that was invalidated while it was computed or read", async () => {
    const one = flights();
    const { compute, run } = controlled();
    const computed = one.getOrComputeWithSource("k", { compute });
    await settled();
    await one.invalidate("k");
    run(0).resolve("computed before");
    expect(await computed).toMatchObject({ value: "computed before" });
    expect(await get(one, "first")).toMatchObject({ value: "first", source: "computation" });

    const reader = flights();
    const answer = holdNextRead();
    const read = get(reader);
    await settled();
    await reader.invalidate("k");
    answer();
    expect(await read).toMatchObject({ value: "first" });
    expect(await get(reader, "second")).toMatchObject({ value: "second", source: "computation" });
  });

  test("a value whose invalidation may have landed", async () => {
    const one = flights();
    await get(one, "first");
    store.next("rejected");
    await failureOf(one.invalidate("k"));
    expect(await get(one)).toEqual({ value: "first", source: "cache" });
  });

  test("an earlier value, read late, in place of a refreshed one", async () => {
    await get(others(), "first");
    const one = flights();
    const answer = holdNextRead();
    const read = get(one);
    await settled();
    expect(await get(one, "second", { forceRefresh: true })).toMatchObject({ value: "second" });
    answer();
    expect(await read).toMatchObject({ value: "first" });
    expect(await get(one)).toEqual({ value: "second", source: "process" });
  });
});

test("a forced refresh computes although the process has a value, which it replaces there", async () => {
  const one = flights();
  await get(one, "first");
  await clock.advance(1);
  const forced = { forceRefresh: true };
  expect(await get(one, "second", forced)).toEqual({ value: "second", source: "computation" });
  expect(await get(one)).toEqual({ value: "second", source: "process" });
});
