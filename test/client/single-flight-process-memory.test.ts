import { settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test } from "vitest";
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
  test("cost no request, and are told", async () => {
    const one = flights();
    await get(one, "first");
    const before = store.calls.length;
    expect(await get(one)).toEqual({ value: "first", source: "process" });
    expect(store.calls).toHaveLength(before);
    expect(events.at(-1)).toEqual({ type: "served", key: "k", source: "process", waitedMs: 0 });
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

  test("are refused to a call of a client that is closed", async () => {
    const one = flights();
    await get(one, "first");
    await client.close();
    expect(await failureOf(get(one))).toMatchObject({ code: "LEASE_CLIENT_CLOSED" });
  });
});

describe("what a process does not keep", () => {
  test("a value that stands in for a newer one", async () => {
    const one = flights({ freshForMs: 1_000, staleForMs: 60_000 });
    await get(one, "first");
    await clock.advance(1_000);
    const fails = { compute: () => Promise.reject(new Error("down")) };
    expect(await get(one, "", fails)).toEqual({ value: "first", source: "stale" });
    expect(await get(one, "second")).toEqual({ value: "second", source: "computation" });
  });

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
