import { describe, expect, it } from "vitest";
import {
  estimateAfter,
  type HoldEstimate,
  HoldWatch,
  nextLookMs,
} from "../../packages/client/src/core/hold-estimate.ts";

describe("the estimate of how long holders keep a lease", () => {
  it("takes a shorter hold for half, a longer one for three tenths, and a quarter of how far they differ", () => {
    const first = estimateAfter(undefined, 1_600);
    expect(first).toEqual({ typicalMs: 1_600, spreadMs: 100 });
    expect(estimateAfter(first, 1_000)).toEqual({ typicalMs: 1_300, spreadMs: 225 });
    expect(estimateAfter(first, 2_600)).toEqual({ typicalMs: 1_900, spreadMs: 325 });
    expect(estimateAfter(first, 1_600)).toEqual({ typicalMs: 1_600, spreadMs: 75 });
  });

  it("lets a caller look once before the expected end, in steps around it, and less and less often after it", () => {
    const looksAt = (estimate: HoldEstimate, ...heldMs: number[]): number[] =>
      heldMs.map((held) => nextLookMs(estimate, held));
    // Twice the spread before the end; a step is a tenth.
    expect(looksAt({ typicalMs: 4_000, spreadMs: 300 }, 0, 1_000, 3_200, 4_000)).toEqual([
      3_400, 2_400, 400, 400,
    ]);
    // At least half a step before the end.
    expect(looksAt({ typicalMs: 4_000, spreadMs: 10 }, 0, 3_000)).toEqual([3_800, 800]);
    // A sixteenth of the time over.
    expect(looksAt({ typicalMs: 4_000, spreadMs: 10 }, 12_000, 20_000)).toEqual([500, 1_000]);
    // Steps of 25 ms at least, and never longer than the longest look.
    expect(looksAt({ typicalMs: 100, spreadMs: 0 }, 100, 600_000)).toEqual([25, 8_500]);
    expect(looksAt({ typicalMs: 60_000, spreadMs: 0 }, 0, 3_000)).toEqual([6_500, 6_510]);
  });

  it("lets a caller that knows nothing look after a quarter of a second, then after a sixteenth of the hold", () => {
    expect([0, 4_000, 16_000, 1_600_000].map((held) => nextLookMs(undefined, held))).toEqual([
      250, 250, 1_000, 9_000,
    ]);
  });
});

describe("what looks show of a lease without an order", () => {
  const record = (fencingToken: number, acquiredAt: number) => ({ fencingToken, acquiredAt });

  it("tells nothing until the lease has changed hands", () => {
    const watch = new HoldWatch();
    watch.see(record(1, 0));
    watch.see(record(1, 0));
    expect(watch.nextLookMs(500, 0)).toBeUndefined();
  });

  it("tells the length of a use, also where some of them were not seen", () => {
    const watch = new HoldWatch();
    watch.see(record(1, 0));
    watch.see(record(4, 6_000));
    const inMs = watch.nextLookMs(6_000, 0) ?? 0;
    expect(6_000 + inMs).toBeGreaterThan(7_500);
    expect(6_000 + inMs).toBeLessThanOrEqual(8_000);
  });

  it("lets callers look twice the spread before the end, then after a third of a typical hold, out of step", () => {
    const watch = new HoldWatch();
    watch.see(record(1, 0));
    watch.see(record(2, 1_600));
    const inMs = (heldMs: number, fraction = 0) => watch.nextLookMs(1_600 + heldMs, fraction);
    expect([inMs(0), inMs(-500), inMs(1_400)]).toEqual([1_400, 1_400, 560]);
    expect(inMs(0, 1)).toBeCloseTo(1_400 + 392, 9);
    expect(inMs(1_600 + 16_000)).toBe(1_000);
    expect(inMs(1_600_000)).toBe(9_000);
  });

  it("takes no note of an answer that is older than the last", () => {
    const watch = new HoldWatch();
    watch.see(record(1, 0));
    watch.see(record(2, 2_000));
    const before = watch.nextLookMs(2_500, 0);
    watch.see(record(1, 0));
    expect(watch.nextLookMs(2_500, 0)).toBe(before);
  });
});
