import { LeaseClient, LeaseServiceError } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/operator";
import { waiterSortKeyPrefix } from "@leasehold/client/schema";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { put } from "../support/foreign-items.ts";
import { type Fate, ScriptedStore } from "../support/scripted-store.ts";

const reason = "INC-4411";
let store: ScriptedStore;
let clock: ManualClock;
let client: LeaseClient;
let operator: LeaseOperator;

beforeEach(() => {
  store = new ScriptedStore();
  clock = new ManualClock();
  client = new LeaseClient({ store, clock, owner: "a", leaseDurationMs: 60_000 });
  operator = new LeaseOperator(client, { by: "alice" });
});

/** Lets time pass until a call has settled. */
async function settle<T>(call: Promise<T>): Promise<T> {
  let isSettled = false;
  void call.then(
    () => {
      isSettled = true;
    },
    () => {
      isSettled = true;
    },
  );
  for (let step = 0; !isSettled && step < 1_000; step += 1) await clock.advance(100);
  return await call;
}

const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error) => error,
  );

const actions = async (): Promise<string[]> =>
  (await operator.describe("k")).audit.map(({ action }) => action);

describe.each<Fate>(["answer lost", "request lost", "throttled", "hangs"])(
  "when a transaction is met by: %s",
  (fate) => {
    it("an operator's break is done once, with one trace", async () => {
      const { token } = (await client.acquire("k")).toJSON();
      store.next(fate, fate);
      expect((await settle(operator.break("k", { token, reason }))).outcome).toBe("done");
      expect((await operator.describe("k")).leases).toEqual([]);
      expect(await actions()).toEqual(["break"]);
    });

    it("a pause is had once, under one token, with one trace", async () => {
      store.next(fate, fate);
      const paused = await settle(operator.pause("k", { forMs: 3_600_000, reason }));
      const { leases } = await operator.describe("k");
      expect(leases).toMatchObject([{ state: "paused", owner: "paused by alice" }]);
      expect(paused).toMatchObject({ outcome: "done", lease: { token: leases[0]?.token } });
      expect(await actions()).toEqual(["pause"]);
    });

    it("a stop and a resume are done once", async () => {
      const lease = await client.acquire("k");
      const { token } = lease.toJSON();
      store.next(fate);
      expect((await settle(operator.stop("k", { token, reason }))).outcome).toBe("done");
      await lease.release();
      await operator.pause("k", { forMs: 3_600_000, reason });
      store.next(fate);
      expect((await settle(operator.resume("k"))).outcome).toBe("done");
      expect((await actions()).sort()).toEqual(["pause", "resume", "stop"]);
    });
  },
);

it("an operator gives up after a while, and says that the action may be done", async () => {
  const { token } = (await client.acquire("k")).toJSON();
  store.weather = "answer lost";
  const failure = await failureOf(settle(operator.break("k", { token, reason })));
  expect(failure).toBeInstanceOf(LeaseServiceError);
  expect(failure).toMatchObject({ mayHaveLanded: true });
  store.weather = undefined;
  // It was done: another try finds the lock free, and the trace is there.
  expect(await operator.break("k", { token, reason })).toMatchObject({
    outcome: "free",
    lastHolder: { owner: "a", end: "broken" },
  });
  expect(await actions()).toEqual(["break"]);
});

it("a pause that may wait recognises its own lock, however late an answer comes", async () => {
  store.weather = "answer lost";
  const paused = operator.pause("k", { forMs: 3_600_000, reason, waitMs: 60_000 });
  for (let step = 0; step < 150; step += 1) await clock.advance(100);
  store.weather = undefined;
  expect(await settle(paused)).toMatchObject({ outcome: "done", entry: { action: "pause" } });
  expect(await actions()).toEqual(["pause"]);
});

it("an operator does not repeat what the service refuses", async () => {
  const { token } = (await client.acquire("k")).toJSON();
  store.next("rejected");
  expect(await failureOf(operator.break("k", { token, reason }))).toMatchObject({ retryable: false });
  expect(store.count("transact")).toBe(1);
});

it("a pause of a dead holder's lock is refused when the holder renews in between, and waits", async () => {
  const holder = new LeaseClient({ store, clock, owner: "b", leaseDurationMs: 1_000, clockSkewMs: 100 });
  const lease = await holder.acquire("k");
  await clock.advance(1_200);
  // The pause has seen a dead holder; the renewal of it arrives first.
  const transact = store.transact.bind(store);
  store.transact = async (entries, call) => {
    store.transact = transact;
    await holder.adopt(lease.toJSON()).renew();
    return await transact(entries, call);
  };
  expect(await operator.pause("k", { forMs: 60_000, reason })).toMatchObject({
    outcome: "heldByAnother",
    holder: { owner: "b" },
  });
  expect(await actions()).toEqual([]);
});

it.each([
  [{ by: "" }, "by"],
  [{}, "by"],
  [{ by: "x".repeat(1_001) }, "by"],
  [{ by: "alice", auditRetentionMs: 1 }, "auditRetentionMs"],
])("an operator with %j is refused", (options, option) => {
  expect(() => new LeaseOperator(client, options as { by: string })).toThrow(
    expect.objectContaining({ option }),
  );
});

it.each<[string, () => Promise<unknown>, string]>([
  ["a break without a token", () => operator.break("k", { reason } as never), "token"],
  ["a break without a reason", () => operator.break("k", { token: "t" } as never), "reason"],
  ["a stop without a token", () => operator.stop("k", {} as never), "token"],
  ["a pause without a time", () => operator.pause("k", { reason } as never), "forMs"],
  ["a pause of half a second", () => operator.pause("k", { forMs: 500, reason }), "forMs"],
  ["a pause of two years", () => operator.pause("k", { forMs: 2 * 366 * 86_400_000, reason }), "forMs"],
  ["a pause without a reason", () => operator.pause("k", { forMs: 60_000 } as never), "reason"],
  ["an empty key", () => operator.stop("", { token: "t" }), "key"],
  [
    "an audit of a key and a prefix",
    async () => {
      for await (const _ of operator.audit({ key: "k", prefix: "k" }));
    },
    "prefix",
  ],
])("refuses %s, and sends nothing", async (_, call, option) => {
  expect(await failureOf(call())).toMatchObject({ code: "LEASE_INVALID_OPTIONS", option });
  expect(store.calls).toEqual([]);
});

it("a description tells how many are parked, and since when the one that has waited longest", async () => {
  for (const since of [1_000, 2_000, 3_000]) put(store.table, "k", `${waiterSortKeyPrefix}${since}#flow`, {});
  expect((await operator.describe("k")).parked).toEqual({ count: 3, since: 1_000 });
});
