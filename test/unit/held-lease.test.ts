/** One lease's renewals and its end: what they send, what they believe of the answers, and what they tell. */
import { LeaseClient, type LeaseEvent, type LeaseRecord, LeaseServiceError } from "@leasehold/client";
import { internalsOf } from "@leasehold/client/internal";
import { readRecord } from "@leasehold/client/record";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import type { ProtocolContext } from "../../packages/client/src/protocol/context.ts";
import { HeldLease, type HeldLeaseTerms } from "../../packages/client/src/protocol/held-lease.ts";
import { LockForm } from "../../packages/client/src/protocol/lock-form.ts";
import { cooldownToken } from "../../packages/client/src/schema.ts";
import type { Bounds } from "../../packages/client/src/store/timed-store.ts";
import type { Write } from "../../packages/client/src/store/write.ts";
import type { Item, UpdateResult } from "../../packages/client/src/store.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const leaseDurationMs = 10_000;
const itemKey = { pk: "k", sk: "lease" };

let clock: ManualClock;
let store: ScriptedStore;
let context: ProtocolContext;
let events: LeaseEvent[];
let record: LeaseRecord;

beforeEach(async () => {
  clock = new ManualClock();
  store = new ScriptedStore();
  events = [];
  const onEvent = (event: LeaseEvent): void => void events.push(event);
  const client = new LeaseClient({ store, clock, owner: "me", leaseDurationMs, onEvent });
  ({ context } = internalsOf(client));
  // Another client's, so that this one looks after nothing else.
  await new LeaseClient({ store, clock, owner: "me", leaseDurationMs }).acquire("k");
  record = readRecord(store.table.peek(itemKey)) as LeaseRecord;
  store.calls.length = 0;
});

/** The lease, believed in for all of its time unless nothing has confirmed it yet. */
function held(terms: Partial<HeldLeaseTerms> = {}, isConfirmed = true): HeldLease {
  const believed = isConfirmed ? { since: context.clock.moment(), forMs: leaseDurationMs } : undefined;
  const all = { record, leaseDurationMs, heldSince: 0, cooldownUntil: undefined, slot: undefined, ...terms };
  return new HeldLease(context, new LockForm("k", "lease"), all, believed);
}

/** Answers each renewal with the item as it would be, and what the test says of it; notes what was sent. */
function answering(...changes: (Item | "gone")[]) {
  const sent: { readonly write: Write; readonly bounds: Bounds }[] = [];
  const send = async (write: Write, bounds: Bounds): Promise<UpdateResult> => {
    sent.push({ write, bounds });
    const change = changes.shift() ?? {};
    const written = Object.fromEntries(
      Object.entries(write.set).filter(([, value]) => typeof value !== "object"),
    ) as Item;
    const item = change === "gone" ? undefined : { ...store.table.peek(itemKey), ...written, ...change };
    return { applied: change !== "gone", item, retried: false };
  };
  return { sent, send, versions: () => sent.map(({ write }) => write.set.version) };
}

/** Answers the release as the service would not by itself. */
function answerRelease(result: Partial<UpdateResult>): void {
  store.update = async () => ({ applied: false, item: undefined, retried: false, ...result });
}

const types = (): string[] => events.map(({ type }) => type);
const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

describe("what is known of a lease", () => {
  it("is its place, its expiry and its version", () => {
    const lease = held();
    expect([lease.key, lease.sortKey, lease.expiresAt, lease.version]).toEqual([
      ...["k", "lease", record.expiresAt],
      1,
    ]);
  });

  it("until when others may believe in it is never beyond what the table shows, nor its holder's own deadline", () => {
    const lease = held();
    expect(lease.believedUntil).toBe(record.expiresAt);
    clock.jump(-2_000);
    expect(lease.believedUntil).toBe(record.expiresAt - 2_000);
    clock.jump(5_000);
    expect(lease.believedUntil).toBe(record.expiresAt);
  });

  it("protects nothing before something has confirmed it", () => {
    expect(held({}, false).deadline.remainingMs()).toBe(0);
    expect(held().deadline.remainingMs()).toBe(leaseDurationMs);
  });
});

