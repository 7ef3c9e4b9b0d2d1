/** What is told of an acquisition: once for each lease that is in its way, and once when it has succeeded. */
import type { LeaseEvent, LeaseRecord } from "@leasehold/client";
import { describe, expect, it } from "vitest";
import { announceGrant, contentionOf } from "../../packages/client/src/protocol/announcement.ts";
import type { ProtocolContext } from "../../packages/client/src/protocol/context.ts";

const record = (more: Partial<LeaseRecord> = {}): LeaseRecord => ({
  ...{ key: "k", sortKey: "lease", owner: "other", token: "t", version: 1, fencingToken: 1 },
  ...{ acquiredAt: 0, expiresAt: 1_000, leaseDurationMs: 1_000 },
  ...{ inCooldown: false, reentrant: false, data: undefined, revocation: undefined },
  ...more,
});

function recorder() {
  const events: LeaseEvent[] = [];
  const context = { publish: (event: LeaseEvent) => events.push(event) } as unknown as ProtocolContext;
  return { events, context };
}

describe("one call tells", () => {
  it("once of each lease that keeps it out, of any holder", () => {
    const { events, context } = recorder();
    const tell = contentionOf(context, "me");
    const met = [record(), record({ key: "l" }), record({ sortKey: "run#1" }), record({ owner: "next" })];
    for (const one of [...met, ...met, undefined]) tell(one);
    expect(events.map((event) => "sortKey" in event && [event.key, event.sortKey])).toEqual([
      ["k", "lease"],
      ["l", "lease"],
      ["k", "run#1"],
    ]);
    expect(events[0]).toEqual({
      ...{ type: "contended", key: "k", sortKey: "lease", owner: "me", holder: "other" },
      ...{ expiresAt: 1_000, inCooldown: false },
    });
  });

  it("from whom it took the lease, then that it has it", () => {
    const { events, context } = recorder();
    const from = record({ fencingToken: 6 });
    announceGrant(context, record({ owner: "me", fencingToken: 7 }), [{ reason: "observation", from }], 1.6);
    const subject = { key: "k", sortKey: "lease", owner: "me", fencingToken: 7 };
    expect(events).toEqual([
      {
        ...{ type: "takeover", ...subject, reason: "observation" },
        from: { owner: "other", fencingToken: 6, expiresAt: 1_000 },
      },
      { type: "acquired", ...subject, waitedMs: 2, expiresAt: 1_000 },
    ]);
  });
});
