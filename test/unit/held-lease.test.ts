/** One lease's renewals: what they send, what they believe of the answers, and how the lease can be lost. */
import { beforeEach, describe, expect, it } from "vitest";
import type { HeldLease } from "../../packages/client/src/protocol/held-lease.ts";
import { cooldownToken } from "../../packages/client/src/schema.ts";
import type { Write } from "../../packages/client/src/statements/statement.ts";
import type { Bounds } from "../../packages/client/src/store/timed-store.ts";
import type { Item, UpdateResult } from "../../packages/client/src/store.ts";
import {
  failureOf,
  itemKey,
  type LeaseByHand,
  leaseByHand,
  leaseDurationMs,
} from "../support/lease-by-hand.ts";
import { said } from "../support/recomposed.ts";

let scene: LeaseByHand;

beforeEach(async () => {
  scene = await leaseByHand();
});

/** Answers each renewal with the item as it would be, and what the test says of it; notes what was sent. */
function answering(...changes: (Item | "gone")[]) {
  const sent: { readonly write: Write; readonly bounds: Bounds }[] = [];
  const send = async (write: Write, bounds: Bounds): Promise<UpdateResult> => {
    sent.push({ write, bounds });
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

  it("has no handle before somebody is given one", () => {
    expect(scene.held().handles).toEqual([]);
  });

  it("protects nothing before something has confirmed it", () => {
    expect(scene.held({}, false).deadline.remainingMs()).toBe(0);
    expect(scene.held().deadline.remainingMs()).toBe(leaseDurationMs);
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
    expect(sent[0]?.bounds.since).toMatchObject({ monotonic: 4_000 });
  });

  it.each([
    ["half of what is left", 8_000, true, 4_000],
    ["5 s at most", 60_000, true, 5_000],
    ["half of the lease where nothing has confirmed it", 8_000, false, 4_000],
  ])("takes no longer than %s", async (_, forMs, isConfirmed, withinMs) => {
    const lease = scene.held({ leaseDurationMs: 8_000 }, false);
    if (isConfirmed)
      lease.deadline.confirm({ since: scene.context.clock.moment(), forMs }, scene.record.expiresAt);
    const { sent, send } = answering();
    await lease.renew(send);
    expect(sent[0]?.bounds.withinMs).toBe(withinMs);
  });

  it("confirms the lease from the moment of its request, and tells so", async () => {
    const lease = scene.held({}, false);
    const { send } = answering();
    await lease.renew((write, bounds) => {
      scene.clock.freeze(1_000);
      return send(write, bounds);
    });
    expect(lease.deadline.remainingMs()).toBe(leaseDurationMs - 1_000);
    expect(scene.events).toMatchObject([
      { type: "renewed", key: "k", owner: "me", fencingToken: scene.record.fencingToken },
    ]);
  });

  it("is one write where nobody says how it is to be sent", async () => {
    await scene.held().renew();
    expect(scene.store.calls).toMatchObject([{ method: "update" }]);
  });

  it("is sent once for all who ask at the same time, and again for the next", async () => {
    const lease = scene.held();
    const { sent, send } = answering();
    await Promise.all([lease.renew(send), lease.renew(send)]);
    expect(sent).toHaveLength(1);
    await lease.renew(send);
    expect(sent).toHaveLength(2);
  });

  it("is not sent for a lease that is lost", async () => {
    const lease = scene.held();
    lease.deadline.end("taken");
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
    expect([sent.length, lease.deadline.lost]).toEqual([6, undefined]);
  });
});

describe("a lease whose item does not show it any more", () => {
  const lossOf = async (item: Item | undefined): Promise<unknown> => {
    const lease = scene.held();
    const send = async () => ({ applied: false, item, retried: false });
    const error = await failureOf(lease.renew(send));
    return [lease.deadline.lost, String((error as Error).message)];
  };
  const shown = () => scene.store.table.peek(itemKey) ?? {};

  it("was taken, by the holder that it shows or by one that has gone", async () => {
    const other = { ...shown(), token: "other", owner: "another" };
    expect(await lossOf(other)).toEqual(["taken", expect.stringContaining('held by "another"')]);
    expect(await lossOf({ ...itemKey, releasedToken: "other" })).toEqual(["taken", expect.any(String)]);
  });

  it("was taken, where it is one of several of an item, by nobody in particular", async () => {
    const seat = { ...scene.record, seat: { kind: "permit", permits: 1 } } as const;
    const lease = scene.held({ record: seat });
    const item = { ...shown(), token: "other", owner: "another" };
    const error = await failureOf(lease.renew(async () => ({ applied: false, item, retried: false })));
    expect(error).toMatchObject({ reason: "taken" });
    expect(String(error)).not.toContain("held by");
  });

  it("was taken where its token came back with another fencing token", async () => {
    const back = { ...shown(), fence: scene.record.fencingToken + 1 };
    expect(await lossOf(back)).toEqual(["taken", expect.any(String)]);
  });

  it("was released where the item says so, also while the lock is in its cooldown", async () => {
    expect(await lossOf({ ...itemKey, releasedToken: scene.record.token })).toEqual([
      "released",
      expect.any(String),
    ]);
    const closed = { ...shown(), token: cooldownToken(scene.record.token) };
    expect(await lossOf(closed)).toEqual(["released", expect.stringContaining('held by "me"')]);
  });

  it("has expired where ttl has removed the item", async () => {
    expect(await lossOf(undefined)).toEqual(["expired", expect.any(String)]);
  });

  it("costs no request to release, which tells that it did nothing", async () => {
    const lease = scene.held();
    await failureOf(lease.renew(answering("gone").send));
    scene.events.length = 0;
    expect(await lease.release(true)).toEqual({ wasOurs: false, isRecorded: false });
    expect(scene.store.calls).toEqual([]);
    expect(scene.events).toMatchObject([{ type: "released", confirmed: false, heldMs: 0, owner: "me" }]);
  });
});

describe("a mistake in the program during a heartbeat", () => {
  it("ends the lease's protection, and is told", () => {
    const mistake = new TypeError("no such thing");
    const lease = scene.held();
    lease.fail(mistake);
    expect(lease.deadline.lost).toBe("failed");
    expect(lease.deadline.error?.cause).toBe(mistake);
    expect(scene.events).toMatchObject([
      { type: "error", operation: "renew", error: mistake },
      { type: "lost" },
    ]);
    expect(scene.events[0]).not.toHaveProperty("fencingToken");
  });

  it("is nothing to tell once the lease has ended", () => {
    const lease = scene.held();
    lease.deadline.end("taken");
    lease.fail(new TypeError("no such thing"));
    expect(types()).toEqual(["lost"]);
  });
});