describe("for how long it was held", () => {
  const heldMsOf = async (lease: HeldLease): Promise<unknown> => {
    events.length = 0;
    await lease.release(false);
    const [event] = events;
    return event?.type === "released" && event.heldMs;
  };
  const adopted = () => {
    const { heldSince: _, ...terms } = held().terms;
    return new HeldLease(context, new LockForm("k", "lease"), terms, undefined);
  };

  it("counts from its acquisition, here or in another process", async () => {
    clock.freeze(3_000.4);
    expect(await heldMsOf(held({ heldSince: 500 }))).toBe(2_500);
    expect(await heldMsOf(adopted())).toBe(3_000);
  });

  it("is nothing where another's wall clock is ahead", async () => {
    clock.jump(-60_000);
    expect(await heldMsOf(adopted())).toBe(0);
  });
});

describe("a renewal", () => {
  it("proves the lease by the record, and has a version and an expiry of its own", async () => {
    clock.freeze(4_000);
    const { sent, send } = answering();
    await held().renew(send);
    expect(sent[0]?.write.set).toMatchObject({ version: 2, expiresAt: record.expiresAt + 4_000 });
    expect(sent[0]?.bounds.since).toMatchObject({ monotonic: 4_000 });
  });

  it.each([
    ["half of what is left", 8_000, true, 4_000],
    ["5 s at most", 60_000, true, 5_000],
    ["half of the lease where nothing has confirmed it", 8_000, false, 4_000],
  ])("takes no longer than %s", async (_, forMs, isConfirmed, withinMs) => {
    const lease = held({ leaseDurationMs: 8_000 }, false);
    if (isConfirmed) lease.deadline.confirm({ since: context.clock.moment(), forMs }, record.expiresAt);
    const { sent, send } = answering();
    await lease.renew(send);
    expect(sent[0]?.bounds.withinMs).toBe(withinMs);
  });

  it("confirms the lease from the moment of its request, and tells so", async () => {
    const lease = held({}, false);
    const { send } = answering();
    await lease.renew((write, bounds) => {
      clock.freeze(1_000);
      return send(write, bounds);
    });
    expect(lease.deadline.remainingMs()).toBe(leaseDurationMs - 1_000);
    expect(events).toMatchObject([
      { type: "renewed", key: "k", owner: "me", fencingToken: record.fencingToken },
    ]);
  });

  it("is sent once for all who ask at the same time, and again for the next", async () => {
    const lease = held();
    const { sent, send } = answering();
    await Promise.all([lease.renew(send), lease.renew(send)]);
    expect(sent).toHaveLength(1);
    await lease.renew(send);
    expect(sent).toHaveLength(2);
  });

  it("is not sent for a lease that is lost", async () => {
    const lease = held();
    lease.deadline.end("taken");
    const { sent, send } = answering();
    await expect(lease.renew(send)).rejects.toMatchObject({ code: "LEASE_LOST", reason: "taken" });
    expect(sent).toEqual([]);
  });

  it("ends the lease where its holder was asked to stop", async () => {
    const lease = held();
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
    const lease = held({}, false);
    await lease.renew(send);
    expect(versions()).toEqual([2, version]);
    expect([lease.version, types()]).toEqual([version, ["renewed"]]);
  });

  it("is repeated five times, and then fails without an end of the lease", async () => {
    const { sent, send } = answering(...Array.from({ length: 6 }, () => ({ expiresAt: 1 })));
    const lease = held();
    await expect(lease.renew(send)).rejects.toMatchObject({ code: "LEASE_CONFLICT" });
    expect([sent.length, lease.deadline.lost]).toEqual([6, undefined]);
  });
});

