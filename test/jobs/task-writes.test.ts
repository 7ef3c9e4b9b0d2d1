import { describe, expect, test } from "vitest";
import {
  cancelTask,
  claimSerialKey,
  countClaim,
  type EndedTask,
  endTask,
  parkTask,
  requeueTask,
} from "../../packages/jobs/src/tasks/expressions.ts";
import { endedTaskKey, openTaskKey } from "../../packages/jobs/src/tasks/schema.ts";
import { said } from "../support/recomposed.ts";

const ended: EndedTask = {
  ...{ set: "set", id: "1", state: "parked", token: "mine", remark: "lost", payload: "{}" },
  ...{ attempts: 2, maxAttempts: 2, worker: { owner: "a", acquiredAt: 3 } },
  ...{ fencingToken: 7, addedAt: 1, serialKey: undefined, now: 5_000, keepForMs: 10_000 },
};
const isUsedUp = "attempts >= maxAttempts";

describe("a task moves to the ended ones", () => {
  test("with all that is known of it, unless one of its id has ended before", () => {
    const [from, to] = endTask(ended);
    expect(from).toMatchObject({ key: openTaskKey("set", "1"), deletes: true });
    expect(said(from)).toEqual({ set: {}, remove: [], when: ['token = "mine"', "fence = 7"] });
    expect(to.key).toEqual(endedTaskKey("set", "1"));
    expect(said(to)).toEqual({
      set: {
        ...{ state: '"parked"', releasedToken: '"mine"', remark: '"lost"', payload: '"{}"' },
        ...{ attempts: "2", maxAttempts: "2", fence: "7", addedAt: "1", endedAt: "5000" },
        ...{ ttl: "15", owner: '"a"', acquiredAt: "3" },
      },
      remove: [],
      when: ["attribute_not_exists(state)"],
    });
  });

  test("by a cancel, while it waits unchanged", () => {
    expect(said(cancelTask(ended, 6)[0]).when).toEqual([
      ...["attribute_not_exists(token)", "attribute_exists(maxAttempts)", "fence = 6"],
    ]);
  });

  test("without attempts left, while its claim is the one that was judged expired", () => {
    expect(said(parkTask(ended, { token: "dead", version: 4, fencingToken: 9 })[0]).when).toEqual([
      ...['token = "dead"', "version = 4", "fence = 9", isUsedUp],
    ]);
  });

  test("without attempts left, while no worker has it", () => {
    expect(said(parkTask(ended, undefined)[0]).when).toEqual(["attribute_not_exists(token)", isUsedUp]);
  });
});

test("a task is requeued when it has ended without success, in the round that was read", () => {
  const task = {
    set: "set",
    id: "1",
    payload: "",
    maxAttempts: 2,
    delayMs: 0,
    serialKey: undefined,
    now: 5_000,
    keepForMs: 10_000,
  };
  const [done, open] = requeueTask({ ...task, seenFence: 7 });
  expect(done).toMatchObject({ key: endedTaskKey("set", "1"), deletes: true });
  expect(said(done)).toEqual({
    set: {},
    remove: [],
    when: ['(state = "failed" OR state = "parked" OR state = "cancelled")', "fence = 7"],
  });
  expect(said(open).set).toMatchObject({ fence: "8", attempts: "0" });
});

test("a claim of a task with a serial key names it, while the key's item is as it was seen, under a smaller token", () => {
  const claim = { set: "set", id: "2", serialKey: "order 7" };
  const terms = { now: 5_000, fencingToken: 9 };
  expect(claimSerialKey(claim, terms, "1").map((write) => said(write).when)).toEqual([
    ['lastTask = "1"', "fence < 9"],
    ["attribute_not_exists(token)"],
  ]);
  expect(claimSerialKey(claim, terms, "2").map((write) => said(write).when)).toEqual([
    ['lastTask = "2"', "fence < 9"],
  ]);
  expect(claimSerialKey(claim, terms, undefined).map((write) => said(write).when)).toEqual([
    ["attribute_not_exists(lastTask)"],
  ]);
});

test("a claim is counted in its period, whose item is kept for a day after it", () => {
  const { set, when } = said(countClaim({ set: "set", claims: 3, perMs: 1_000, period: 4 }));
  expect(set).toEqual({ claims: "if_not_exists(claims, 0) + 1", ttl: String(5 + 24 * 3_600) });
  expect(when).toEqual(["(attribute_not_exists(claims) OR claims < 3)"]);
});
