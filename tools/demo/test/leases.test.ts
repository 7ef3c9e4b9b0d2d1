import type { LeaseRecord } from "@leasehold/client/record";
import { describe, expect, it } from "vitest";
import { type Grant, grantsIn, type LeaseChange, overlaps, ranOut, takenOver } from "../leases.ts";

const leaseDurationMs = 2_500;

/** What the item shows of a lease whose request was sent at a time. */
function lease(owner: string, fencingToken: number, sentAt: number, version = 1): LeaseRecord {
  return {
    key: "job",
    sortKey: "lease",
    owner,
    token: `${owner}-${fencingToken}`,
    version,
    fencingToken,
    acquiredAt: sentAt,
    expiresAt: sentAt + leaseDurationMs,
    leaseDurationMs,
    inCooldown: false,
    reentrant: false,
    data: undefined,
    revocation: undefined,
  };
}

function renewed(before: LeaseRecord, sentAt: number): LeaseRecord {
  return { ...before, version: before.version + 1, expiresAt: sentAt + leaseDurationMs };
}

/** The writes that made an item show one lease after the other; undefined for one that was released. */
function changes(...states: (LeaseRecord | undefined)[]): LeaseChange[] {
  return states.map((after, index) => ({ before: states[index - 1], after }));
}

describe("the grants in a table's history", () => {
  const a = lease("A", 1, 1_000);

  it("are the writes that bring a new token: no renewal, no release, no cooldown, no other key", () => {
    const closed = { ...a, token: "closed:A-1", inCooldown: true };
    const elsewhere = { ...lease("X", 9, 1_000), key: "another job" };
    const b = lease("B", 2, 6_000);
    const history = [...changes(undefined, a, renewed(a, 1_800), closed, b), ...changes(elsewhere)];
    const common = { sortKey: "lease", from: undefined };
    expect(grantsIn(history, "job")).toEqual([
      { ...common, owner: "A", fencingToken: 1, acquiredAt: 1_000, expiresAt: 3_500 },
      { ...common, owner: "B", fencingToken: 2, acquiredAt: 6_000, expiresAt: 8_500 },
    ]);
  });

  it("name the lease that was taken over, with the expiry of its last renewal", () => {
    const renewal = renewed(a, 2_000);
    const [, grant] = grantsIn(changes(a, renewal, lease("B", 2, 5_600)), "job");
    expect(grant?.from).toEqual({ owner: "A", fencingToken: 1, expiresAt: 4_500 });
  });

  it("include those of a process that died before it could tell", () => {
    const history = changes(a, undefined, lease("B", 2, 1_500), lease("C", 3, 5_100));
    expect(grantsIn(history, "job").map(({ owner }) => owner)).toEqual(["A", "B", "C"]);
    expect(takenOver(grantsIn(history, "job"), (owner) => owner === "B")).toEqual(["B"]);
    expect(takenOver(grantsIn(history, "job"), () => false)).toEqual(["B (who was alive)"]);
  });
});

describe("overlaps", () => {
  const a = lease("A", 1, 1_000);
  const [b, c] = [lease("B", 2, 1_010), lease("C", 3, 1_020)];

  it.each([
    [
      "one lease is released before the next is granted",
      changes(undefined, a, undefined, lease("B", 2, 1_200)),
    ],
    // B's request is on its way for a second. A releases meanwhile, and the table grants it then.
    ["a request was sent while another's lease stood", changes(a, undefined, lease("B", 2, 1_050))],
    // Whatever A believes, and whenever it writes it down: the table had let go of its lease.
    ["a release took effect long before its sender heard of it", changes(a, undefined, b, undefined, c)],
    ["a lease was taken over after its end, however late the taker came", changes(a, lease("B", 2, 60_000))],
    [
      "leases have different sort keys",
      [...changes(a), ...changes({ ...lease("B", 1, 1_100), sortKey: "permit" })],
    ],
  ])("are none where %s", (_, history) => {
    expect(overlaps(grantsIn(history, "job"))).toBe(0);
  });

  it.each([
    ["a lease was taken over before its end", changes(a, lease("B", 2, 3_499))],
    [
      "a renewal had prolonged the lease that was taken over",
      changes(a, renewed(a, 2_000), lease("B", 2, 3_600)),
    ],
    ["an old holder comes back to life", changes(a, undefined, lease("B", 2, 2_000), undefined, a)],
    ["two leases have the same fencing token", changes(a, undefined, lease("B", 1, 2_000))],
  ])("are found where %s", (_, history) => {
    expect(overlaps(grantsIn(history, "job"))).toBe(1);
  });
});

it("a lease that ran out is told once for a living holder, and not where the plan has killed or frozen it", () => {
  const from = { owner: "A", fencingToken: 1, expiresAt: 3_500 };
  const grant: Grant = {
    ...{ sortKey: "lease", owner: "B", fencingToken: 2, acquiredAt: 5_000, expiresAt: 7_500 },
    from,
  };
  const event = { type: "lost", key: "job", sortKey: "lease", owner: "A", fencingToken: 1 } as const;
  const noticed = { instance: "A", at: 0, event: { ...event, heldMs: 3_000, reason: "expired" } } as const;
  expect(ranOut([grant], [noticed], () => false)).toEqual([
    "a lease of A ran out while it was alive: its renewals came too late",
  ]);
  expect(ranOut([grant], [noticed], (owner, token) => owner === "A" && token === 1)).toEqual([]);
});
