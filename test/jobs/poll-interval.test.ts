import { beforeEach, describe, expect, test } from "vitest";
import { PollInterval } from "../../packages/jobs/src/tasks/polled-set.ts";
import type { TaskSnapshot } from "../../packages/jobs/src/tasks/task-finder.ts";

let fraction: number;
let interval: PollInterval;
const snapshot = (openTasks = 0): TaskSnapshot => ({ beganAt: 0, openTasks, isConsistent: true });
/** The intervals after some looks in vain. */
const intervals = (...openTasks: number[]) =>
  openTasks.map((count) => {
    interval.foundNothing(snapshot(count));
    return interval.ms;
  });

beforeEach(() => {
  // Then the jitter is 1.
  fraction = 0.5;
  interval = new PollInterval(1_000, { token: () => "token", fraction: () => fraction });
});

describe("the interval between two looks", () => {
  test("is none before the first look, and the worker is not idle", () => {
    expect(interval.ms).toBe(0);
    expect(interval.isIdle).toBe(false);
  });

  test("doubles with each look in vain, from pollMs to ten times as much", () => {
    expect(intervals(0, 0, 0, 0, 0, 0)).toEqual([1_000, 2_000, 4_000, 8_000, 10_000, 10_000]);
    expect(interval.isIdle).toBe(true);
  });

  test("stays as it is when the same snapshot is used again", () => {
    const seen = snapshot();
    interval.foundNothing(seen);
    interval.foundNothing(seen);
    expect(interval.ms).toBe(1_000);
    expect(intervals(0)).toEqual([2_000]);
  });

  test("is one pollMs for each page of open tasks, for up to 60 pages", () => {
    expect(intervals(33)).toEqual([2_000]);
    expect(intervals(320)).toEqual([10_000]);
    expect(intervals(60 * 32, 61 * 32)).toEqual([60_000, 60_000]);
  });

  test("begins anew when a task was found", () => {
    intervals(0, 0, 0);
    interval.foundSome();
    expect(interval.isIdle).toBe(false);
    expect(intervals(0, 0)).toEqual([1_000, 2_000]);
  });

  test("has a quarter of jitter, either way", () => {
    fraction = 0;
    expect(intervals(0)).toEqual([750]);
    fraction = 0.9;
    expect(intervals(0)).toEqual([2_400]);
  });
});
