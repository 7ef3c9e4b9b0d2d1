/** What the bench calculates from its samples: quantiles, and ratios to the floor. */
import { describe, expect, it } from "vitest";
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