describe("a lease whose item does not show it any more", () => {
  const lossOf = async (item: Item | undefined): Promise<unknown> => {
    const lease = held();
    const send = async () => ({ applied: false, item, retried: false });
    const error = await failureOf(lease.renew(send));
    return [lease.deadline.lost, String((error as Error).message)];
  };
  const shown = () => store.table.peek(itemKey) ?? {};

  it("was taken, by the holder that it shows or by one that has gone", async () => {
    const other = { ...shown(), token: "other", owner: "another" };
    expect(await lossOf(other)).toEqual(["taken", expect.stringContaining('held by "another"')]);
    expect(await lossOf({ ...itemKey, releasedToken: "other" })).toEqual(["taken", expect.any(String)]);
  });

  it("was taken where its token came back with another fencing token", async () => {
    const back = { ...shown(), fence: record.fencingToken + 1 };
    expect(await lossOf(back)).toEqual(["taken", expect.any(String)]);
  });

  it("was released where the item says so, also while the lock is in its cooldown", async () => {
    expect(await lossOf({ ...itemKey, releasedToken: record.token })).toEqual([
      "released",
      expect.any(String),
    ]);
    const closed = { ...shown(), token: cooldownToken(record.token) };
    expect(await lossOf(closed)).toEqual(["released", expect.stringContaining('held by "me"')]);
  });

  it("has expired where ttl has removed the item", async () => {
    expect(await lossOf(undefined)).toEqual(["expired", expect.any(String)]);
  });

  it("costs no request to release, which tells that it did nothing", async () => {
    const lease = held();
    await failureOf(lease.renew(answering("gone").send));
    events.length = 0;
    expect(await lease.release(true)).toEqual({ wasOurs: false, isRecorded: false });
    expect(store.calls).toEqual([]);
    expect(events).toMatchObject([{ type: "released", confirmed: false, heldMs: 0, owner: "me" }]);
  });
});

describe("a mistake in the program during a heartbeat", () => {
  it("ends the lease's protection, and is told", () => {
    const mistake = new TypeError("no such thing");
    const lease = held();
    lease.fail(mistake);
    expect(lease.deadline.lost).toBe("failed");
    expect(lease.deadline.error?.cause).toBe(mistake);
    expect(events).toMatchObject([{ type: "error", operation: "renew", error: mistake }, { type: "lost" }]);
    expect(events[0]).not.toHaveProperty("fencingToken");
  });

  it("is nothing to tell once the lease has ended", () => {
    const lease = held();
    lease.deadline.end("taken");
    lease.fail(new TypeError("no such thing"));
    expect(types()).toEqual(["lost"]);
  });
});

