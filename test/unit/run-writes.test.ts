import { attributeNames, type Write } from "@leasehold/client/internal";
import { describe, expect, test } from "vitest";
import {
  isBeyond,
  keepForSlot,
  type Outcome,
  recordOutcome,
  skip,
  takeBack,
} from "../../packages/jobs/src/runs/expressions.ts";
import { runAttributeNames, runItemKey } from "../../packages/jobs/src/runs/schema.ts";

const { token, version, fence, expiresAt, leaseDurationMs, data, revocation, acquiredAt } = attributeNames;
const { doneSlot, owner, releasedToken, brokenToken, timeToLive: ttl, sortKey } = attributeNames;
const { state, attempt, lostAttempts, endedAt, remark, progress } = runAttributeNames;
const job = "report";
const slot = "2026-01-01T08:00:00.000Z";
const key = runItemKey(job, slot);
const ofLease = [token, version, expiresAt, leaseDurationMs, data, revocation];

describe("the write of an outcome", () => {
  const ending: Write = { key, set: { [releasedToken]: "t" }, insist: [] };
  const outcomeOf = (outcome: Partial<Outcome>) => {
    const whole = { state: "failed", endedAt: 5, remark: undefined, progress: undefined } as const;
    return recordOutcome(ending, { ...whole, ...outcome }, slot);
  };

  test("removes the lease, and the remark of the attempt before", () => {
    expect(outcomeOf({})).toEqual({
      ...ending,
      set: { [releasedToken]: "t", [state]: "failed", [endedAt]: 5 },
      remove: [...ofLease, remark],
    });
  });

  test("does not remove the remark that it sets", () => {
    expect(outcomeOf({ state: "succeeded", remark: "three rows", progress: "3" })).toEqual({
      ...ending,
      set: {
        ...{ [releasedToken]: "t", [state]: "succeeded", [endedAt]: 5, [doneSlot]: slot },
        ...{ [remark]: "three rows", [progress]: "3" },
      },
      remove: ofLease,
    });
  });
});

describe("the write that skips a slot", () => {
  const request = { job, slot, owner: "operator", remark: undefined, now: 5, ttl: 9 };
  const set = { [state]: "skipped", [doneSlot]: slot, [owner]: "operator", [endedAt]: 5, [ttl]: 9 };

  test("insists that the slot is neither held nor done, and leaves nothing of an earlier attempt", () => {
    expect(skip(request, undefined)).toEqual({
      key,
      set,
      remove: [...ofLease, acquiredAt, remark],
      insist: [
        [token, "missing"],
        [doneSlot, "missing"],
      ],
      returnsItem: true,
    });
  });

  test("does not remove the remark that it sets", () => {
    const { set: given, remove } = skip({ ...request, remark: "a holiday" }, undefined);
    expect(given).toEqual({ ...set, [remark]: "a holiday" });
    expect(remove).toEqual([...ofLease, acquiredAt]);
  });

  test("of a lost attempt insists on the record that was judged, revokes its token, and counts it", () => {
    const write = skip(request, { token: "dead", version: 3, fencingToken: 9 });
    expect(write.insist).toEqual([
      [token, "=", "dead"],
      [version, "=", 3],
      [fence, "=", 9],
    ]);
    expect(write.set).toEqual({
      ...set,
      [releasedToken]: "dead",
      [brokenToken]: "dead",
      [lostAttempts]: { of: lostAttempts, from: 0, by: 1 },
    });
    expect(write.returnsItem).toBe(true);
  });
});

describe("the write that takes a run back", () => {
  const run = { job, slot, attempt: 2, endedAt: 7, remark: "by mistake" };
  const insistOn = (more: Partial<Parameters<typeof takeBack>[0]>) => takeBack({ ...run, ...more }).insist;

  test("insists that the run is done, and that its end is the one that was read", () => {
    expect(takeBack(run)).toEqual({
      key,
      set: { [state]: "failed", [remark]: "by mistake" },
      remove: [doneSlot],
      insist: [
        [doneSlot, "exists"],
        [attempt, "=", 2],
        [endedAt, "=", 7],
      ],
      returnsItem: true,
    });
  });

  test("insists that there was no attempt, and no end, where none was read", () => {
    expect(insistOn({ attempt: 0 })).toContainEqual([attempt, "missing"]);
    expect(insistOn({ endedAt: undefined })).toContainEqual([endedAt, "missing"]);
  });
});

describe("an item of a run is kept", () => {
  const keepForMs = 3_600_000;
  const needed = (Date.parse(slot) + keepForMs) / 1_000;

  test("until its slot may be forgotten, which is later than its write says for a slot of the future", () => {
    const write: Write = { key, set: { [ttl]: needed - 1 }, insist: [] };
    expect(keepForSlot(write, slot, keepForMs).set).toEqual({ [ttl]: needed });
  });

  test.each([needed, needed + 1])("for as long as its write says, when that is not too short", (given) => {
    const write: Write = { key, set: { [ttl]: given }, insist: [] };
    expect(keepForSlot(write, slot, keepForMs)).toEqual(write);
  });

  test("as it is, by a write that sets no such time", () => {
    const write: Write = { key, set: { [state]: "failed" }, insist: [] };
    expect(keepForSlot(write, slot, keepForMs)).toEqual(write);
  });
});

test("a run is beyond a range at the end that the query does not limit", () => {
  const item = { [sortKey]: `run#${slot}` };
  const later = "2026-01-01T09:00:00.000Z";
  const bounds = (since?: string, until?: string) => ({ job, since, until });
  expect(isBeyond({ ...bounds(slot), descending: true }, item)).toBe(false);
  expect(isBeyond({ ...bounds(later), descending: true }, item)).toBe(true);
  expect(isBeyond({ ...bounds(), descending: true }, item)).toBe(false);
  expect(isBeyond({ ...bounds(undefined, slot), descending: false }, item)).toBe(true);
  expect(isBeyond({ ...bounds(undefined, later), descending: false }, item)).toBe(false);
  expect(isBeyond({ ...bounds(), descending: false }, item)).toBe(false);
  expect(isBeyond({ ...bounds(), descending: false }, { [sortKey]: "lease" })).toBe(true);
});
