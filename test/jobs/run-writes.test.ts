import { attributeNames } from "@leasehold/client/internal";
import { describe, expect, test } from "vitest";
import {
  isBeyond,
  keepForSlot,
  type RunOutcome,
  recordOutcome,
  skip,
  takeBackWrite,
} from "../../packages/jobs/src/runs/expressions.ts";
import { runItemKey } from "../../packages/jobs/src/runs/schema.ts";
import { said, setting } from "../support/recomposed.ts";

const { sortKey } = attributeNames;
const job = "report";
const slot = "2026-01-01T08:00:00.000Z";
const key = runItemKey(job, slot);
const ofLease = ["token", "version", "expiresAt", "leaseDurationMs", "data", "revocation"];

describe("the write of an outcome", () => {
  const shown = { token: "t", fencingToken: 7 };
  const ending = { shown, now: 4_000, retentionMs: 2_000, slot: undefined, cooldown: undefined };
  const outcomeOf = (outcome: Partial<RunOutcome>) => {
    const whole = { state: "failed", endedAt: 5, remark: undefined, progress: undefined } as const;
    return said(recordOutcome({ key: job, sortKey: key.sk }, ending, { ...whole, ...outcome }, slot));
  };
  const common = { releasedToken: '"t"', ttl: "6", endedAt: "5" };

  test("removes the lease, and the remark of the attempt before", () => {
    expect(outcomeOf({})).toEqual({
      set: { ...common, state: '"failed"' },
      remove: [...ofLease, "remark"],
      when: ['token = "t"', "fence = 7"],
    });
  });

  test("does not remove the remark that it sets", () => {
    const { set, remove } = outcomeOf({ state: "succeeded", remark: "three rows", progress: "3" });
    expect(set).toEqual({
      ...{ ...common, state: '"succeeded"', doneSlot: `"${slot}"` },
      ...{ remark: '"three rows"', progress: '"3"' },
    });
    expect(remove).toEqual(ofLease);
  });
});

describe("the write that skips a slot", () => {
  const request = { job, slot, owner: "operator", remark: undefined, now: 5, ttl: 9 };
  const set = { state: '"skipped"', doneSlot: `"${slot}"`, owner: '"operator"', endedAt: "5", ttl: "9" };

  test("insists that the slot is neither held nor done, and leaves nothing of an earlier attempt", () => {
    const write = skip(request, undefined);
    expect(said(write)).toEqual({
      set,
      remove: [...ofLease, "acquiredAt", "remark"],
      when: ["attribute_not_exists(token)", "attribute_not_exists(doneSlot)"],
    });
    expect(write).toMatchObject({ key, returnsItem: true });
  });

  test("does not remove the remark that it sets", () => {
    const { set: given, remove } = said(skip({ ...request, remark: "a holiday" }, undefined));
    expect(given).toEqual({ ...set, remark: '"a holiday"' });
    expect(remove).toEqual([...ofLease, "acquiredAt"]);
  });

  test("of a lost attempt insists on the record that was judged, revokes its token, and counts it", () => {
    const write = skip(request, { token: "dead", version: 3, fencingToken: 9 });
    const { when, set: given } = said(write);
    expect(when).toEqual(['token = "dead"', "version = 3", "fence = 9"]);
    expect(given).toEqual({
      ...{ ...set, releasedToken: '"dead"', brokenToken: '"dead"' },
      lostAttempts: "if_not_exists(lostAttempts, 0) + 1",
    });
    expect(write.returnsItem).toBe(true);
  });
});

describe("the write that takes a run back", () => {
  const run = { job, slot, attempt: 2, endedAt: 7, remark: "by mistake" };
  const insistOn = (more: Partial<Parameters<typeof takeBackWrite>[0]>) =>
    said(takeBackWrite({ ...run, ...more })).when;

  test("insists that the run is done, and that its end is the one that was read", () => {
    expect(said(takeBackWrite(run))).toEqual({
      set: { state: '"failed"', remark: '"by mistake"' },
      remove: ["doneSlot"],
      when: ["attribute_exists(doneSlot)", "attempt = 2", "endedAt = 7"],
    });
    expect(takeBackWrite(run)).toMatchObject({ key, returnsItem: true });
  });

  test("insists that there was no attempt, and no end, where none was read", () => {
    expect(insistOn({ attempt: 0 })).toContain("attribute_not_exists(attempt)");
    expect(insistOn({ endedAt: undefined })).toContain("attribute_not_exists(endedAt)");
  });
});

describe("an item of a run is kept", () => {
  const keepForMs = 3_600_000;
  const needed = (Date.parse(slot) + keepForMs) / 1_000;

  test("until its slot may be forgotten, which is later than its write says for a slot of the future", () => {
    expect(keepForSlot(setting(key, { ttl: needed - 1 }), slot, keepForMs).values).toEqual({
      ":ttl": needed,
    });
  });

  test.each([needed, needed + 1])("for as long as its write says, when that is not too short", (ttl) => {
    expect(keepForSlot(setting(key, { ttl }), slot, keepForMs).values).toEqual({ ":ttl": ttl });
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