describe("the end of a lease", () => {
  it("is told to who listens, and the client holds it no more", async () => {
    const lease = held();
    context.hold(lease);
    const heard: string[] = [];
    for (const name of ["first", "second"]) lease.onEnd(() => heard.push(name));
    expect(context.lifecycle.held).toEqual([lease]);
    await lease.release(false);
    expect([heard, context.lifecycle.held]).toEqual([["first", "second"], []]);
    expect(lease.deadline.lost).toBe("released");
    expect(events).toMatchObject([{ type: "released", confirmed: true }]);
  });

  it.each([
    [true, "2026", { wasOurs: true, isRecorded: true }],
    [false, "2026", { wasOurs: true, isRecorded: false }],
    [true, undefined, { wasOurs: true, isRecorded: false }],
  ])("records its slot where it was completed (%s) and has one (%s)", async (completed, slot, ended) => {
    expect(await held({ slot }).release(completed)).toEqual(ended);
    expect(store.table.peek(itemKey)?.doneSlot).toBe(ended.isRecorded ? "2026" : undefined);
  });

  it.each([
    ["2026", true],
    ["2027", true],
    ["2025", false],
    [undefined, false],
  ])(
    "has recorded its slot where an earlier copy has landed, and the item says %s",
    async (done, isRecorded) => {
      const item = {
        ...itemKey,
        releasedToken: record.token,
        ...(done === undefined ? {} : { doneSlot: done }),
      };
      answerRelease({ item });
      expect(await held({ slot: "2026" }).release(true)).toEqual({ wasOurs: true, isRecorded });
    },
  );

  it("comes with the last of its handles, completed where one of them was", async () => {
    const lease = held({ slot: "2026" });
    lease.retain();
    lease.retain();
    expect(await lease.release(false)).toEqual({ wasOurs: true, isRecorded: false });
    expect(await lease.release(true)).toEqual({ wasOurs: true, isRecorded: true });
    expect(store.calls).toEqual([]);
    expect(await lease.release(false)).toEqual({ wasOurs: true, isRecorded: true });
    expect(store.calls).toHaveLength(1);
  });

  it.each([
    ["taken", false],
    ["revoked", true],
  ] as const)("of one of its handles counts for %s: %s", async (reason, wasOurs) => {
    const lease = held();
    lease.retain();
    lease.deadline.end(reason);
    expect(await lease.release(true)).toEqual({ wasOurs, isRecorded: wasOurs });
  });

  it("comes for all of its handles when it is let go, completed by none", async () => {
    const lease = held({ slot: "2026" });
    lease.retain();
    lease.letGo();
    await settled();
    expect([store.calls.length, store.table.peek(itemKey)?.doneSlot]).toEqual([1, undefined]);
  });

  it("is sent once for all who ask at the same time, and again after it failed", async () => {
    const lease = held();
    store.next("throttled");
    const failures = await Promise.all([lease.release(false), lease.release(false)].map(failureOf));
    expect(failures).toMatchObject([{ code: "LEASE_THROTTLED" }, { code: "LEASE_THROTTLED" }]);
    expect(store.calls).toHaveLength(1);
    expect(await lease.release(false)).toEqual({ wasOurs: true, isRecorded: false });
    expect(types()).toEqual(["released", "released"]);
  });

  it("is waited for when the client is closed", async () => {
    const write = Promise.withResolvers<UpdateResult>();
    store.update = () => write.promise;
    const ending = held().release(false);
    let isClosed = false;
    const closing = context.lifecycle.close(5_000).then(() => {
      isClosed = true;
    });
    await settled();
    expect(isClosed).toBe(false);
    write.resolve({ applied: true, item: undefined, retried: false });
    await Promise.all([ending, closing]);
  });

  it("that meets a mistake in the program is told, beside that it is not confirmed", async () => {
    const mistake = new TypeError("no such thing");
    store.update = () => Promise.reject(mistake);
    await expect(held().release(false)).rejects.toBe(mistake);
    expect(events).toMatchObject([
      { type: "released", confirmed: false },
      { type: "error", operation: "release", error: mistake },
    ]);
  });

  it("is not sent where the process froze while it was written", async () => {
    const isCurrent: boolean[] = [];
    store.update = async (_, call) => {
      isCurrent.push(call.isCurrent());
      return { applied: true, item: undefined, retried: false };
    };
    const lease = held();
    const write = lease.form.release.bind(lease.form);
    lease.form.release = (ending) => {
      clock.freeze(60_000);
      return write(ending);
    };
    await lease.release(false);
    expect(isCurrent).toEqual([false]);
  });
});

describe("a cooldown", () => {
  const cooldown = () => {
    const { token, expiresAt, leaseDurationMs: forMs } = store.table.peek(itemKey) ?? {};
    return token === undefined ? undefined : { until: Number(expiresAt) - clock.now(), forMs };
  };

  it("lasts for what is left of it by the monotonic clock, where this process has acquired the lock", async () => {
    clock.freeze(2_000);
    clock.jump(60_000);
    await held({ cooldownUntil: record.acquiredAt + 9_000 }).release(false);
    expect(cooldown()).toEqual({ until: 7_000, forMs: 7_000 });
  });

  it("lasts for what is left of it by the wall clock, where another has", async () => {
    clock.jump(2_000);
    const { heldSince: _, ...terms } = held({ cooldownUntil: record.acquiredAt + 9_000 }).terms;
    await new HeldLease(context, new LockForm("k", "lease"), terms, undefined).release(false);
    expect(cooldown()).toEqual({ until: 7_000, forMs: 7_000 });
  });

  it("lasts for all of its time where another's wall clock was ahead", async () => {
    clock.jump(-60_000);
    const { heldSince: _, ...terms } = held({ cooldownUntil: record.acquiredAt + 9_000 }).terms;
    await new HeldLease(context, new LockForm("k", "lease"), terms, undefined).release(false);
    expect(cooldown()).toEqual({ until: 9_000, forMs: 9_000 });
  });

  it.each([
    ["is over", 9_000],
    ["was never asked for", undefined],
  ])("is none where it %s", async (_, ms) => {
    clock.freeze(9_000);
    await held({ cooldownUntil: ms === undefined ? undefined : record.acquiredAt + ms }).release(false);
    expect(cooldown()).toBeUndefined();
  });
});

