import {
  type Item,
  LeaseClient,
  LeaseError,
  type LeaseEvent,
  LeaseItemError,
  type LeaseRecord,
} from "@leasehold/client";
import { FairLock, fair } from "@leasehold/client/fair";
import { acquireAll } from "@leasehold/client/group";
import { coreOf } from "@leasehold/client/internal";
import { Leader } from "@leasehold/client/leader";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { readRecord } from "@leasehold/client/record";
import { attributeNames } from "@leasehold/client/schema";
import { Semaphore } from "@leasehold/client/semaphore";
import { TableCache } from "@leasehold/client/single-flight";
import { ManualClock } from "@leasehold/client/testing";
import { FinalFailureError, JobRuns, type TaskRecord, TaskSet } from "@leasehold/jobs";
import fc from "fast-check";
import { beforeEach, describe, expect, it } from "vitest";
import { lastDoneSlot } from "../../packages/client/src/base/record.ts";
import { isOlder } from "../../packages/client/src/primitives/fair/queue.ts";
import {
  holdNoteIn,
  queueAttributeNames,
  ticketsIn,
} from "../../packages/client/src/primitives/fair/queue-ticket.ts";
import { readRun } from "../../packages/jobs/src/runs/run.ts";
import { runAttributeNames } from "../../packages/jobs/src/runs/schema.ts";
import { readTask } from "../../packages/jobs/src/tasks/record.ts";
import { endedTaskKey, openTaskKey, taskAttributeNames } from "../../packages/jobs/src/tasks/schema.ts";
import { adminOf } from "../support/admin.ts";
import { failureOf } from "../support/failure-of.ts";
import { anyItem, heldLease, neither, put } from "../support/foreign-items.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

let store: ScriptedStore;
let clock: ManualClock;
let events: LeaseEvent[];
let client: LeaseClient;

beforeEach(() => {
  store = new ScriptedStore();
  clock = new ManualClock();
  events = [];
  client = new LeaseClient({
    store,
    clock,
    leaseDurationMs: 10_000,
    clockSkewMs: 1_000,
    onEvent: (event) => events.push(event),
  });
});

const without = (attribute: string): Item => {
  const { [attribute]: _, ...rest } = heldLease;
  return rest;
};

async function collected(walk: AsyncIterable<LeaseRecord>): Promise<LeaseRecord[]> {
  const records: LeaseRecord[] = [];
  for await (const record of walk) records.push(record);
  return records;
}

const spoilt: [string, string, Item, RegExp][] = [
  ["token", "a number", { ...heldLease, token: 7 }, /token is a number; allowed: a string \(S\)/],
  ["token", "of another type", { ...heldLease, token: neither }, /token is neither a string nor a number/],
  ["version", "a text", { ...heldLease, version: "one" }, /version is "one"; allowed: a whole number \(N\)/],
  ["version", "missing", without("version"), /version is missing/],
  [
    "fence",
    "out of range",
    { ...heldLease, fence: 1e21 },
    /fence is 1e\+21; allowed: .* to 9007199254740991/,
  ],
  ["owner", "missing", without("owner"), /owner is missing; allowed: a string \(S\)/],
  ["acquiredAt", "negative", { ...heldLease, acquiredAt: -1 }, /acquiredAt is -1/],
  ["expiresAt", "no time", { ...heldLease, expiresAt: 9e15 }, /expiresAt is 9000000000000000; allowed/],
  ["expiresAt", "a fraction", { ...heldLease, expiresAt: 0.5 }, /expiresAt is 0.5/],
  [
    "leaseDurationMs",
    "of another type",
    { ...heldLease, leaseDurationMs: neither },
    /leaseDurationMs is neither/,
  ],
];

