import { LeaseClient, LeaseServiceError } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { waiterSortKeyPrefix } from "@leasehold/client/schema";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { adminOf } from "../support/admin.ts";
import { failureOf } from "../support/failure-of.ts";
import { put } from "../support/foreign-items.ts";
import { type Fate, ScriptedStore } from "../support/scripted-store.ts";
import { WorldOfClocks } from "../support/wrong-clocks.ts";

const reason = "INC-4411";
/** The pauses between tries are the longest: a test that ends a call meanwhile is never too late. */
const randomness = { token: () => crypto.randomUUID(), fraction: () => 0.99 };
let store: ScriptedStore;
let clock: ManualClock;
let client: LeaseClient;
let operator: LeaseOperator;

beforeEach(() => {
  store = new ScriptedStore();
  clock = new ManualClock();
  client = new LeaseClient({ store, clock, owner: "a", leaseDurationMs: 60_000, randomness });
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

it("a pause that may wait recognises its own lock, however late an answer comes, and names those that it lets finish", async () => {
  const readers = new ReadWriteLock(new LeaseClient({ store, clock, owner: "r" }), "k");
  await readers.read({ leaseDurationMs: 3_600_000 });
  store.weather = "answer lost";
  const paused = operator.pause("k", { forMs: 3_600_000, reason, waitMs: 60_000 });
  for (let step = 0; step < 150; step += 1) await clock.advance(100);
  store.weather = undefined;
  expect(await settle(paused)).toMatchObject({
    outcome: "done",
    entry: { action: "pause" },
    leaves: { finishing: [{ owner: "r" }] },
  });
  expect(await actions()).toEqual(["pause"]);
});

it("a pause whose earlier try lands while it looks again, between two reads, is had once", async () => {
  store.weather = "request lost";
  store.get = async ({ key }) => {
    const item = store.table.peek(key);
    const late = store.calls.findLast(({ method }) => method === "transact")?.entries;
    if (key.sk === "lease" && late !== undefined) {
      store.weather = undefined;
      store.table.transactNow(late);
    }
    return item;
  };
  const paused = operator.pause("k", { forMs: 3_600_000, reason, waitMs: 60_000 });
  expect(await settle(paused)).toMatchObject({ outcome: "done" });
  expect(await actions()).toEqual(["pause"]);
  // DynamoDB refuses a write that changes an attribute by two names.
  for (const { names } of store.calls.flatMap(({ entries }) => entries ?? []))
    expect(new Set(Object.values(names)).size).toBe(Object.keys(names).length);
});

it("a pause that may wait for an hour does not wait so long for one read", async () => {
  const get = store.get.bind(store);
  store.get = (_, { signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const paused = operator.pause("k", { forMs: 60_000, reason, waitMs: 3_600_000 });
  await clock.advance(1_000);
  store.get = get;
  await settle(paused);
  expect(clock.monotonic()).toBeLessThan(30_000);
});

it("a resume by a machine whose clock is hours fast opens all that the pause has closed", async () => {
  const world = new WorldOfClocks();
  const clientOf = (wallMs: number) =>
    new LeaseClient({ store: world.store, clock: world.machine({ wallMs }), owner: "a" });
  const right = clientOf(0);
  await new LeaseOperator(right, { by: "alice" }).pause("k", { forMs: 3_600_000, reason });
  const fast = new LeaseOperator(clientOf(3 * 3_600_000), { by: "bob" });
  expect(await fast.resume("k")).toMatchObject({ outcome: "done" });
  expect(await new Semaphore(right, "k", { permits: 1 }).tryAcquire()).toBeDefined();
  expect(await new ReadWriteLock(right, "k").tryWrite()).toBeDefined();
});

it("a pause that DynamoDB refuses for what it would write ends at once, and says so", async () => {
  const reasons = [{ Code: "None" }, { Code: "ValidationError", Message: "Item size has exceeded" }];
  const transactions: unknown[] = [];
  const dynamodb = {
    send: async (command: { readonly constructor: { readonly name: string } }) => {
      if (command.constructor.name !== "TransactWriteItemsCommand") return { Items: [] };
      transactions.push(command);
      const message =
        "Transaction cancelled, please refer cancellation reasons for specific reasons [None, ValidationError]";
      const error = { name: "TransactionCanceledException", $metadata: { httpStatusCode: 400 } };
      throw Object.assign(new Error(message), error, { CancellationReasons: reasons });
    },
  };
  const far = new LeaseClient({ tableName: "leases", dynamodb: dynamodb as never, clock, randomness });
  const paused = failureOf(
    new LeaseOperator(far, { by: "alice" }).pause("k", { forMs: 60_000, reason, waitMs: 3_600_000 }),
  );
  await clock.advance(0);
  expect(await settle(paused)).toMatchObject({ code: "LEASE_REQUEST_REJECTED", retryable: false });
  expect(transactions).toHaveLength(1);
});

describe("a pause that its caller does not get", () => {
  const nothingHeld = async (): Promise<void> => {
    const other = new LeaseClient({ store, clock, owner: "b" });
    expect(await adminOf(other).inspectAll("k")).toEqual([]);
    expect(await new Semaphore(other, "k", { permits: 1 }).tryAcquire()).toBeDefined();
    expect(await new ReadWriteLock(other, "k").tryWrite()).toBeDefined();
    expect(await other.tryAcquire("k")).toBeDefined();
  };
  /** The transactions that were sent, as they may land once more. */
  const copies = () => store.calls.flatMap(({ entries }) => (entries === undefined ? [] : [entries]));
  const landAgain = (entries: (typeof store.calls)[number]["entries"]): boolean =>
    store.table.transactNow(entries ?? []).applied;

  it.each<Fate>(["answer lost", "request lost", "hangs"])(
    "leaves nothing closed when its signal aborts, whatever has become of it: %s",
    async (fate) => {
      const stop = new AbortController();
      store.next(fate);
      const paused = failureOf(operator.pause("k", { forMs: 3_600_000, reason, signal: stop.signal }));
      await clock.advance(10);
      stop.abort(new Error("stop"));
      expect(await settle(paused)).toMatchObject({ code: "LEASE_ABORTED", cause: { message: "stop" } });
      await nothingHeld();
    },
  );

  it("leaves nothing closed when its client is closed, which waits for that", async () => {
    store.next("answer lost");
    const paused = failureOf(operator.pause("k", { forMs: 3_600_000, reason }));
    await clock.advance(0);
    await settle(client.close());
    expect(await paused).toMatchObject({ code: "LEASE_CLIENT_CLOSED" });
    await nothingHeld();
  });

  it("says that it may be closed where it cannot be taken back", async () => {
    const stop = new AbortController();
    store.weather = "answer lost";
    const paused = failureOf(operator.pause("k", { forMs: 3_600_000, reason, signal: stop.signal }));
    await clock.advance(10);
    stop.abort(new Error("stop"));
    store.weather = "request lost";
    expect(await settle(paused)).toMatchObject({
      code: "LEASE_NO_ANSWER",
      mayHaveLanded: true,
      message: expect.stringContaining("resume it"),
    });
    expect(await client.inspect("k")).toMatchObject({ pause: { by: "alice" } });
  });

  it("never lands late, after it was taken back or after another has held the lock", async () => {
    const stop = new AbortController();
    store.next("request lost");
    const paused = failureOf(operator.pause("k", { forMs: 3_600_000, reason, signal: stop.signal }));
    await clock.advance(10);
    stop.abort(new Error("stop"));
    await settle(paused);
    const [late] = copies();
    expect(landAgain(late)).toBe(false);
    await (await client.acquire("k")).release();
    expect(landAgain(late)).toBe(false);
    await nothingHeld();
  });

  it("never lands late, where another has taken the lock before it", async () => {
    const transact = store.transact.bind(store);
    const holder = new LeaseClient({ store, clock, owner: "b" });
    const early = await holder.acquire("k");
    await early.release();
    await clock.advance(60_000);
    store.transact = async (...call) => {
      store.transact = transact;
      store.next("request lost");
      const failure = await failureOf(transact(...call));
      await holder.acquire("k");
      throw failure;
    };
    const paused = await settle(operator.pause("k", { forMs: 3_600_000, reason }));
    expect(paused).toMatchObject({ outcome: "heldByAnother", holder: { owner: "b" } });
    const [late] = copies();
    await adminOf(holder).forceRelease("k", { token: (await holder.inspect("k"))?.token ?? "" });
    expect(landAgain(late)).toBe(false);
    await nothingHeld();
  });

  it("never lands again after a resume, whatever has happened since", async () => {
    await operator.pause("k", { forMs: 3_600_000, reason });
    const [copy] = copies();
    await clock.advance(1);
    await operator.resume("k");
    expect(landAgain(copy)).toBe(false);
    await (await client.acquire("k")).release();
    await (await new Semaphore(client, "k", { permits: 1 }).acquire()).release();
    expect(landAgain(copy)).toBe(false);
    await nothingHeld();
  });
});

it("a pause of a week stays closed for readers, although a writer that was there renewed for days", async () => {
  const weekMs = 7 * 86_400_000;
  const holder = new LeaseClient({ store, clock, owner: "b", retentionMs: weekMs });
  const permits = new Semaphore(holder, "k", { permits: 2 });
  const lease = await permits.acquire({ leaseDurationMs: 86_400_000 });
  await operator.pause("k", { forMs: 5 * weekMs, reason });
  for (let day = 0; day < 10; day += 1) {
    await clock.advance(86_000_000);
    await lease.renew();
  }
  await lease.release();
  await clock.advance(2 * weekMs);
  store.table.collectGarbage(clock.now());
  expect(await permits.tryAcquire()).toBeUndefined();
});

it("a break whose answer was lost is done on a closed client, too", async () => {
  const other = new LeaseClient({ store, clock, owner: "b" });
  const { token } = (await other.acquire("k")).toJSON();
  await client.close();
  store.next("answer lost");
  expect(await settle(operator.break("k", { token, reason }))).toMatchObject({ outcome: "done" });
  expect(await actions()).toEqual(["break"]);
});

it("an operator whose earlier copy may have landed says so, whatever the last answer is", async () => {
  const { token } = (await client.acquire("k")).toJSON();
  store.next("request lost", "rejected");
  const failure = await failureOf(settle(operator.break("k", { token, reason })));
  expect(failure).toMatchObject({ code: "LEASE_REQUEST_REJECTED", mayHaveLanded: true });
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

it("a description counts the items of other programs, whatever their sort keys are", async () => {
  const kinds = ["constructor", "__proto__", "toString"];
  for (const kind of kinds) for (const n of [1, 2]) put(store.table, "k", `${kind}#${n}`, {});
  const { items } = await operator.describe("k");
  expect(Object.entries(items).sort()).toEqual(kinds.map((kind) => [kind, 2]).sort());
});
