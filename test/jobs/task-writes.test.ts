import { expect, test } from "vitest";
import { claimSerialKey, countClaim } from "../../packages/jobs/src/tasks/expressions.ts";
import { said } from "../support/recomposed.ts";

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
