import { LeaseClient, LeaseUnavailableError } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { JobRuns } from "@leasehold/jobs";
import { afterEach, describe, expect, test, vi } from "vitest";
import { once, optional, required, wholeNumber } from "../../functions/support/environment.ts";
import { runAt } from "../../functions/support/unscheduled-runs.ts";
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

describe("a run that nothing has scheduled", () => {
  const clock = new ManualClock();
  const time = clock.now();
  const runsOf = () =>
    new JobRuns(new LeaseClient({ store: new MemoryLeaseStore(), clock, owner: "a" }), "cleaning");

  test("takes the next millisecond where an earlier one has begun in its own", async () => {
    const runs = runsOf();
    const slots = [];
    for (let times = 0; times < 3; times += 1) slots.push(await runAt(runs, time, ({ slot }) => slot));
    expect(slots.map((slot) => Date.parse(slot) - time)).toEqual([0, 1, 2]);
  });

  test("is not repeated where its work fails for a lock of its own", async () => {
    const error = new LeaseUnavailableError("another lock", undefined, 0);
    let times = 0;
    const run = runAt(runsOf(), time, () => {
      times += 1;
      if (times === 1) throw error;
    });
    await expect(run).rejects.toBe(error);
    expect(times).toBe(1);
  });
});
