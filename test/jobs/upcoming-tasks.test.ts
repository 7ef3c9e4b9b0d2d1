import { beforeEach, describe, expect, test } from "vitest";
import { UpcomingTasks } from "../../packages/jobs/src/tasks/task-finder.ts";

let upcoming: UpcomingTasks;
const none: ReadonlyMap<string, number> = new Map();
/** Everything but one task counts as tried: so it is told only if it is remembered. */
const allBut = (sortKey: string) => Object.assign(new Map(), { has: (other: string) => other !== sortKey });
const isRemembered = (sortKey: string) => upcoming.soonest(allBut(sortKey)) !== undefined;
const remembered = (...sortKeys: string[]) => sortKeys.filter(isRemembered).join("");

beforeEach(() => {
  upcoming = new UpcomingTasks();
});

/** Notes `b` as the soonest, then `a`, then `c`. */
function noteThree(): void {
  upcoming.set("a", 20);
  upcoming.set("b", 10);
  upcoming.set("c", 30);
}

describe("the soonest task", () => {
  test("is the one that may be claimed first, whatever the order in which they were noted", () => {
    noteThree();
    expect(upcoming.soonest(none)).toEqual({ sortKey: "b", at: 10 });
  });

  test("is the one that was noted first, of two that may be claimed at the same time", () => {
    upcoming.set("b", 10);
    upcoming.set("a", 10);
    expect(upcoming.soonest(none)).toEqual({ sortKey: "b", at: 10 });
  });

  test("is none that was tried", () => {
    noteThree();
    expect(upcoming.soonest(new Map([["b", 10]]))).toEqual({ sortKey: "a", at: 20 });
    expect(
      upcoming.soonest(
        new Map([
          ["a", 1],
          ["b", 1],
          ["c", 1],
        ]),
      ),
    ).toBeUndefined();
  });

  test("has the time that was noted last", () => {
    upcoming.set("a", 10);
    upcoming.set("b", 20);
    upcoming.set("a", 30);
    expect(upcoming.soonest(none)).toEqual({ sortKey: "b", at: 20 });
  });
});

describe("what is forgotten", () => {
  beforeEach(() => {
    for (const [index, sortKey] of [..."abcde"].entries()) upcoming.set(sortKey, index);
  });

  test("is the task whose time is noted as unknown", () => {
    upcoming.set("c", undefined);
    expect(remembered(..."abcde")).toBe("abde");
  });

  test("is what lies after one sort key, up to and including another", () => {
    upcoming.forget("b", "d");
    expect(remembered(..."abcde")).toBe("abe");
  });

  test("is everything after one sort key, where no other is given", () => {
    upcoming.forget("b", undefined);
    expect(remembered(..."abcde")).toBe("ab");
  });

  test("is everything when it is cleared", () => {
    expect(upcoming.isEmpty).toBe(false);
    upcoming.clear();
    expect(upcoming.isEmpty).toBe(true);
    expect(upcoming.soonest(none)).toBeUndefined();
  });
});

test("of 2,000 tasks, the 1,000 that may be claimed first are remembered, and the others are cut in bulk", () => {
  const timeOf = (index: number) => (index * 7_919) % 2_000;
  const sortKeyAt = new Map<number, string>();
  for (let index = 0; index < 1_999; index += 1) {
    sortKeyAt.set(timeOf(index), `${index}`);
    upcoming.set(`${index}`, timeOf(index));
  }
  const isKept = (at: number) => isRemembered(sortKeyAt.get(at) ?? "");
  expect([0, 999, 1_000, 1_998].map(isKept)).toEqual([true, true, true, true]);
  sortKeyAt.set(timeOf(1_999), "1999");
  upcoming.set("1999", timeOf(1_999));
  expect([0, 1, 500, 998, 999].map(isKept)).toEqual([true, true, true, true, true]);
  expect([1_000, 1_001, 1_500, 1_999].map(isKept)).toEqual([false, false, false, false]);
});