describe("a release that finds the lease gone", () => {
  const unknown = { code: "LEASE_NO_ANSWER", message: expect.stringContaining("not known") };
  const seat = (isReentrant = false) =>
    held({ record: { ...record, seat: { kind: "permit", permits: 1 }, reentrant: isReentrant } });

  it("was not ours to end, where its only request was refused", async () => {
    answerRelease({ item: { ...itemKey, releasedToken: "other" } });
    expect(await held().release(true)).toEqual({ wasOurs: false, isRecorded: false });
    expect(events).toMatchObject([{ type: "released", confirmed: false }]);
  });

  it("does not know whether an earlier copy had landed, where the request was repeated", async () => {
    answerRelease({ retried: true });
    expect(await failureOf(held().release(true))).toMatchObject(unknown);
  });

  it.each([
    ["shows it all the same", () => store.table.peek(itemKey)],
    ["says that an operator has broken it", () => ({ ...itemKey, brokenToken: record.token })],
  ])("was not ours to end where the item %s", async (_, item) => {
    answerRelease({ retried: true, item: item() });
    expect(await held().release(true)).toEqual({ wasOurs: false, isRecorded: false });
  });

  it("had landed before, where nobody else could have taken the seat yet", async () => {
    answerRelease({ retried: true });
    expect(await seat().release(false)).toEqual({ wasOurs: true, isRecorded: false });
    expect(events).toMatchObject([{ type: "released", confirmed: true }]);
  });

  it.each([
    ["a process of the same owner could have taken it", () => seat(true)],
    [
      "its time was over before",
      () => {
        const lease = seat();
        lease.deadline.end("taken");
        return lease;
      },
    ],
  ])("is not known to have landed where %s", async (_, make) => {
    answerRelease({ retried: true });
    expect(await failureOf(make().release(false))).toMatchObject(unknown);
  });

  it("is not known to have landed where its time was over when the answer came", async () => {
    const lease = seat();
    store.update = async () => {
      clock.freeze(leaseDurationMs);
      return { applied: false, item: undefined, retried: true };
    };
    expect(await failureOf(lease.release(false))).toMatchObject(unknown);
  });

  it("goes by the time that was left when its first try began", async () => {
    const lease = seat();
    store.update = () => Promise.reject(new LeaseServiceError("LEASE_NO_ANSWER", "lost"));
    await failureOf(lease.release(false));
    answerRelease({});
    clock.freeze(leaseDurationMs - 1);
    expect(await lease.release(false)).toEqual({ wasOurs: true, isRecorded: false });
  });

  it.each([
    ["LEASE_NO_ANSWER", true],
    ["LEASE_THROTTLED", false],
  ] as const)("may have landed after a first try that ended with %s: %s", async (code, mayHaveLanded) => {
    const lease = held();
    store.update = () => Promise.reject(new LeaseServiceError(code, "no"));
    await failureOf(lease.release(false));
    answerRelease({ item: { ...itemKey, releasedToken: "other" } });
    const error = await failureOf(lease.release(false));
    if (mayHaveLanded) expect(error).toMatchObject(unknown);
    else expect(error).toBeUndefined();
  });

  it("cannot have landed after a first try that met a mistake in the program", async () => {
    const lease = held();
    store.update = () => Promise.reject(new TypeError("no such thing"));
    await failureOf(lease.release(false));
    answerRelease({ item: { ...itemKey, releasedToken: "other" } });
    expect(await lease.release(false)).toEqual({ wasOurs: false, isRecorded: false });
  });
});