describe("an item under a lock's key that this package has not written", () => {
  it.each(spoilt)("whose %s is %s is named by acquire and inspect", async (attribute, _, item, message) => {
    put(store.table, "orders/7", "lease", item);
    for (const call of [
      client.acquire("orders/7"),
      client.tryAcquire("orders/7"),
      client.inspect("orders/7"),
    ]) {
      const error = await failureOf(call);
      expect(error).toBeInstanceOf(LeaseItemError);
      expect(error).toMatchObject({
        code: "LEASE_ITEM_UNREADABLE",
        key: "orders/7",
        sortKey: "lease",
        attribute,
      });
      const { message: text } = error as LeaseItemError;
      expect(text).toMatch(message);
      expect(text).toContain('the key "orders/7" and the sort key "lease"');
    }
  });

  it("does not stop a walk of all leases, which tells of it", async () => {
    const lease = await client.acquire("a");
    put(store.table, "b", "lease", { ...heldLease, version: "x" });
    put(store.table, "b", "semaphore", { permits: 7 });
    const kept = await client.acquire("c");
    events.length = 0;
    const found = await collected(adminOf(client).list({ all: true }));
    expect(found.map(({ token }) => token)).toEqual([lease.token, kept.token]);
    expect(events).toEqual([
      {
        type: "unreadable",
        key: "b",
        sortKey: "lease",
        attribute: "version",
        message: expect.stringContaining('"x"'),
      },
      {
        type: "unreadable",
        key: "b",
        sortKey: "semaphore",
        attribute: "permits",
        message: expect.stringContaining("differs from what the seats take"),
      },
    ]);
  });

  it("does not stop a walk of a job's runs, which tells of it", async () => {
    const runs = new JobRuns(client, "job");
    const slots = ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:01.000Z"];
    for (const slot of slots) await runs.run(slot, () => 1);
    put(store.table, "job", "run#2026-01-01T00:00:00.500Z", { attempt: "first", state: "failed" });
    events.length = 0;
    const found: string[] = [];
    for await (const { slot } of runs.runs()) found.push(slot);
    expect(found).toEqual(slots);
    expect(events).toMatchObject([{ type: "unreadable", key: "job", attribute: "attempt" }]);
  });

  it("keeps no worker from the other tasks of its set, nor people from seeing and requeueing them", async () => {
    const set = new TaskSet(client, "set", { backoff: { delayMs: 0 } });
    await set.add([{ id: "good" }, { id: "broken" }, { id: "claimed" }]);
    const task = store.table.peek(openTaskKey("set", "broken")) ?? {};
    put(store.table, "set", openTaskKey("set", "broken").sk, { ...task, payload: "{" });
    put(store.table, "set", openTaskKey("set", "claimed").sk, { ...task, ...heldLease, expiresAt: "soon" });
    events.length = 0;

    const done: string[] = [];
    const summary = await set.process(
      async ({ id }) => {
        done.push(id);
        throw new FinalFailureError("not today");
      },
      { until: "drained" },
    );
    expect(done).toEqual(["good"]);
    expect(summary).toMatchObject({ parked: 1 });
    expect(events).toContainEqual(
      expect.objectContaining({ type: "unreadable", key: "set", attribute: "payload" }),
    );
    expect(events).toContainEqual(
      expect.objectContaining({ type: "unreadable", key: "set", attribute: "expiresAt" }),
    );

    put(store.table, "set", endedTaskKey("set", "also-broken").sk, { state: "failed" });
    const listed: TaskRecord[] = [];
    for await (const task of set.list()) listed.push(task);
    expect(listed).toMatchObject([{ id: "good", state: "parked" }]);
    expect(await set.requeueAll()).toBe(1);
    expect(await set.counts()).toMatchObject({ waiting: 1, parked: 0 });
  });

  it("keeps no reader of a read-write lock from counting it: a writer is not let in past what it cannot judge", async () => {
    put(store.table, "k", "read-write", { readers: 1, "s:t": "0000000001 soon", "f:t": 1 });
    expect(await failureOf(new ReadWriteLock(client, "k").tryWrite())).toMatchObject({
      code: "LEASE_ITEM_UNREADABLE",
      attribute: "s:…",
    });
    await clock.advance(0);
    expect(store.table.peek({ pk: "k", sk: "read-write" })?.writers).toBeUndefined();
  });

  it("is no lock that stays held when its fencing token cannot be counted up any more", async () => {
    put(store.table, "k", "lease", { [attributeNames.fence]: 1e21 });
    expect(await failureOf(client.acquire("k"))).toMatchObject({
      code: "LEASE_ITEM_UNREADABLE",
      attribute: "fence",
    });
    await clock.advance(0);
    expect(store.table.peek({ pk: "k", sk: "lease" })?.token).toBeUndefined();
  });
});

