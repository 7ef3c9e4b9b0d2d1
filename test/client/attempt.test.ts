/** One acquisition under one token: what it sends within which bounds, what it makes of the answers, how it is given up. */
import {
  LeaseClient,
  type LeaseEvent,
  type LeaseRecord,
  LeaseServiceError,
  SlotDoneError,
} from "@leasehold/client";
import { coreOf } from "@leasehold/client/internal";
import { ManualClock, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { lastReleasedToken } from "../../packages/client/src/base/record.ts";
import type { UpdateResult } from "../../packages/client/src/base/store.ts";
import { Attempt, type LeaseTerms } from "../../packages/client/src/core/attempt.ts";
import type { Core } from "../../packages/client/src/core/core.ts";
import type { Availability, Takeover } from "../../packages/client/src/core/form.ts";
import { LockForm } from "../../packages/client/src/core/lock-form.ts";
import { failureOf, itemKey, leaseDurationMs } from "../support/lease-by-hand.ts";
import { setting } from "../support/recomposed.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const patient = { withinMs: Number.POSITIVE_INFINITY };

let clock: ManualClock;
let store: ScriptedStore;
let events: LeaseEvent[];
let core: Core;
let form: LockForm;

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  begin();
});

/** Makes the client whose core is tested, of the store as it is. */
function begin(): void {
  events = [];
  const client = new LeaseClient({ store, clock, leaseDurationMs, onEvent: (event) => events.push(event) });
  core = coreOf(client);
  form = new LockForm("k", "lease");
}

function attempt(more: Partial<LeaseTerms> = {}): Attempt {
  const terms = {
    key: "k",
    sortKey: "lease",
    owner: "me",
    leaseDurationMs,
    slot: undefined,
    data: undefined,
  };
  return new Attempt(core, form, { ...terms, reentrant: false, resumes: false, ...more });
}

const holdAs = (owner: string, slot?: string) =>
  new LeaseClient({ store, clock, owner, leaseDurationMs }).acquire("k", slot === undefined ? {} : { slot });
const knowing = (takeovers: readonly Takeover[]): Availability => ({
  ...{ blocker: undefined, claimableInMs: 0, takeovers },
});
const bySight = (from: LeaseRecord): Takeover => ({ reason: "observation", from });
/** How often a call has written. */
async function writesOf(call: () => unknown): Promise<number> {
  store.calls.length = 0;
  await call();
  await settled();
  return store.count("update");
}

