import { LeaseClient } from "@leasehold/client";
import { settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type {
  ComputeContext,
  SingleFlight,
  SingleFlightOptions,
} from "../../packages/client/src/entries/single-flight.ts";
import { controlled } from "../support/computations.ts";
import { failureOf } from "../support/failure-of.ts";
import { client, clock, events, flightsWith, holdNextRead, renewFlights, store } from "../support/flights.ts";

const freshForMs = 60_000;
const refreshAheadMs = 20_000;
const leaseDurationMs = 6_000;

const flights = flightsWith({ freshForMs, refreshAheadMs }, { leaseDurationMs, clockSkewMs: 100 });

beforeEach(renewFlights);

const get = (from: SingleFlight, value = "unwanted") =>
  from.getOrComputeWithSource("k", { compute: async () => value });
const errors = (): unknown[] =>
  events.flatMap((event) => (event.type === "refreshFailed" ? [event.error] : []));
const requests = (): string[] => store.calls.map(({ method }) => method);

/** A refresh that is under way, with nobody waiting for it, 10 s before the end of the value "first". */
async function refreshing(options: Partial<SingleFlightOptions> = {}) {
  const one = flights(options);
  await get(one, "first");
  await clock.advance(freshForMs - refreshAheadMs / 2);
  const { compute, run } = controlled();
  expect(await one.getOrComputeWithSource("k", { compute })).toMatchObject({ value: "first" });
  await settled();
  expect(compute).toHaveBeenCalledTimes(1);
  store.calls.length = 0;
  return { one, compute, run: run(0) };
}

describe("the time of a refresh ahead", () => {
  test("is the same for all calls of a process, and another for each value", async () => {
    const fractions = [0.9, 0.1];
    const randomness = { token: () => crypto.randomUUID(), fraction: vi.fn(() => fractions.shift() ?? 0) };
    const one = flights({}, { randomness });
    await get(one, "first");
    const drawn = randomness.fraction.mock.calls.length;
    fractions.splice(0, fractions.length, 0.9, 0.1);
    await clock.advance(freshForMs - refreshAheadMs);
    for (let call = 0; call < 5; call += 1) await get(one);
    expect(randomness.fraction.mock.calls.length).toBe(drawn + 1);
  });
});

describe("a refresh ahead", () => {
  test("costs one acquisition, one store and one release, and its caller nothing but its look", async () => {
    const one = flights();
    await get(one, "first");
    await clock.advance(freshForMs - refreshAheadMs / 2);
    store.calls.length = 0;
    expect(await get(one, "second")).toEqual({ value: "first", source: "cache" });
    await settled();
    expect(requests()).toEqual(["get", "update", "update", "update"]);
    expect(await get(one)).toEqual({ value: "second", source: "cache" });
  });

  test("of a value in the process's memory costs one look more, and its caller nothing", async () => {
    const one = flights({ inProcessForMs: freshForMs });
    await get(one, "first");
    await clock.advance(freshForMs - refreshAheadMs / 2);
    store.calls.length = 0;
    expect(await get(one, "second")).toEqual({ value: "first", source: "process" });
    await settled();
    expect(requests()).toEqual(["get", "update", "update", "update"]);
    expect(await get(one)).toEqual({ value: "second", source: "process" });
  });

  test("is tried by each process once while another process makes it, and again when that one's lease is over", async () => {
    const { compute } = await refreshing();
    const two = flights();
    for (let call = 0; call < 3; call += 1) {
      await get(two);
      await clock.advance(1_000);
    }
    // Reads, and one refused attempt.
    expect(store.count("get")).toBe(3);
    const attempts = store.calls.filter(
      ({ requests: [write] }) =>
        write !== undefined && String(write.condition).includes("attribute_not_exists"),
    );
    expect(attempts).toHaveLength(1);
    expect(compute).toHaveBeenCalledTimes(1);
    expect(errors()).toEqual([]);
  });

  test("begins no other one, although its value is due when it is stored: only a call does", async () => {
    const one = flights({ freshForMs: 1_000, refreshAheadMs: 999, inProcessForMs: 1_000 });
    const compute = vi.fn(async () => "second");
    await get(one, "first");
    await clock.advance(600);
    const update = store.update.bind(store);
    store.update = async (request, options) => {
      await new Promise((resolve) => clock.schedule(() => resolve(undefined), 300));
      return await update(request, options);
    };
    await one.getOrCompute("k", { compute });
    await clock.advance(60_000);
    expect(compute).toHaveBeenCalledTimes(1);
  });

  test("is not made of a value whose time was just over when its lock was released", async () => {
    const freshMs = 1_000;
    const one = flights({ freshForMs: freshMs, refreshAheadMs: 999 });
    const update = store.update.bind(store);
    store.update = async (request, options) => {
      // Its store and the release take half of its time each.
      await new Promise((resolve) => clock.schedule(() => resolve(undefined), freshMs / 2));
      return await update(request, options);
    };
    const compute = vi.fn(async () => "first");
    const call = one.getOrCompute("k", { compute });
    await clock.advance(60_000);
    expect(await call).toBe("first");
    expect(compute).toHaveBeenCalledTimes(1);
  });

  test("that waits for its lock lets other calls have the fresh value", async () => {
    const one = flights();
    await get(one, "first");
    await clock.advance(freshForMs - refreshAheadMs / 2);
    store.next("hangs");
    for (let call = 0; call < 2; call += 1) {
      expect(await get(one)).toEqual({ value: "first", source: "cache" });
      expect(store.count("update")).toBe(4);
    }
  });

  test("gets the value that it replaces, if that may stand in", async () => {
    const one = flights({ staleForMs: 1_000 });
    await get(one, "first");
    await clock.advance(freshForMs - refreshAheadMs / 2);
    const seen: unknown[] = [];
    await one.getOrCompute("k", {
      compute: ({ stale }: ComputeContext<string>) => {
        seen.push(stale);
        return "second";
      },
    });
    await settled();
    expect(seen).toEqual(["first"]);
  });

  test("is computed although a holder in between has failed", async () => {
    const one = flights();
    await get(one, "first");
    const fails = { compute: () => Promise.reject(new Error("down")), forceRefresh: true };
    await failureOf(flights().getOrCompute("k", fails));
    await clock.advance(freshForMs - refreshAheadMs / 2);
    await get(one, "second");
    await settled();
    expect(await get(one)).toEqual({ value: "second", source: "cache" });
  });

  test("looks again and takes what was stored between its look and its lock", async () => {
    const one = flights();
    const compute = vi.fn(async () => "unwanted");
    await get(one, "first");
    await clock.advance(freshForMs - refreshAheadMs / 2);
    const update = store.update.bind(store);
    store.update = async (request, options) => {
      store.update = update;
      await flights().getOrCompute("k", { compute: () => "second", forceRefresh: true });
      return await update(request, options);
    };
    await one.getOrCompute("k", { compute });
    await settled();
    expect(compute).not.toHaveBeenCalled();
    expect(await get(one)).toEqual({ value: "second", source: "cache" });
    expect(await client.acquire("other")).toMatchObject({ held: true });
    expect(client.held().map(({ key }) => key)).toEqual(["other"]);
  });
});

describe("a call that comes when the value's time is over", () => {
  test("joins its process's refresh, and sends nothing", async () => {
    const { one, run } = await refreshing();
    await clock.advance(refreshAheadMs / 2);
    store.calls.length = 0;
    const late = [get(one), get(one)];
    run.resolve("second");
    await settled();
    expect(await Promise.all(late)).toEqual(Array(2).fill({ value: "second", source: "computation" }));
    expect(store.calls.some(({ method }) => method === "get")).toBe(false);
  });

  test("gets the stale value at once if it takes one, and after its end the new one", async () => {
    const { one, run } = await refreshing({ staleForMs: 5_000 });
    await clock.advance(refreshAheadMs / 2);
    expect(await get(one)).toEqual({ value: "first", source: "stale" });
    await clock.advance(5_000);
    const late = get(one);
    run.resolve("second");
    expect(await late).toEqual({ value: "second", source: "computation" });
  });

  test("gets the refresh's error, or the stale value in its place", async () => {
    const { one, run } = await refreshing({ staleForMs: 5_000, staleOnContention: false });
    await clock.advance(refreshAheadMs / 2);
    const options = { compute: () => "unwanted" };
    const strict = failureOf(one.getOrComputeWithSource("k", { ...options, staleOnError: false }));
    const lenient = one.getOrComputeWithSource("k", { ...options, staleOnError: true });
    const down = new Error("down");
    run.reject(down);
    expect(await strict).toBe(down);
    expect(await lenient).toEqual({ value: "first", source: "stale" });
    expect(errors()).toEqual([down]);
  });

  test("may leave: the refresh goes on", async () => {
    const { one, run } = await refreshing();
    await clock.advance(refreshAheadMs / 2);
    const caller = new AbortController();
    const late = failureOf(one.getOrCompute("k", { compute: () => "unwanted", signal: caller.signal }));
    caller.abort();
    expect(await late).toMatchObject({ code: "LEASE_ABORTED" });
    expect(run.signal.aborted).toBe(false);
    run.resolve("second");
    await settled();
    expect(await get(one)).toEqual({ value: "second", source: "cache" });
  });

  test("may leave a refresh that has lost its lease: nobody wants that value, so it is cut off", async () => {
    const { one, run } = await refreshing({ heartbeat: false, leaseDurationMs: refreshAheadMs });
    await clock.advance(refreshAheadMs / 2);
    const caller = new AbortController();
    const late = failureOf(one.getOrCompute("k", { compute: () => "unwanted", signal: caller.signal }));
    await clock.advance(refreshAheadMs / 2);
    caller.abort();
    expect(await late).toMatchObject({ code: "LEASE_ABORTED" });
    await settled();
    expect(errors()).toHaveLength(1);
    expect(run.signal.aborted).toBe(true);
  });

  test("does not join a refresh if it asks for a forced one, which begins after it was called", async () => {
    const { one, run } = await refreshing();
    await clock.advance(refreshAheadMs / 2);
    const forced = { compute: () => "begun after", forceRefresh: true };
    const late = one.getOrComputeWithSource("k", forced);
    run.resolve("begun before");
    await clock.advance(leaseDurationMs);
    expect(await late).toEqual({ value: "begun after", source: "computation" });
  });

  test("does not join a refresh that was frozen: it computes by itself", async () => {
    const { one, run } = await refreshing();
    clock.freeze(refreshAheadMs / 2 + leaseDurationMs);
    const late = get(one, "computed after the freeze");
    await clock.advance(1_000);
    expect(await late).toEqual({ value: "computed after the freeze", source: "computation" });
    run.resolve("late");
    await settled();
    expect(await get(one)).toEqual({ value: "computed after the freeze", source: "cache" });
  });
});

test("a process that wakes with a refresh beyond its lease gives the fresh value at once, and refreshes anew", async () => {
  const { one, run } = await refreshing();
  clock.freeze(leaseDurationMs + 1_000);
  expect(await get(one, "second")).toEqual({ value: "first", source: "cache" });
  await clock.advance(0);
  expect(run.signal.aborted).toBe(true);
  await get(one, "second");
  await settled();
  run.resolve("late");
  await settled();
  expect(await get(one)).toEqual({ value: "second", source: "cache" });
  expect(errors()).toMatchObject([{ code: "LEASE_LOST" }]);
});

describe("a value in the process's memory that is due", () => {
  const inProcess = { inProcessForMs: freshForMs };

  test("goes if another process has invalidated it, and nothing is computed without a caller", async () => {
    const one = flights(inProcess);
    const compute = vi.fn(async () => "second");
    await get(one, "first");
    await flights().invalidate("k");
    await clock.advance(freshForMs - refreshAheadMs / 2);
    expect(await one.getOrComputeWithSource("k", { compute })).toEqual({ value: "first", source: "process" });
    await settled();
    expect(compute).not.toHaveBeenCalled();
    expect(await one.getOrComputeWithSource("k", { compute })).toMatchObject({ value: "second" });
  });
});

test("an own invalidation forgets what a look in the background shows later", async () => {
  const one = flights({ inProcessForMs: freshForMs });
  await get(one, "first");
  await clock.advance(freshForMs - refreshAheadMs / 2);
  const answer = holdNextRead();
  expect(await get(one)).toEqual({ value: "first", source: "process" });
  await settled();
  await one.invalidate("k");
  answer();
  await settled();
  expect(await get(one, "second")).toEqual({ value: "second", source: "computation" });
});

test("an own invalidation keeps later calls from a refresh that began before", async () => {
  const { one, run } = await refreshing();
  await one.invalidate("k");
  await clock.advance(refreshAheadMs / 2);
  const late = get(one, "computed after");
  run.resolve("computed before");
  await clock.advance(10_000);
  expect(await late).toEqual({ value: "computed after", source: "computation" });
});

test("close() cuts a refresh off, releases its lock and waits for both; it is no failure of the refresh", async () => {
  const { run } = await refreshing();
  const update = store.update.bind(store);
  const gate = Promise.withResolvers<void>();
  store.update = async (request, options) => {
    await gate.promise;
    return await update(request, options);
  };
  let isClosed = false;
  const closing = client.close().then(() => {
    isClosed = true;
  });
  await settled();
  expect(run.signal.aborted).toBe(true);
  expect(isClosed).toBe(false);
  gate.resolve();
  await closing;
  expect(errors()).toEqual([]);
  expect(await new LeaseClient({ store, clock }).inspect("k")).toBeUndefined();
  expect(await flights().getOrCompute("k", { compute: () => "unwanted" })).toBe("first");
});
