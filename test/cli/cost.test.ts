import { describe, expect, it } from "vitest";
import { estimate, parseRate } from "../../packages/cli/src/commands/cost.ts";
import { prices, secondsOfMonth } from "../../packages/cli/src/view/read-cost.ts";
import {
  prices as benchPrices,
  hoursOfMonth,
  pricesDate,
  pricesRegion,
} from "../../tools/bench/costs/prices.ts";
import { leasehold } from "../support/command-line.ts";

const nothing = { leaseMs: 30_000, hasHeartbeat: false, holders: 0, acquiresPerSecond: 0, waiters: 0 };
const usd = (use: Partial<typeof nothing>): string =>
  estimate({ ...nothing, ...use })
    .reduce((sum, { usdAMonth }) => sum + usdAMonth, 0)
    .toFixed(2);

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

  it("gives what is calculated by hand", () => {
    // 2,628,000 seconds × 2 writes × $0.625 a million.
    expect(usd({ acquiresPerSecond: 1 })).toBe("3.29");
    // A beat each 30 s / 3 × 0.95 = 9.5 s: 276,631 a month and holder.
    expect(usd({ hasHeartbeat: true, holders: 1 })).toBe("0.17");
    expect(usd({ hasHeartbeat: true, holders: 20 })).toBe("3.46");
    // 3 minutes: a beat each 57 s, 46,105 a month.
    expect(usd({ hasHeartbeat: true, holders: 1, leaseMs: 180_000 })).toBe("0.03");
    // 124 looks in 600 s: 543,120 a month, half a read unit each, $0.125 a million.
    expect(usd({ waiters: 1 })).toBe("0.03");
    expect(usd({ waiters: 100 })).toBe("3.39");
    expect(usd({ holders: 1_000 })).toBe("0.00");
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

  it.each([
    ["2/s", 2],
    ["30/m", 0.5],
    ["3600/h", 1],
    ["86400/d", 1],
  ])("reads the rate %s", (text, rate) => {
    expect(parseRate(text, "--acquires")).toBe(rate);
  });
});
