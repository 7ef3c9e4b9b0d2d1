import { LeaseClient } from "@leasehold/client";
import { settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it, vi } from "vitest";
import {
  SingleFlight,
  type SingleFlightEvent,
  type SingleFlightOptions,
} from "../../packages/client/src/entries/single-flight.ts";
import { controlled } from "../support/computations.ts";
import { PatientClock } from "../support/patient-clock.ts";
import type { Place } from "./lease-contract.ts";
import { newKey } from "./new-key.ts";

const leaseDurationMs = 3_000;
const clockSkewMs = 100;
const freshForMs = 60_000;

/**
 * What holds of the two levels of single flight, the process and the table, and of refreshes ahead wherever leases are
 * kept; run for memory and for an engine.
 *
 * The place is told the clock of each test: its service has to tell the same time, as it vouches for clocks.
 */
export function singleFlightContract(place: (clock: PatientClock) => Place): void {
  let clock: PatientClock;
  let key: string;
  let events: SingleFlightEvent[];

  /** Those of one process. */
  const flights = (options: Partial<SingleFlightOptions> = {}, its: PatientClock = clock): SingleFlight => {
    const client = new LeaseClient({ ...place(its), clock: its, leaseDurationMs, clockSkewMs });
    return new SingleFlight(client, { freshForMs, onEvent: (event) => events.push(event), ...options });
  };
  const get = (from: SingleFlight, value: string) =>
    from.getOrComputeWithSource(key, { compute: async () => value });
  /** Lets answers come until nothing is under way. */
  const quiet = (): Promise<void> => clock.advance(0);
  const refreshes = (): string[] =>
    events.flatMap((event) => (event.type === "refreshFailed" ? [String(event.error)] : []));

  beforeEach(() => {
    clock = new PatientClock(Date.now());
    key = newKey("single-flight");
    events = [];
  });

  describe("a process's own copy", () => {
    it("is given for its time, and then the table's", async () => {
      const one = flights({ inProcessForMs: 5_000 });
      expect(await get(one, "first")).toMatchObject({ source: "computation" });
      await clock.advance(4_999);
      expect(await get(one, "second")).toEqual({ value: "first", source: "process" });
      await clock.advance(1);
      expect(await get(one, "second")).toEqual({ value: "first", source: "cache" });
    });

    it("ends with its freshness, which has begun in the process that computed it", async () => {
      await get(flights(), "first");
      await clock.advance(freshForMs - 1_000);
      const late = flights({ inProcessForMs: 5_000 });
      expect(await get(late, "second")).toEqual({ value: "first", source: "cache" });
      await clock.advance(999);
      expect(await get(late, "second")).toEqual({ value: "first", source: "process" });
      await clock.advance(1);
      expect(await get(late, "second")).toEqual({ value: "second", source: "computation" });
    });

    it("is forgotten by its own invalidation at once, and by another process's after its time", async () => {
      const [one, two] = [flights({ inProcessForMs: 5_000 }), flights({ inProcessForMs: 5_000 })];
      await get(one, "first");
      await get(two, "second");
      await one.invalidate(key);
      expect(await get(two, "second")).toEqual({ value: "first", source: "process" });
      expect(await get(one, "third")).toEqual({ value: "third", source: "computation" });
      await clock.advance(5_000);
      expect(await get(two, "second")).toEqual({ value: "third", source: "cache" });
    });
  });

  describe("a refresh ahead", () => {
    const ahead = { refreshAheadMs: 20_000 };

    it("is made by one of many processes, and all get the fresh value at once meanwhile", async () => {
      const all = Array.from({ length: 6 }, () => flights(ahead));
      await get(flights(), "first");
      await clock.advance(freshForMs - 10_000);
      const { compute, run } = controlled();
      const call = (from: SingleFlight) => from.getOrComputeWithSource(key, { compute });
      for (let round = 0; round < 3; round += 1) {
        for (const value of await Promise.all(all.map(call)))
          expect(value).toEqual({ value: "first", source: "cache" });
        await quiet();
      }
      expect(compute).toHaveBeenCalledTimes(1);
      run(0).resolve("second");
      await quiet();
      for (const value of await Promise.all(all.map(call)))
        expect(value).toEqual({ value: "second", source: "cache" });
      // It is fresh from its own computation on.
      await clock.advance(freshForMs - 20_001);
      await Promise.all(all.map(call));
      await quiet();
      expect(compute).toHaveBeenCalledTimes(1);
      expect(refreshes()).toEqual([]);
    });

    it("begins in the last half of its time at the latest, and never before the first", async () => {
      const compute = vi.fn(async () => "next");
      const one = flights(ahead);
      await get(one, "first");
      await clock.advance(freshForMs - 20_001);
      await one.getOrCompute(key, { compute });
      await quiet();
      expect(compute).not.toHaveBeenCalled();
      await clock.advance(10_001);
      expect(await one.getOrCompute(key, { compute })).toBe("first");
      await quiet();
      expect(compute).toHaveBeenCalledTimes(1);
      expect(await one.getOrCompute(key, { compute })).toBe("next");
    });

    it("that fails leaves the value until its end, and is told", async () => {
      const one = flights({ ...ahead, failureForMs: 30_000, staleForMs: 60_000 });
      await get(one, "first");
      await clock.advance(freshForMs - 10_000);
      const compute = vi.fn(() => Promise.reject(new Error("down")));
      const call = () => one.getOrComputeWithSource(key, { compute });
      expect(await call()).toEqual({ value: "first", source: "cache" });
      await quiet();
      expect(refreshes()).toEqual(["Error: down"]);
      await clock.advance(9_999);
      expect(await call()).toEqual({ value: "first", source: "cache" });
      await quiet();
      expect(compute).toHaveBeenCalledTimes(1);
      await clock.advance(1);
      expect(await call()).toEqual({ value: "first", source: "stale" });
      expect(compute).toHaveBeenCalledTimes(2);
    });

    it("whose process freezes is made by another one when its lease is over; it stores nothing", async () => {
      await get(flights(), "first");
      await clock.advance(freshForMs - 10_000);
      const { compute, run } = controlled();
      // Its clock stands still: it renews nothing.
      const frozen = new PatientClock(clock.now());
      const [one, two] = [flights(ahead, frozen), flights(ahead)];
      expect(await one.getOrCompute(key, { compute })).toBe("first");
      await frozen.advance(0);
      expect(compute).toHaveBeenCalledTimes(1);

      expect(await get(two, "second")).toMatchObject({ value: "first" });
      await clock.advance(leaseDurationMs + 2 * clockSkewMs);
      expect(await get(two, "second")).toEqual({ value: "first", source: "cache" });
      await quiet();
      expect(await get(two, "third")).toEqual({ value: "second", source: "cache" });

      frozen.freeze(leaseDurationMs + 2 * clockSkewMs);
      run(0).resolve("late");
      await settled();
      await frozen.advance(1);
      expect(await get(two, "third")).toEqual({ value: "second", source: "cache" });
      expect(await get(one, "third")).toEqual({ value: "second", source: "cache" });
    });

    it("is not stored over an invalidation", async () => {
      const { compute, run } = controlled();
      const [one, two] = [flights(ahead), flights()];
      await get(one, "first");
      await clock.advance(freshForMs - 10_000);
      await one.getOrCompute(key, { compute });
      await quiet();
      expect(compute).toHaveBeenCalledTimes(1);
      await two.invalidate(key);
      run(0).resolve("computed before");
      await quiet();
      expect(await get(two, "computed after")).toEqual({ value: "computed after", source: "computation" });
      expect(await get(one, "unwanted")).toEqual({ value: "computed after", source: "cache" });
    });

    it("of a process's own copy looks first whether another process has refreshed it", async () => {
      const one = flights({ ...ahead, inProcessForMs: freshForMs });
      const compute = vi.fn(async () => "unwanted");
      await get(one, "first");
      await clock.advance(freshForMs - 10_000);
      await get(flights(ahead), "second");
      await quiet();
      expect(await one.getOrComputeWithSource(key, { compute })).toEqual({
        value: "first",
        source: "process",
      });
      await quiet();
      expect(await one.getOrComputeWithSource(key, { compute })).toEqual({
        value: "second",
        source: "process",
      });
      expect(compute).not.toHaveBeenCalled();
    });
  });
}
