/** One lease's renewals: what they send, what they believe of the answers, and how the lease can be lost. */
import { beforeEach, describe, expect, it } from "vitest";
import type { Item, UpdateResult } from "../../packages/client/src/base/store.ts";
import type { TimedCall } from "../../packages/client/src/base/timed-call.ts";
import type { HeldLease } from "../../packages/client/src/core/held-lease.ts";
import type { Write } from "../../packages/client/src/statements/statement.ts";
import { itemKey, type LeaseByHand, leaseByHand, leaseDurationMs } from "../support/lease-by-hand.ts";
import { said } from "../support/recomposed.ts";

let scene: LeaseByHand;

beforeEach(async () => {
  scene = await leaseByHand();
});

/** Answers each renewal with the item as it would be, and what the test says of it; notes what was sent. */
function answering(...changes: (Item | "gone")[]) {
  const sent: { readonly write: Write; readonly call: TimedCall }[] = [];
  const send = async (write: Write, call: TimedCall): Promise<UpdateResult> => {
    sent.push({ write, call });
    const change = changes.shift() ?? {};
    const { set } = said(write);
    const written = Object.fromEntries(Object.entries(set).map(([name, text]) => [name, JSON.parse(text)]));
    const item =
      change === "gone" ? undefined : { ...scene.store.table.peek(itemKey), ...written, ...change };
    return { applied: change !== "gone", item, retried: false };
  };
  return { sent, send, versions: () => sent.map(({ write }) => write.values[":version"]) };
}

const types = (): string[] => scene.events.map(({ type }) => type);

describe("what is known of a lease", () => {
  it("is its place, its expiry and its version", () => {
    const lease = scene.held();
    expect([lease.key, lease.sortKey, lease.expiresAt, lease.version]).toEqual([
      ...["k", "lease", scene.record.expiresAt],
      1,
    ]);
  });

  it("until when others may believe in it is never beyond what the table shows, nor its holder's own deadline", () => {
    const lease = scene.held();
    expect(lease.believedUntil).toBe(scene.record.expiresAt);
    scene.clock.jump(-2_000);
    expect(lease.believedUntil).toBe(scene.record.expiresAt - 2_000);
    scene.clock.jump(5_000);
    expect(lease.believedUntil).toBe(scene.record.expiresAt);
  });
});

describe("for how long it was held", () => {
  const heldMsOf = async (lease: HeldLease): Promise<unknown> => {
    scene.events.length = 0;
    await lease.release(false);
    const [event] = scene.events;
    return event?.type === "released" && event.heldMs;
  };

  it("counts from its acquisition, here or in another process", async () => {
    scene.clock.freeze(3_000.4);
    expect(await heldMsOf(scene.held({ heldSince: 500 }))).toBe(2_500);
    expect(await heldMsOf(scene.adopted())).toBe(3_000);
  });

  it("is nothing where another's wall clock is ahead", async () => {
    scene.clock.jump(-60_000);
    expect(await heldMsOf(scene.adopted())).toBe(0);
  });
});

describe("a renewal", () => {
  it("proves the lease by the record, and has a version and an expiry of its own", async () => {
    scene.clock.freeze(4_000);
    const { sent, send } = answering();
    await scene.held().renew(send);
    expect(sent[0]?.write.values).toMatchObject({
      ":version": 2,
      ":expiresAt": scene.record.expiresAt + 4_000,
    });
  });

  it.each([
    ["half of what is left", 8_000, true, 4_000],
    ["5 s at most", 60_000, true, 5_000],
    ["half of the lease where nothing has confirmed it", 8_000, false, 4_000],
  ])("takes no longer than %s", async (_, forMs, isConfirmed, withinMs) => {
    const lease = scene.held({ leaseDurationMs: 8_000 }, false);
    if (isConfirmed) lease.confirm({ since: scene.core.clock.moment(), forMs }, scene.record.expiresAt);
    const { sent, send } = answering();
    await lease.renew(send);
    scene.clock.freeze(withinMs);
    expect(sent[0]?.call.isCurrent()).toBe(true);
    scene.clock.freeze(1);
    expect(sent[0]?.call.isCurrent()).toBe(false);
  });

  it("is not sent where the process froze while it was written", async () => {
    const lease = scene.held();
    const write = lease.form.renew.bind(lease.form);
    lease.form.renew = (renewal) => {
      scene.clock.freeze(leaseDurationMs / 2 + 1);
      return write(renewal);
    };
    const isCurrent: boolean[] = [];
    const { send } = answering();
    await lease.renew((renewal, call) => {
      isCurrent.push(call.isCurrent());
      return send(renewal, call);
    });
    expect(isCurrent).toEqual([false]);
  });

  it("confirms the lease from the moment of its request, and tells so", async () => {
    const lease = scene.held({}, false);
    const { send } = answering();
    await lease.renew((write, call) => {
      scene.clock.freeze(1_000);
      return send(write, call);
    });
    expect(lease.remainingMs()).toBe(leaseDurationMs - 1_000);
    expect(scene.events).toMatchObject([
      { type: "renewed", key: "k", owner: "me", fencingToken: scene.record.fencingToken },
    ]);
  });

  it("is not sent for a lease that is lost", async () => {
    const lease = scene.held();
    lease.over("taken");
    const { sent, send } = answering();
    await expect(lease.renew(send)).rejects.toMatchObject({ code: "LEASE_LOST", reason: "taken" });
    expect(sent).toEqual([]);
  });

  it("ends the lease where its holder was asked to stop", async () => {
    const lease = scene.held();
    const { send } = answering({ revocation: "please" });
    await expect(lease.renew(send)).rejects.toMatchObject({ reason: "revoked" });
    expect(types()).toEqual(["renewed", "lost"]);
  });
});

describe("a renewal that another process's has overtaken", () => {
  it.each([
    ["a later version", { version: 7 }, 8],
    ["another expiry at the same version", { expiresAt: 1 }, 3],
    ["an earlier version", { version: 1 }, 3],
  ])("is repeated beyond %s, and is believed only then", async (_, change, version) => {
    const { send, versions } = answering(change);
    const lease = scene.held({}, false);
    await lease.renew(send);
    expect(versions()).toEqual([2, version]);
    expect([lease.version, types()]).toEqual([version, ["renewed"]]);
  });

  it("is repeated five times, and then fails without an end of the lease", async () => {
    const { sent, send } = answering(...Array.from({ length: 6 }, () => ({ expiresAt: 1 })));
    const lease = scene.held();
    await expect(lease.renew(send)).rejects.toMatchObject({ code: "LEASE_CONFLICT" });
    expect([sent.length, lease.lost]).toEqual([6, undefined]);
  });
});

describe("a mistake in the program during a heartbeat", () => {
  it("ends the lease's protection, and is told", () => {
    const mistake = new TypeError("no such thing");
    const lease = scene.held();
    lease.fail(mistake);
    expect(lease.lost).toBe("failed");
    expect(lease.error?.cause).toBe(mistake);
    expect(scene.events).toMatchObject([
      { type: "error", operation: "renew", error: mistake },
      { type: "lost" },
    ]);
    expect(scene.events[0]).not.toHaveProperty("fencingToken");
  });

  it("is nothing to tell once the lease has ended", () => {
    const lease = scene.held();
    lease.over("taken");
    lease.fail(new TypeError("no such thing"));
    expect(types()).toEqual(["lost"]);
  });
});
