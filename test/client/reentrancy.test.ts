import {
  type AcquireOptions,
  type Lease,
  LeaseClient,
  type LeaseEvent,
  type LeaseRecord,
  SlotMismatchError,
} from "@leasehold/client";
import { fair } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { Leader } from "@leasehold/client/leader";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock, settled } from "@leasehold/client/testing";
import { JobRuns } from "@leasehold/jobs";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { Sharing } from "../../packages/client/src/core/sharing.ts";
import { adminOf } from "../support/admin.ts";
import { follow } from "../support/follow.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

type Wish = Pick<AcquireOptions, "owner" | "reentrant" | "slot" | "waitMs" | "signal">;

const leaseDurationMs = 30_000;
const again = { owner: "task-1", reentrant: true } as const;
const slot = "2026-01-01T00:00:00.000Z";

let clock: ManualClock;
let store: ScriptedStore;
let events: LeaseEvent[];
let client: LeaseClient;

const clientOf = (owner: string): LeaseClient =>
  new LeaseClient({ store, clock, owner, leaseDurationMs, onEvent: (event) => events.push(event) });

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  events = [];
  client = clientOf("task-1");
});

const semaphores = new WeakMap<LeaseClient, Semaphore>();
const semaphoreOf = (of: LeaseClient): Semaphore => {
  const known = semaphores.get(of) ?? new Semaphore(of, "k", { permits: 1 });
  semaphores.set(of, known);
  return known;
};
const readWriteLocks = new WeakMap<LeaseClient, ReadWriteLock>();
const readWriteLockOf = (of: LeaseClient): ReadWriteLock => {
  const known = readWriteLocks.get(of) ?? new ReadWriteLock(of, "k");
  readWriteLocks.set(of, known);
  return known;
};

/** By primitive, how one client takes what only one caller can have, without waiting. */
const exclusive: [string, (of: LeaseClient, wish: Wish) => Promise<Pick<Lease, "renew">>][] = [
  ["a lock", (of, wish) => of.acquire("k", wish)],
  ["a fair lock", (of, wish) => of.acquire("k", { ...wish, order: fair() })],
  ["a permit", (of, wish) => semaphoreOf(of).acquire(wish)],
  ["a write lock", (of, wish) => readWriteLockOf(of).write(wish)],
  ["a group", (of, wish) => acquireAll(of, ["k", "l"], wish)],
];

describe.each([
  ...exclusive,
  ["a read lock", (of, wish) => readWriteLockOf(of).read(wish)],
  ["a leadership", async (of, wish) => await new Leader(of, "k", wish).campaign()],
  ["a run", async (of, wish) => ({ renew: () => new JobRuns(of, "k").run(slot, () => undefined, wish) })],
] as typeof exclusive)("%s that is wanted reentrantly", (name, take) => {
  it("needs an owner of the call, for the client's is that of all its callers", async () => {
    const refusal = await take(client, { reentrant: true })
      .then((taken) => taken.renew())
      .catch((error: unknown) => error);
    expect(refusal).toMatchObject({ code: "LEASE_INVALID_OPTIONS", option: "owner", value: undefined });
    expect(store.calls, name).toEqual([]);
  });
});

describe.each(exclusive)("%s", (_, take) => {
  it.each([
    ["in the same client", () => client],
    ["from elsewhere", () => clientOf("task-1")],
  ])(
    "that is held plainly is not shared with a reentrant caller of its owner, nor taken from it, %s",
    async (_where, other) => {
      const plain = await take(client, { owner: again.owner });
      await expect(take(other(), again)).rejects.toMatchObject({
        code: "LEASE_UNAVAILABLE",
        holder: again.owner,
      });
      await plain.renew();
      expect(events.some(({ type }) => type === "takeover")).toBe(false);
    },
  );

  it("that is held reentrantly is shared in the same client, and taken over from elsewhere", async () => {
    const outer = await take(client, again);
    const inner = await take(client, again);
    await Promise.all([outer.renew(), inner.renew()]);
    const resumed = await take(clientOf("b"), again);
    await resumed.renew();
    await expect(outer.renew()).rejects.toMatchObject({ code: "LEASE_LOST", reason: "taken" });
  });
});

