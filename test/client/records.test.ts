/** What a lease item says, attribute by attribute, and what is made of values that another program has written. */

import type { Item } from "@leasehold/client";
import { readRecord } from "@leasehold/client/record";
import { describe, expect, it } from "vitest";
import {
  latestTime,
  optionalWordIn,
  parsedJson,
  timeIn,
  unlessUnreadable,
  wholeIn,
} from "../../packages/client/src/base/item-values.ts";
import { isHeldBy, lastReleasedToken } from "../../packages/client/src/base/record.ts";
import { heldLease, neither } from "../support/foreign-items.ts";

const lease: Item = { pk: "k", sk: "lease", ...heldLease };

it("what cannot be read is told; a mistake of the program is thrown", () => {
  const told: unknown[] = [];
  const reading = (read: () => unknown) => unlessUnreadable(read, (error) => told.push(error));
  expect(reading(() => readRecord({ ...lease, token: 7 }))).toBeUndefined();
  expect(told).toMatchObject([{ name: "LeaseItemError" }]);
  const mistake = new TypeError("no such thing");
  const failing = (): never => {
    throw mistake;
  };
  expect(() => reading(failing)).toThrow(mistake);
});

describe("a record", () => {
  it("has its payload's place even where there is none, and no reason to stop", () => {
    const record = readRecord({ ...lease, token: "t", owner: "me" });
    expect(record).toStrictEqual({
      ...{ key: "k", sortKey: "lease", owner: "me", token: "t" },
      ...{ version: lease.version, fencingToken: lease.fence, acquiredAt: lease.acquiredAt },
      ...{ expiresAt: lease.expiresAt, leaseDurationMs: lease.leaseDurationMs },
      ...{ inCooldown: false, reentrant: false, data: undefined, revocation: undefined },
    });
  });

  it.each([
    ["a number", 5],
    ["of another type", neither],
  ])("does not take a payload for valid that is %s", (_, data) => {
    expect(readRecord({ ...lease, data })).toMatchObject({
      data: undefined,
      invalidData: "neither text nor JSON",
    });
  });

  it("shows the text of a payload that is no JSON", () => {
    expect(readRecord({ ...lease, data: "{" })).toMatchObject({ data: undefined, invalidData: "{" });
  });

  it.each([
    ["a number", 1],
    ["of another type", neither],
  ])("takes a request to stop that is %s for one without a reason", (_, revocation) => {
    expect(readRecord({ ...lease, revocation })).toMatchObject({ revocation: "revocation requested" });
  });
});

describe("an acquisition holds a lock", () => {
  const mine = { token: "t", owner: "me" };
  it.each([
    ["where token and owner are its own", { token: "t", owner: "me" }, true],
    ["and not where a clone of its process drew the same token", { token: "t", owner: "clone" }, false],
    ["and not where another holds it", { token: "u", owner: "me" }, false],
    ["and not where there is no item", undefined, false],
  ])("%s", (_, item, expected) => {
    expect(isHeldBy(item, mine)).toBe(expected);
  });
});

it("a released token is a text; anything else says nothing", () => {
  expect(lastReleasedToken({ releasedToken: "t" })).toBe("t");
  expect(lastReleasedToken({ releasedToken: 7 })).toBeUndefined();
  expect(lastReleasedToken(undefined)).toBeUndefined();
});

describe("a value", () => {
  const item = { pk: "k", sk: "lease", a: 5, word: "blue", late: latestTime };

  it("may be as large as it is allowed to be, and no larger", () => {
    expect(wholeIn(item, "a", 5)).toBe(5);
    expect(() => wholeIn(item, "a", 4)).toThrow("a whole number (N) from 0 to 4");
    expect(timeIn(item, "late")).toBe(latestTime);
  });

  it("that is none of the allowed words is refused with all of them", () => {
    expect(optionalWordIn(item, "word", ["red", "blue"])).toBe("blue");
    expect(() => optionalWordIn(item, "word", ["red", "green"])).toThrow("allowed: red, green");
  });

  it("that is no JSON is told from null", () => {
    expect(parsedJson("null")).toEqual({ value: null });
    expect(parsedJson("nul")).toBeUndefined();
  });
});