describe("a lease whose payload is no JSON", () => {
  it("nested deeper than a stack is, is read and taken over too", async () => {
    put(store.table, "k", "lease", { ...heldLease, data: "[".repeat(100_000) + "]".repeat(100_000) });
    expect(await client.inspect("k")).toMatchObject({ owner: "another" });
    await clock.advance(11_001);
    expect((await client.acquire("k")).held).toBe(true);
  });
});

const others = [
  ...Object.values(runAttributeNames),
  ...Object.values(taskAttributeNames),
  ...Object.values(queueAttributeNames),
  "q:1",
  "w:1",
];

describe("whatever an item has in its attributes,", () => {
  it("a reader gives what it reads, or a LeaseItemError that names the item", () => {
    const reading = { detector: coreOf(client).detector, maxAttempts: 3 };
    const readers: ((item: Item) => unknown)[] = [
      readRecord,
      lastDoneSlot,
      (item) => readRun(item, reading),
      readTask,
      ticketsIn,
      holdNoteIn,
      (item) => isOlder(item, item),
    ];
    fc.assert(
      fc.property(anyItem(others), fc.constantFrom(...readers), (attributes, read) => {
        try {
          read({ ...attributes, pk: "k", sk: "task#00000000#1" });
        } catch (error) {
          expect(error).toBeInstanceOf(LeaseItemError);
          expect(error).toMatchObject({ key: "k", sortKey: "task#00000000#1" });
        }
      }),
      { numRuns: 3_000 },
    );
  });

  const slot = "2026-01-01T00:00:00.000Z";
  const calls: Record<string, { sortKey: string; call: (with_: LeaseClient) => Promise<unknown> }> = {
    acquire: { sortKey: "lease", call: (with_) => with_.acquire("k", { slot: "1" }) },
    inspect: { sortKey: "lease", call: (with_) => with_.inspect("k") },
    forceRelease: {
      sortKey: "lease",
      call: (with_) => adminOf(with_).forceRelease("k", { token: "t", onRefused: () => undefined }),
    },
    "a fair acquire": { sortKey: "lease", call: (with_) => with_.acquire("k", { order: fair() }) },
    "FairLock.inspect": { sortKey: "lease", call: (with_) => new FairLock(with_, "k").inspect() },
    "FairLock.checkIn": {
      sortKey: "lease",
      call: (with_) => new FairLock(with_, "k").checkIn({ owner: "me" }),
    },
    acquireAll: { sortKey: "lease", call: (with_) => acquireAll(with_, ["k", "l"]) },
    "Leader.current": { sortKey: "lease", call: (with_) => new Leader(with_, "k").current() },
    "a permit": {
      sortKey: "semaphore",
      call: (with_) => new Semaphore(with_, "k", { permits: 1 }).acquire(),
    },
    "Semaphore.inspect": {
      sortKey: "semaphore",
      call: (with_) => new Semaphore(with_, "k", { permits: 1 }).inspect(),
    },
    "a fair permit": {
      sortKey: "semaphore",
      call: (with_) => new Semaphore(with_, "k", { permits: 1, order: fair() }).acquire(),
    },
    read: { sortKey: "read-write", call: (with_) => new ReadWriteLock(with_, "k").read() },
    write: { sortKey: "read-write", call: (with_) => new ReadWriteLock(with_, "k").write() },
    "JobRuns.get": { sortKey: `run#${slot}`, call: (with_) => new JobRuns(with_, "k").get(slot) },
    "JobRuns.run": { sortKey: `run#${slot}`, call: (with_) => new JobRuns(with_, "k").run(slot, () => 1) },
    "JobRuns.skip": { sortKey: `run#${slot}`, call: (with_) => new JobRuns(with_, "k").skip(slot) },
    "TableCache.get": { sortKey: "cache", call: (with_) => new TableCache(with_).get("k") },
    "TaskSet.claim": { sortKey: openTaskKey("k", "1").sk, call: (with_) => new TaskSet(with_, "k").claim() },
  };

  it.each(Object.entries(calls))("%s works or rejects with a LeaseError", async (_, { sortKey, call }) => {
    await fc.assert(
      fc.asyncProperty(anyItem(others), async (attributes) => {
        const table = new ScriptedStore();
        put(table.table, "k", sortKey, attributes);
        const near = new LeaseClient({ store: table, clock: new ManualClock(), leaseDurationMs: 10_000 });
        const error = await failureOf(call(near));
        if (error !== undefined) expect(error).toBeInstanceOf(LeaseError);
      }),
    );
  });
});