describe("calls of one owner at the same time", () => {
  it("win one lease together; one that fails fails alone: the next wins, and those behind share that", async () => {
    store.next("rejected");
    const [first, ...others] = [1, 2, 3].map(() => client.acquire("k", again));
    await expect(first).rejects.toMatchObject({ code: "LEASE_REQUEST_REJECTED" });
    const [second, third] = (await Promise.all(others)) as [Lease, Lease];
    expect([third.token, store.count("update")]).toEqual([second.token, 2]);
    await second.release();
    expect(third.held).toBe(true);
    await third.release();
    expect(store.count("update")).toBe(3);
  });

  it("have one time for all that they wait for, however many fail before them", async () => {
    clock.freeze(7_000);
    store.weather = "hangs";
    const calls = [6_000, 30_000, 30_000].map((leaseDurationMs) =>
      follow(client.acquire("k", { ...again, leaseDurationMs }), clock),
    );
    await clock.advance(20_000);
    expect(calls.map(({ at = 0 }) => at - 7_000)).toEqual([6_000, 16_000, 10_000]);
    expect(calls[2]?.error).toMatchObject({ code: "LEASE_UNAVAILABLE" });
  });

  it("share a lease of the same key, place, kind and owner only", async () => {
    const readWrite = readWriteLockOf(client);
    const other = { ...again, owner: "task-2" };
    const semaphore = new Semaphore(client, "k", { permits: 2 });
    const taken = [
      client.acquire("k", again),
      client.acquire("l", again),
      semaphore.acquire(again),
      semaphore.acquire(other),
      readWrite.write(again),
      readWrite.read(again),
    ];
    const tokens = (await Promise.all(taken)).map(({ token }) => token);
    expect(new Set(tokens).size).toBe(taken.length);
  });

  it("win a new lease once the time of theirs is over, which outlives the end of the old one", async () => {
    const old = await client.acquire("k", again);
    clock.freeze(leaseDurationMs);
    const young = await client.acquire("k", again);
    expect(young.token).not.toBe(old.token);
    await old.release();
    expect((await client.acquire("k", again)).token).toBe(young.token);
  });
});

it("a client forgets a shared lease when it ends: owners by the thousand leave nothing behind", async () => {
  const sharing = new Sharing(clock);
  let end = (): void => undefined;
  const onEnd = (listener: () => void): void => {
    end = listener;
  };
  const none = () => Promise.resolve();
  const record = {} as LeaseRecord;
  const lease = {
    record,
    slot: undefined,
    remainingMs: () => 1,
    onEnd,
    retain() {},
    suit: none,
    release: none,
  };
  const win = vi.fn(() => Promise.resolve([lease]));
  const wish = { key: "k", sortKey: "lease", owner: "a", slot: undefined };
  const share = () => sharing.share([wish], { waitMs: 0, signal: undefined }, win);
  await share();
  await share();
  expect(win).toHaveBeenCalledTimes(1);
  end();
  await share();
  expect(win).toHaveBeenCalledTimes(2);
});

