/** The lock's writes: what each leaves in the item, and what none of them may leave. */
import { MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import {
  breakLease,
  leasesByPrefix,
  requestRevocation,
  takeBackSlot,
} from "../../packages/client/src/admin/statements.ts";

import type { Item } from "../../packages/client/src/base/store.ts";
import {
  acquire,
  cancel,
  type Grant,
  release,
  renew,
  renewUnlessRevoked,
  revokeToken,
  takeOver,
} from "../../packages/client/src/statements/lock.ts";
import { everyItem, recordOnly } from "../../packages/client/src/statements/queries.ts";
import type { Write } from "../../packages/client/src/statements/statement.ts";

const lease = { key: "k" };
const itemKey = { pk: "k", sk: "lease" };
const now = 1_000_000;
const retentionMs = 60_000;

let table: MemoryLeaseStore;

beforeEach(() => {
  table = new MemoryLeaseStore();
});

const grant = (more: Partial<Grant> = {}): Grant => ({
  ...{
    token: "mine",
    version: 1,
    owner: "me",
    acquiredAt: now,
    expiresAt: now + 5_000,
    leaseDurationMs: 5_000,
  },
  ...{ retentionMs, reentrant: false, data: undefined, slot: undefined },
  ...more,
});

const apply = (write: Write): boolean => table.updateNow(write.request()).applied;
const item = (): Item => table.peek(itemKey) ?? {};
const fencingToken = (): number => Number(item().fence);

/** A held lock whose holder has asked for all that it can, and was asked to stop. */
function holdWithEverything(): { token: string; fencingToken: number } {
  apply(
    acquire(lease, grant({ token: "theirs", owner: "they", reentrant: true, data: '"x"', ownClock: true })),
  );
  apply(requestRevocation(lease, "theirs", "stop"));
  expect(item()).toMatchObject({ revocation: "stop", data: '"x"', reentrant: 1, ownClock: 1 });
  return { token: "theirs", fencingToken: fencingToken() };
}

const ofHolder = ["token", "version", "owner", "acquiredAt", "expiresAt", "leaseDurationMs"];
const wishes = ["data", "revocation", "reentrant"];

describe("the next holder inherits nothing", () => {
  it("from an expired one whose lock it takes over", () => {
    const held = holdWithEverything();
    expect(apply(takeOver(lease, grant(), { ...held, version: 1 }))).toBe(true);
    for (const wish of [...wishes, "ownClock"]) expect(item()).not.toHaveProperty(wish);
  });

  it.each([
    ["a release", (proof: ReturnType<typeof holdWithEverything>) => release(lease, ending(proof))],
    ["a break", () => breakLease(lease, "theirs", now)],
    ["a cancellation", () => cancel(lease, { token: "theirs", now, retentionMs })],
  ])("from one that ended by %s", (_, end) => {
    expect(apply(end(holdWithEverything()))).toBe(true);
    for (const attribute of [...ofHolder, ...wishes]) expect(item()).not.toHaveProperty(attribute);
    expect(apply(acquire(lease, grant()))).toBe(true);
    expect(item()).not.toHaveProperty("ownClock");
  });

  it("from one whose lock is in its cooldown", () => {
    const proof = holdWithEverything();
    const cooldown = { until: now + 9_000, forMs: 9_000 };
    expect(apply(release(lease, { ...ending(proof), cooldown }))).toBe(true);
    for (const wish of wishes) expect(item()).not.toHaveProperty(wish);
    expect(item()).toMatchObject({ expiresAt: now + 9_000, leaseDurationMs: 9_000 });
  });
});

const ending = (shown: { token: string; fencingToken: number }) => ({
  ...{ shown, now, retentionMs, slot: undefined, cooldown: undefined },
});

it("the last holder stays as it was when a reentrant caller goes on with the same lease", () => {
  apply(acquire(lease, grant()));
  apply(takeOver(lease, grant({ version: 2 }), { token: "mine", version: 1, fencingToken: fencingToken() }));
  expect(item().version).toBe(2);
  expect(item()).not.toHaveProperty("lastEnd");
});

it("a write wants the item where there is something to learn from it, and not at an end", () => {
  const proof = { token: "mine", fencingToken: 1 };
  const renewal = { shown: proof, version: 2, expiresAt: now, leaseDurationMs: 1, retentionMs };
  const wanted = (...writes: Write[]): boolean[] => writes.map((write) => write.request().returnsItem);
  expect(
    wanted(
      acquire(lease, grant()),
      takeOver(lease, grant(), { ...proof, version: 1 }),
      renew(lease, renewal),
      revokeToken(lease, "mine"),
      takeBackSlot({ key: "k", doneSlot: "2", to: "1" }),
    ),
  ).toEqual([true, true, true, true, true]);
  const cancellation = cancel(lease, { token: "mine", now, retentionMs });
  expect(wanted(release(lease, ending(proof)), breakLease(lease, "mine", now), cancellation)).toEqual([
    ...[false, false, false],
  ]);
});

it("a renewer that reads only what it has written does not prolong a lease whose holder was asked to stop", () => {
  const shown = holdWithEverything();
  const renewal = { shown, version: 2, expiresAt: now + 9_000, leaseDurationMs: 9_000, retentionMs };
  expect(apply(renewUnlessRevoked(lease, renewal))).toBe(false);
  expect(apply(renew(lease, renewal))).toBe(true);
});

describe("what is read", () => {
  it("of a record has every attribute under its name, and not the payload", () => {
    const { projection, names } = recordOnly();
    const asked = projection.split(", ").map((placeholder) => names[placeholder]);
    expect(asked.toSorted()).toEqual(
      [
        ...ofHolder,
        "ownClock",
        "fence",
        "revocation",
        "releasedToken",
        "brokenToken",
        "doneSlot",
        "lastEnd",
      ].toSorted(),
    );
  });

  it.each([
    ["locks by prefix", () => leasesByPrefix("a")],
    ["all leases", () => leasesByPrefix("", true)],
    ["everything", () => everyItem()],
  ])("names what it uses, and DynamoDB refuses more: %s", (_, find) => {
    const { filter, names, values } = find();
    // DynamoDB refuses an empty one, too.
    expect(filter).not.toBe("");
    expect(Object.keys(names).toSorted()).toEqual(used(filter, /#\w+/g));
    expect(Object.keys(values).toSorted()).toEqual(used(filter, /:\w+/g));
  });
});

function used(expression: string, placeholder: RegExp): string[] {
  return [...new Set(expression.match(placeholder))].toSorted();
}
