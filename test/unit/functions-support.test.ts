import { afterEach, describe, expect, test, vi } from "vitest";
import { optional, required, wholeNumber } from "../../functions/support/environment.ts";
import { once } from "../../functions/support/once.ts";
import {
  hasTimeLeft,
  leaseForInvocation,
  untilTimeIsUp,
  waitWithin,
  workWithin,
} from "../../functions/support/working-time.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

describe("a function's settings", () => {
  test("one that is missing, or empty, is named", () => {
    expect(() => required("LEASEHOLD_TEST")).toThrow(/LEASEHOLD_TEST is not set/);
    vi.stubEnv("LEASEHOLD_TEST", "");
    expect(() => required("LEASEHOLD_TEST")).toThrow(/LEASEHOLD_TEST is not set/);
    expect(optional("LEASEHOLD_TEST")).toBeUndefined();
    vi.stubEnv("LEASEHOLD_TEST", "x");
    expect(required("LEASEHOLD_TEST")).toBe("x");
  });

  test("numbers are whole and above 0, or the setting is named", () => {
    expect(wholeNumber("LEASEHOLD_TEST", 5)).toBe(5);
    vi.stubEnv("LEASEHOLD_TEST", "12");
    expect(wholeNumber("LEASEHOLD_TEST", 5)).toBe(12);
    for (const odd of ["0", "-1", "1.5", "ten", "1e99"]) {
      vi.stubEnv("LEASEHOLD_TEST", odd);
      expect(() => wholeNumber("LEASEHOLD_TEST", 5)).toThrow(/LEASEHOLD_TEST/);
    }
  });

  test("what is made once is made at its first use, and again only where that failed", () => {
    let made = 0;
    const get = once(() => {
      made += 1;
      if (made === 1) throw new Error("not yet");
      return undefined;
    });
    expect(made).toBe(0);
    expect(get).toThrow("not yet");
    get();
    get();
    expect(made).toBe(2);
  });
});

describe("an invocation's time", () => {
  test("a lease lasts as long as the invocation, and a wait leaves half of it", () => {
    expect(leaseForInvocation(900_000.7)).toBe(900_000);
    expect(leaseForInvocation(-5)).toBeGreaterThan(0);
    expect(waitWithin(10_000, 60_000)).toBe(10_000);
    expect(waitWithin(10_000, 6_000)).toBe(3_000);
    expect(waitWithin(10_000, -1)).toBe(0);
    expect(hasTimeLeft(10_000)).toBe(true);
    expect(hasTimeLeft(1_000)).toBe(false);
  });

  test("work is bounded so that time is left after it, and nothing is begun when that is all there is", () => {
    expect(workWithin(30_000.7)).toBe(28_000);
    expect(workWithin(-5)).toBeGreaterThan(0);
    for (const remainingMs of [-5, 0, 2_000]) expect(untilTimeIsUp(remainingMs).aborted).toBe(true);
    expect(untilTimeIsUp(60_000.7).aborted).toBe(false);
  });
});