describe("a try", () => {
  it("is sent in its caller's own turn where there is room", () => {
    void attempt().try(patient);
    expect(store.calls).toHaveLength(1);
  });

  it.each([
    ["10 s", 60_000, Number.POSITIVE_INFINITY, 10_000],
    ["its lease", 4_000, Number.POSITIVE_INFINITY, 4_000],
    ["what its caller waits", 4_000, 3_000, 3_000],
    ["a second, however short its lease", 500, Number.POSITIVE_INFINITY, 1_000],
    ["a second, however little its caller waits", 4_000, 300, 1_000],
  ])("takes no longer than %s", async (_, durationMs, withinMs, most) => {
    const update = vi.spyOn(core, "update");
    await attempt({ leaseDurationMs: durationMs }).try({ withinMs });
    expect(update.mock.calls[0]?.[1]?.withinMs).toBe(most);
  });

  it("takes as much less as it has waited for room, and counts its lease from when it is sent", async () => {
    for (let count = 0; count < 32; count += 1) core.gate.enter(1_000, undefined);
    const update = vi.spyOn(core, "update");
    const trying = attempt().try({ withinMs: 5_000 });
    await clock.advance(2_000);
    expect(update).not.toHaveBeenCalled();
    core.gate.leave(undefined);
    expect(await trying).toMatchObject({ granted: true, belief: { since: { monotonic: 2_000 } } });
    expect(update.mock.calls[0]?.[1]).toMatchObject({ withinMs: 3_000, since: { monotonic: 2_000 } });
  });

  it("gives its room back, however it ends", async () => {
    store.next(...Array.from({ length: 20 }, () => "throttled" as const));
    for (let count = 0; count < 40; count += 1) {
      await failureOf(Promise.race([attempt().try(patient), clock.advance(0)]));
    }
    expect(core.gate.enter(1_000, undefined)).toBe(0);
  });

  it("makes one more request where the refusal shows what may be taken over, and no third", async () => {
    const { token } = await holdAs("dead");
    clock.freeze(leaseDurationMs + 5_000);
    expect(await writesOf(() => attempt().try(patient))).toBe(2);
    expect(store.table.peek(itemKey)?.token).not.toBe(token);
    form.judge = () => knowing([bySight({ token: "t", version: 1, fencingToken: 1 } as LeaseRecord)]);
    expect(await writesOf(() => attempt().try(patient))).toBe(2);
  });

  it("tells from whom it took the lease, but not of a cooldown, nor of a holder that its form keeps to itself", async () => {
    const from = { token: "t", version: 1, inCooldown: false } as LeaseRecord;
    const silent = { ...from, token: "silent" };
    const takeovers = [from, { ...from, inCooldown: true }, silent].map(bySight);
    const acquire = form.acquire.bind(form);
    form.acquire = (grant) => acquire(grant, []);
    Object.assign(form, { announces: ({ token }: LeaseRecord) => token !== "silent" });
    const granted = await attempt().try(patient, knowing(takeovers));
    expect(granted).toMatchObject({ takeovers: [bySight(from)] });
  });

  it("is not made where what has to go first is refused", async () => {
    await holdAs("other");
    const clear = vi.fn(() => [
      setting(itemKey, { a: 1 }, "attribute_not_exists(#token)"),
      setting(itemKey, { b: 1 }, "attribute_exists(#token)"),
    ]);
    Object.assign(form, { clear });
    let outcome: unknown;
    const writes = await writesOf(async () => {
      outcome = await attempt().try(patient, knowing([]));
    });
    expect([writes, clear.mock.calls]).toEqual([1, [[[]]]]);
    expect(outcome).toMatchObject({ granted: false, availability: { blocker: { owner: "other" } } });
  });

  it("is made once what has to go first is gone", async () => {
    Object.assign(form, {
      clear: () => [setting({ pk: "k", sk: "old" }, { a: 1 })],
    });
    const update = vi.spyOn(core, "update");
    expect(await attempt().try({ withinMs: 3_000 })).toMatchObject({ granted: true });
    expect(update.mock.calls.map(([, budget]) => budget?.withinMs)).toEqual([3_000, 3_000]);
  });
});

describe("a slot", () => {
  it.each([
    ["that is done", "2026", "2026", true],
    ["before one that is done", "2025", "2026", true],
    ["after the one that is done", "2027", "2026", false],
    ["where none is done", "2026", undefined, false],
    ["of none, where one is done,", undefined, "2026", false],
  ])("%s is refused: %s after %s: %s", async (_, slot, done, isRefused) => {
    const item = done === undefined ? undefined : { ...itemKey, doneSlot: done };
    const judge = () => attempt({ slot }).judge(item);
    if (isRefused) expect(judge).toThrow(SlotDoneError);
    else expect(judge().takeovers).toEqual([]);
  });
});