describe("a lease that another caller of its owner shares", () => {
  it("lasts as long as that caller has asked for, by one renewal; a shorter or no wish changes nothing", async () => {
    const outer = await client.acquire("k", { ...again, leaseDurationMs: 5_000 });
    store.calls.length = 0;
    for (const wish of [{}, { leaseDurationMs: 4_000 }, { leaseDurationMs: 5_000 }]) {
      await (await client.acquire("k", { ...again, ...wish })).release();
    }
    expect(store.calls).toEqual([]);
    const longer = (): Promise<Lease> => client.acquire("k", { ...again, leaseDurationMs: 60_000 });
    const update = store.update.bind(store);
    let meanwhile: Promise<Lease> | undefined;
    store.update = async (...call) => {
      const result = await update(...call);
      meanwhile ??= longer();
      await settled();
      return result;
    };
    const inner = await longer();
    await meanwhile;
    expect(store.calls).toHaveLength(1);
    expect([outer.remainingMs(), inner.remainingMs()]).toEqual([60_000, 60_000]);
    await clock.advance(50_000);
    await outer.renew();
    expect(outer.remainingMs()).toBe(60_000);
    expect(inner.toJSON().leaseDurationMs).toBe(60_000);
  });

  it.each([
    ["at that caller's interval where it is less than half of the lease", 4_999, [4_999, 9_998]],
    ["every third of the lease where the interval is half of it", 5_000, [3_334, 6_668, 10_002]],
    ["every third of the lease where the interval is longer", 14_000, [3_334, 6_668, 10_002]],
    ["never where the caller wants no heartbeat", false as const, []],
  ])("is renewed %s", async (_, heartbeat, times) => {
    const randomness = { token: () => "t", fraction: () => 0 };
    const own = new LeaseClient({ store, clock, owner: "task-1", leaseDurationMs, randomness });
    await own.acquire("k", { ...again, leaseDurationMs: 10_000 });
    const seen: number[] = [];
    const update = store.update.bind(store);
    store.update = (request, call) => {
      seen.push(clock.monotonic());
      return update(request, call);
    };
    await own.acquire("k", { ...again, heartbeat });
    await clock.advance(11_000);
    expect(seen).toEqual(times);
  });

  it("is shared at once where it is long enough, also while a renewal hangs", async () => {
    const outer = await client.acquire("k", { ...again, leaseDurationMs: 5_000 });
    store.next("hangs");
    const renewing = follow(outer.renew(), clock);
    expect((await client.acquire("k", { ...again, leaseDurationMs: 4_000 })).held).toBe(true);
    expect(renewing.at).toBeUndefined();
  });

  it("is renewed once more where a renewal for the shorter time is under way", async () => {
    const outer = await client.acquire("k", { ...again, leaseDurationMs: 5_000 });
    await clock.advance(1_000);
    const [, inner] = await Promise.all([
      outer.renew(),
      client.acquire("k", { ...again, leaseDurationMs: 60_000 }),
    ]);
    expect(inner.remainingMs()).toBe(60_000);
  });

  it("is not shared where that renewal fails, and stays with the first caller; the next call renews it", async () => {
    const outer = await client.acquire("k", { ...again, leaseDurationMs: 5_000 });
    const longer = (leaseDurationMs: number): Promise<Lease> =>
      client.acquire("k", { ...again, leaseDurationMs });
    store.next("request lost");
    const failed = await Promise.allSettled([longer(60_000), longer(30_000)]);
    for (const { reason } of failed as PromiseRejectedResult[])
      expect(reason).toMatchObject({ code: "LEASE_NO_ANSWER" });
    const renewed = await longer(30_000);
    expect(renewed.remainingMs()).toBe(60_000);
    await renewed.release();
    expect(await outer.release()).toBe(true);
    expect(await client.inspect("k")).toBeUndefined();
  });

  it("has the cooldown that ends last, without a request", async () => {
    const outer = await client.acquire("k", { ...again, lockAtLeastForMs: 1_000 });
    await clock.advance(500);
    const inner = await client.acquire("k", { ...again, lockAtLeastForMs: 2_000 });
    await (await client.acquire("k", { ...again, lockAtLeastForMs: 10 })).release();
    expect(store.calls).toHaveLength(1);
    await inner.release();
    await outer.release();
    expect(await client.inspect("k")).toMatchObject({ inCooldown: true, expiresAt: clock.now() + 2_000 });
  });

  it("keeps its payload: another one is refused by name, and the same one or none is not", async () => {
    const outer = await client.acquire("k", { ...again, data: { step: 1 } });
    await expect(client.acquire("k", { ...again, data: { step: 2 } })).rejects.toMatchObject({
      code: "LEASE_INVALID_OPTIONS",
      option: "data",
    });
    await (await client.acquire("k", { ...again, data: { step: 1 } })).release();
    const inner = await client.acquire("k", again);
    expect([inner.data, outer.held]).toEqual([{ step: 1 }, true]);
    await inner.release();
    await outer.release();
    expect(await client.inspect("k")).toBeUndefined();
  });
});

describe("a handle of a reentrant lease", () => {
  it("that was released prolongs nothing, while another one does", async () => {
    const outer = await client.acquire("k", again);
    const inner = await client.acquire("k", again);
    await inner.release();
    store.calls.length = 0;
    await expect(inner.renew()).rejects.toMatchObject({ code: "LEASE_LOST", reason: "released" });
    expect(store.calls).toEqual([]);
    await outer.renew();
    expect(outer.remainingMs()).toBe(leaseDurationMs);
  });
});

describe("a handle beside others of a reentrant lease", () => {
  it.each(["revoked", "taken"] as const)(
    "that is released after it was %s: it was its holder's to end if revoked",
    async (how) => {
      const outer = await client.acquire("k", again);
      const inner = await client.acquire("k", again);
      if (how === "revoked") await adminOf(client).requestRevocation("k", { token: outer.token });
      else await clientOf("b").acquire("k", again);
      await expect(outer.renew()).rejects.toMatchObject({ reason: how });
      expect(await inner.release()).toBe(how === "revoked");
    },
  );
});

describe("a group of a reentrant owner", () => {
  it("keeps the lock that it shares while it waits for the others, though the first handle is released", async () => {
    const other = await clientOf("other").acquire("l");
    const first = await client.acquire("k", { ...again, heartbeat: true });
    const waiting = acquireAll(client, ["k", "l"], { ...again, waitMs: 60_000 });
    await clock.advance(1_000);
    expect(await first.release()).toBe(true);
    expect(await clientOf("b").inspect("k")).toMatchObject({ token: first.token });
    await other.release();
    await clock.advance(10_000);
    expect((await waiting).held).toBe(true);
  });

  it("keeps no hold on what it shares where the missing locks are not won, which are free to win then", async () => {
    const held = await client.acquire("l", again);
    store.next("rejected");
    await expect(acquireAll(client, ["k", "l"], again)).rejects.toThrow();
    await held.release();
    expect(await client.inspect("l")).toBeUndefined();
    expect((await client.acquire("k", again)).held).toBe(true);
  });
});

