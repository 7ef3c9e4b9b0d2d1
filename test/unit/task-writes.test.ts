import { attributeNames, type Write } from "@leasehold/client/internal";
import { describe, expect, test } from "vitest";
import {
  cancelTask,
  type EndedTask,
  endTask,
  parkTask,
  requeueTask,
} from "../../packages/jobs/src/tasks/expressions.ts";
import { endedTaskKey, openTaskKey, taskAttributeNames } from "../../packages/jobs/src/tasks/schema.ts";

const { token, version, fence, owner, acquiredAt, releasedToken, timeToLive } = attributeNames;
const { state, attempts, maxAttempts, remark, payload, addedAt, endedAt } = taskAttributeNames;
const ended: EndedTask = {
  ...{ set: "set", id: "1", state: "parked", token: "mine", remark: "lost", payload: "{}" },
  ...{ attempts: 2, maxAttempts: 2, worker: { owner: "a", acquiredAt: 3 } },
  ...{ fencingToken: 7, addedAt: 1, now: 5_000, keepForMs: 10_000 },
};
const insistOn = ([open]: readonly [Write, Write]) => open.insist;
const isUsedUp = [attempts, ">=", { attribute: maxAttempts }];

describe("a task moves to the ended ones", () => {
  test("with all that is known of it, unless one of its id has ended before", () => {
    expect(endTask(ended)).toEqual([
      {
        ...{ key: openTaskKey("set", "1"), set: {}, deletes: true },
        insist: [
          [token, "=", "mine"],
          [fence, "=", 7],
        ],
      },
      {
        key: endedTaskKey("set", "1"),
        set: {
          ...{ [state]: "parked", [releasedToken]: "mine", [remark]: "lost", [payload]: "{}" },
          ...{ [attempts]: 2, [maxAttempts]: 2, [fence]: 7, [addedAt]: 1, [endedAt]: 5_000 },
          ...{ [timeToLive]: 15, [owner]: "a", [acquiredAt]: 3 },
        },
        insist: [[state, "missing"]],
      },
    ]);
  });

  test("by a cancel, while it waits unchanged", () => {
    expect(insistOn(cancelTask(ended, 6))).toEqual([
      [token, "missing"],
      [maxAttempts, "exists"],
      [fence, "=", 6],
    ]);
  });

  test("without attempts left, while its claim is the one that was judged expired", () => {
    expect(insistOn(parkTask(ended, { token: "dead", version: 4, fencingToken: 9 }))).toEqual([
      [token, "=", "dead"],
      [version, "=", 4],
      [fence, "=", 9],
      isUsedUp,
    ]);
  });

  test("without attempts left, while no worker has it", () => {
    expect(insistOn(parkTask(ended, undefined))).toEqual([[token, "missing"], isUsedUp]);
  });
});

test("a task is requeued when it has ended without success, in the round that was read", () => {
  const task = {
    set: "set",
    id: "1",
    payload: "",
    maxAttempts: 2,
    delayMs: 0,
    now: 5_000,
    keepForMs: 10_000,
  };
  const [done, open] = requeueTask({ ...task, seenFence: 7 });
  expect(done).toEqual({
    ...{ key: endedTaskKey("set", "1"), set: {}, deletes: true },
    insist: [
      {
        anyOf: [
          [state, "=", "failed"],
          [state, "=", "parked"],
          [state, "=", "cancelled"],
        ],
      },
      [fence, "=", 7],
    ],
  });
  expect(open.set).toMatchObject({ [fence]: 8, [attempts]: 0 });
});