describe("a grant", () => {
  it("is renewed where the table shows an earlier try's write, and not this one's", async () => {
    const trying = attempt();
    store.next("answer lost");
    expect(await failureOf(trying.try(patient))).toMatchObject({ code: "LEASE_NO_ANSWER" });
    const update = vi.spyOn(core, "update");
    const granted = await trying.try({ withinMs: 3_000 });
    expect(granted).toMatchObject({ granted: true, record: { version: 3 } });
    expect(update.mock.calls.map(([, budget]) => budget?.withinMs)).toEqual([3_000, 3_000]);
  });

  it("is renewed where another has written the same version of it with another expiry", async () => {
    const update = store.update.bind(store);
    let count = 0;
    store.update = async (request, call) => {
      const result = await update(request, call);
      count += 1;
      return count > 1 ? result : { ...result, item: { ...result.item, expiresAt: 1 } };
    };
    expect(await attempt().try(patient)).toMatchObject({ granted: true, record: { version: 2 } });
    expect(count).toBe(2);
  });

  it("counts its renewal's time from when that was written", async () => {
    const trying = attempt();
    store.next("answer lost");
    await failureOf(trying.try(patient));
    const update = store.update.bind(store);
    const renew = form.renew.bind(form);
    form.renew = (renewal) => {
      clock.freeze(60_000);
      return renew(renewal);
    };
    const isCurrent: boolean[] = [];
    store.update = (request, call) => {
      isCurrent.push(call.isCurrent());
      return update(request, call);
    };
    await trying.try(patient).catch(() => undefined);
    expect(isCurrent.slice(0, 2)).toEqual([true, false]);
  });

  it("fails where each answer takes longer than the lease, after two renewals, and is taken back", async () => {
    const update = store.update.bind(store);
    store.update = (request, call) => {
      clock.freeze(leaseDurationMs);
      return update(request, call);
    };
    const trying = attempt();
    const writes = await writesOf(() => failureOf(trying.try(patient)));
    store.update = update;
    expect(writes).toBe(3);
    expect(await writesOf(() => trying.abandon())).toBe(1);
    expect(store.table.peek(itemKey)).not.toHaveProperty("token");
  });

  it.each(["throttled", "rejected", "request lost"] as const)(
    "that has to be renewed at once is taken back where that renewal is %s",
    async (fate) => {
      store.isLocal = false;
      store.time = () => ({ earliest: clock.now() + 3_600_000, latest: clock.now() + 3_601_000 });
      begin();
      store.next(undefined, fate);
      const trying = attempt();
      expect(await failureOf(trying.try(patient))).toBeInstanceOf(LeaseServiceError);
      expect(store.table.peek(itemKey)).toHaveProperty("token");
      expect(await writesOf(() => trying.abandon())).toBe(1);
      expect(store.table.peek(itemKey)).not.toHaveProperty("token");
    },
  );

  it("that has to be renewed at once is taken back where its caller aborts before that", async () => {
    const caller = new AbortController();
    store.isLocal = false;
    store.time = () => {
      caller.abort(new Error("enough"));
      return { earliest: clock.now() + 3_600_000, latest: clock.now() + 3_601_000 };
    };
    begin();
    const trying = attempt();
    await expect(trying.try({ ...patient, signal: caller.signal })).rejects.toThrow("enough");
    expect(await writesOf(() => trying.abandon())).toBe(1);
    expect(store.table.peek(itemKey)).not.toHaveProperty("token");
  });

  it("is taken as it is when its second renewal shows an expiry that still covers little of the lease", async () => {
    let aheadMs = 0;
    store.isLocal = false;
    store.time = () => {
      aheadMs += 0.8 * leaseDurationMs;
      return { earliest: clock.now() + aheadMs, latest: clock.now() + aheadMs + 1 };
    };
    begin();
    let outcome: unknown;
    const writes = await writesOf(async () => {
      outcome = await attempt().try(patient);
    });
    expect([writes, outcome]).toMatchObject([3, { granted: true, record: { version: 3 } }]);
  });

  it("is no grant where the reply does not show it, and is taken back", async () => {
    const update = store.update.bind(store);
    store.update = async (request, call) => ({ ...(await update(request, call)), item: undefined });
    const trying = attempt();
    expect(await failureOf(trying.try(patient))).toMatchObject({
      code: "LEASE_REQUEST_REJECTED",
      message: expect.stringContaining("does not show the record"),
    });
    store.update = update;
    expect(await writesOf(() => trying.abandon())).toBe(1);
  });
});

