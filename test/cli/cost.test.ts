import { describe, expect, it } from "vitest";
import { prices, secondsOfMonth } from "../../packages/cli/src/view/read-cost.ts";
import {
  prices as benchPrices,
  hoursOfMonth,
  pricesDate,
  pricesRegion,
} from "../../tools/bench/costs/prices.ts";
import { leasehold } from "../support/command-line.ts";

describe("leasehold cost", () => {
  it("has the prices of docs/costs.md", () => {
    expect(prices).toEqual({
      writeUnit: benchPrices.writeUnit.usd,
      readUnit: benchPrices.readUnit.usd,
      region: pricesRegion,
      date: pricesDate,
      source: benchPrices.writeUnit.source,
    });
    expect(secondsOfMonth).toBe(hoursOfMonth * 3_600);
  });

  it.each([
    // 2,628,000 seconds × 2 writes × $0.625 a million.
    ...["1/s", "60/m", "3600/h", "86400/d"].map((rate) => [`--acquires ${rate}`, "3.29"] as const),
    // A beat each 30 s / 3 × 0.95 = 9.5 s: 276,631 a month and holder.
    ["--heartbeat", "0.17"],
    ["--heartbeat --holders 20", "3.46"],
    // 3 minutes: a beat each 57 s, 46,105 a month.
    ["--heartbeat --lease 3m", "0.03"],
    // 124 looks in 600 s: 543,120 a month, half a read unit each, $0.125 a million.
    ["--waiters 1", "0.03"],
    ["--waiters 100", "3.39"],
    ["--holders 1000", "0.00"],
  ] as const)("of %s is what is calculated by hand: %s", async (use, usd) => {
    const { stdout } = await leasehold(["cost", ...use.split(" ")]);
    expect(stdout).toMatch(new RegExp(`^total .* ${usd}$`, "m"));
  });

  it("adds up the parts that cost anything", async () => {
    const use = "--lease 30s --heartbeat --holders 20 --acquires 2/s --waiters 5";
    const args = ["cost", ...use.split(" ")];
    const { code, stdout, stderr } = await leasehold(args);
    expect(code).toBe(0);
    expect(stdout.split("\n").map((line) => line.split(/ {2,}/))).toEqual([
      ["FOR", "REQUESTS", "A MONTH", "USD A MONTH"],
      ["acquire and release", "4.0/s × 1 write unit", "10.5 M", "6.57"],
      ["heartbeats", "2.1/s × 1 write unit", "5.5 M", "3.46"],
      ["waiting", "1.0/s × 0.5 read unit", "2.7 M", "0.17"],
      ["total", "10.20"],
      [""],
    ]);
    expect(stderr).toContain("Prices of us-east-1, on demand, 2026-11-22");
    const { usdAMonth } = JSON.parse((await leasehold([...args, "--json"])).stdout);
    expect(usdAMonth).toBeCloseTo(10.2, 2);
  });
});
