/** What the bench calculates from its samples: quantiles, ratios to the floor, and what a request is billed. */
import { describe, expect, it } from "vitest";
import { costOf, prices } from "../costs/prices.ts";
import { inParallel } from "../peers/contender.ts";
import { billedUnits } from "../peers/cycle.ts";
import { dollarsOfAMillion } from "../peers/tables.ts";
import { median, quantile, summaries } from "../turns.ts";

describe("statistics", () => {
  it("finds quantiles whatever the order of the samples", () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(quantile([4, 3, 2, 1], 0)).toBe(1);
    expect(quantile([4, 3, 2, 1], 0.99)).toBe(4);
    expect(median([])).toBeNaN();
  });
});

describe("turns", () => {
  const floor = {
    name: "floor",
    rounds: [
      [1, 2, 3],
      [2, 2, 2],
    ],
    cpuUs: [100, 300, 200],
  };
  const twice = {
    name: "twice",
    rounds: [
      [2, 4, 6],
      [8, 8, 8],
    ],
    cpuUs: [600, 500, 400],
  };

  it("compares each with the first", () => {
    const [first, second] = summaries([floor, twice]);
    expect(first).toMatchObject({ ratio: 1, ratioOfP99: 1, lowest: 1, highest: 1, cpuRatio: 1, cycles: 6 });
    expect(second).toMatchObject({ p50: 8, ratio: 4, p99: 8, cpuUs: 500, cpuRatio: 2.5 });
    expect(second?.ratioOfP99).toBeCloseTo(8 / 3);
  });

  it("compares rounds with the same round of the first, for the noise", () => {
    const [, second] = summaries([floor, twice]);
    expect(second).toMatchObject({ lowest: 2, highest: 4 });
  });
});

describe("cost", () => {
  it("bills at least one unit for a request, and more where the engine says so", () => {
    expect(billedUnits({})).toBe(1);
    expect(billedUnits({ ConsumedCapacity: { CapacityUnits: 0.5 } })).toBe(1);
    expect(billedUnits({ ConsumedCapacity: { CapacityUnits: 3 } })).toBe(3);
  });

  it("prices a million cycles as the cost page does", () => {
    const cost = { id: "lock", requests: 3, sent: "", writeUnits: 2, readUnits: 1 };
    expect(dollarsOfAMillion(cost)).toBeCloseTo(1e6 * (2 * prices.writeUnit.usd + prices.readUnit.usd));
    expect(dollarsOfAMillion(cost)).toBeCloseTo(1e6 * costOf({ writeUnit: 2, readUnit: 1 }));
  });
});

describe("in parallel", () => {
  it("runs each index once, and no more at a time than allowed", async () => {
    const seen: number[] = [];
    let atOnce = 0;
    let most = 0;
    await inParallel(3, 10, async (index) => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      await Promise.resolve();
      seen.push(index);
      atOnce -= 1;
    });
    expect(seen.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 10 }, (_, index) => index));
    expect(most).toBe(3);
  });
});