describe("an acquisition that is given up", () => {
  it("sends nothing where every answer has come", async () => {
    await holdAs("other");
    const trying = attempt();
    await trying.try(patient);
    expect(await writesOf(() => trying.abandon())).toBe(0);
  });

  it("sends nothing where a write cannot have landed", async () => {
    store.next("throttled");
    const trying = attempt();
    await failureOf(trying.try(patient));
    expect(await writesOf(() => trying.abandon())).toBe(0);
  });

  it.each([
    ["its late write has landed", true],
    ["the other's lease has gone", false],
  ])("is taken back once more where %s before its token was revoked", async (_, hasLanded) => {
    const other = await holdAs("other");
    const [record] = form.leasesIn(store.table.peek(itemKey));
    store.next("request lost");
    const trying = attempt();
    await failureOf(trying.try(patient, knowing([bySight(record as LeaseRecord)])));
    const update = store.update.bind(store);
    const ours = { ...store.table.peek(itemKey), token: trying.token, owner: "me" };
    store.update = async (request, call) => {
      const result = await update(request, call);
      // The second one is the revocation.
      if (store.count("update") !== 2) return result;
      return { applied: hasLanded, item: hasLanded ? ours : undefined, retried: false };
    };
    expect(await writesOf(() => trying.abandon())).toBe(3);
    expect(other.held).toBe(true);
  });

  it("is taken back where a request was repeated: an earlier copy may land yet", async () => {
    await holdAs("other");
    const update = store.update.bind(store);
    store.update = async (request, call): Promise<UpdateResult> => ({
      ...(await update(request, call)),
      retried: true,
    });
    const trying = attempt();
    await trying.try(patient);
    expect(await writesOf(() => trying.abandon())).toBe(1);
  });

  it.each([
    ["a free lock", 1, () => undefined],
    ["another's place", 2, (record: LeaseRecord) => knowing([bySight(record)])],
  ])("after it was to take %s takes %i requests beside another's lease", async (_, writes, known) => {
    await holdAs("other");
    const [record] = form.leasesIn(store.table.peek(itemKey));
    store.next("request lost");
    const trying = attempt();
    await failureOf(trying.try(patient, known(record as LeaseRecord)));
    expect(await writesOf(() => trying.abandon())).toBe(writes);
  });

  it("revokes the token beside another's lease where any of its tries was to take that one's place", async () => {
    await holdAs("other");
    const [record] = form.leasesIn(store.table.peek(itemKey));
    store.next("request lost", "throttled");
    const trying = attempt();
    await failureOf(trying.try(patient, knowing([bySight(record as LeaseRecord)])));
    await failureOf(trying.try(patient));
    expect(await writesOf(() => trying.abandon())).toBe(2);
    expect(lastReleasedToken(store.table.peek(itemKey))).toBe(trying.token);
  });

  it("is what closing waits for, and names as what may stay held", async () => {
    store.next("answer lost", "hangs");
    const trying = attempt();
    await failureOf(trying.try(patient));
    trying.abandon();
    const closing = failureOf(core.lifecycle.close(1_000));
    await clock.advance(1_000);
    const left = { key: "k", sortKey: "lease", expiresAt: clock.now() - 1_000 + leaseDurationMs };
    expect(await closing).toMatchObject({ left: [left] });
  });

  it.each([
    ["the service's trouble", "throttled", []],
    ["a mistake in the program", undefined, [{ type: "error", key: "k", operation: "cancel", owner: "me" }]],
  ] as const)("and cannot be taken back for %s tells so only of a mistake", async (_, fate, told) => {
    store.next("answer lost", fate);
    const trying = attempt();
    await failureOf(trying.try(patient));
    if (fate === undefined) store.update = () => Promise.reject(new TypeError("no such thing"));
    trying.abandon();
    await settled();
    expect(events).toMatchObject(told);
    expect(events).toHaveLength(told.length);
  });
});