describe("a call of a reentrant owner that fails", () => {
  it.each<[string, string, () => Promise<unknown>]>([
    [
      "for the service",
      "LEASE_THROTTLED",
      () => {
        store.next("throttled");
        return client.acquire("k", { ...again, slot, leaseDurationMs: 60_000 });
      },
    ],
    [
      "as a group",
      "LEASE_UNAVAILABLE",
      async () => {
        await clientOf("b").acquire("l");
        return await acquireAll(client, ["k", "l"], again);
      },
    ],
  ])("%s leaves the slot open for the release of the call before", async (_, code, failing) => {
    const first = await client.acquire("k", { ...again, slot });
    await expect(failing()).rejects.toMatchObject({ code });
    expect(first.held).toBe(true);
    expect(await first.release()).toBe(true);
    expect(await client.doneSlot("k")).toBeUndefined();
  });
});

it("a handle of a reentrant lease says no cooldown that nobody has asked for", async () => {
  await client.acquire("k", again);
  expect((await client.acquire("k", again)).toJSON()).not.toHaveProperty("cooldownUntil");
});

it("a refusal advises the owner that holds the lock to share it, unless that is in a cooldown", async () => {
  const advice = /reentrant/;
  const closing = await client.acquire("c", { lockAtLeastForMs: 5_000 });
  await client.acquire("k");
  await closing.release();
  await expect(client.acquire("k")).rejects.toThrow(advice);
  await expect(client.acquire("k", { owner: "you" })).rejects.not.toThrow(advice);
  await expect(client.acquire("c")).rejects.not.toThrow(advice);
});

describe("a reentrant lease with a slot", () => {
  it.each([
    ["another slot", { slot: "7" }, "8", "7"],
    ["a slot, where it has none", {}, "8", undefined],
  ])("is not given to a caller that asks for %s", async (_, outer, wanted, heldSlot) => {
    const held = await client.acquire("k", { ...again, ...outer });
    const refusal = await client.acquire("k", { ...again, slot: wanted }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(SlotMismatchError);
    expect(refusal).toMatchObject({ code: "LEASE_SLOT_MISMATCH", key: "k", slot: wanted, heldSlot });
    await expect(client.tryAcquire("k", { ...again, slot: wanted })).rejects.toBeInstanceOf(
      SlotMismatchError,
    );
    expect(await held.release()).toBe(true);
    expect(await clientOf("b").inspect("k")).toBeUndefined();
  });

  type Handles = { readonly outer: Lease; readonly inner: Lease };

  it.each<[string, string, (handles: Handles) => Promise<unknown[]>, unknown[]]>([
    [
      "is recorded",
      "an inner handle has completed it, when the last handle ends",
      async ({ outer, inner }) => [await inner.complete(), await inner.complete(), await outer.release()],
      [true, true, true],
    ],
    [
      "is recorded",
      "the outer handle has completed it, and an inner one is released last",
      async ({ outer, inner }) => [await outer.complete(), await inner.release()],
      [true, true],
    ],
    [
      "stays open",
      "an inner handle was released before it was completed",
      async ({ outer, inner }) => [await inner.release(), await inner.complete(), await outer.release()],
      [true, false, true],
    ],
    [
      "stays open",
      "the lease was lost before an inner handle was completed",
      async ({ inner }) => {
        await clock.advance(leaseDurationMs);
        return [await inner.complete()];
      },
      [false],
    ],
    [
      "stays open",
      "an inner handle without a slot is completed, or that of a helper's withLease",
      async ({ outer, inner }) => {
        await inner.release();
        const helper = await client.acquire("k", again);
        const answers = [await helper.complete(), await client.withLease("k", again, ({ slot }) => slot)];
        return [...answers, outer.slot, await outer.release()];
      },
      [true, undefined, "7", true],
    ],
  ])("%s where %s", async (outcome, _, end, answers) => {
    const [outer, inner] = [
      await client.acquire("k", { ...again, slot: "7" }),
      await client.acquire("k", { ...again, slot: "7" }),
    ];
    expect(await end({ outer, inner })).toEqual(answers);
    expect(await client.doneSlot("k")).toBe(outcome === "is recorded" ? "7" : undefined);
  });
});
