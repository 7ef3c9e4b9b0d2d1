import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { type AcquireTrace, type Lease, LeaseClient, type LeaseEvent } from "@leasehold/client";
import { acquireAll } from "@leasehold/client/group";
import { leaseEventTypes } from "@leasehold/client/internal";
import { logLevels } from "@leasehold/client/log";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { Semaphore } from "@leasehold/client/semaphore";
import { SingleFlight } from "@leasehold/client/single-flight";
import { ManualClock, MemoryLeaseStore, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { ScriptedStore } from "../support/scripted-store.ts";
import { collectUncaught } from "../support/uncaught.ts";

let clock: ManualClock;
let store: ScriptedStore;

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
});

it("every event is published on its own diagnostics channel too", async () => {
  const types = ["acquired", "contended", "renewed", "lost", "released", "takeover", "skew"] as const;
  const heard: LeaseEvent[] = [];
  const listener = (event: unknown): void => void heard.push(event as LeaseEvent);
  for (const type of types) subscribe(`leasehold:${type}`, listener);
  onTestFinished(() => {
    for (const type of types) unsubscribe(`leasehold:${type}`, listener);
  });
  const told: LeaseEvent[] = [];
  const onEvent = (event: LeaseEvent): void => void told.push(event);
  // The service's clock is 9 to 10 s ahead of ours.
  store.isLocal = false;
  store.time = () => ({ earliest: clock.now() + 9_000, latest: clock.now() + 10_000 });
  const [a, b] = ["a", "b"].map(
    (owner) => new LeaseClient({ store, clock, owner, leaseDurationMs: 5_000, onEvent }),
  );

  const lease = await a?.acquire("k");
  await b?.tryAcquire("k");
  await lease?.renew();
  await clock.advance(8_000);
  await (await b?.acquire("k"))?.release();

  expect(heard).toEqual(told);
  expect(new Set(heard.map((event) => event.type))).toEqual(new Set(types));
});

it("an event that nobody listens to is published on its channel", async () => {
  const heard: unknown[] = [];
  const listener = (event: unknown): void => void heard.push(event);
  subscribe("leasehold:acquired", listener);
  onTestFinished(() => void unsubscribe("leasehold:acquired", listener));
  await new LeaseClient({ store, clock, owner: "a" }).acquire("k");
  expect(heard).toMatchObject([{ type: "acquired", key: "k", owner: "a" }]);
});

it("contended is told once for each lock that keeps a call out, also when its holder changes", async () => {
  const told: LeaseEvent[] = [];
  const [first, next] = ["first", "next"].map((owner) => new LeaseClient({ store, clock, owner }));
  const held = [await first?.acquire("k"), await first?.acquire("l")];
  const { expiresAt } = held[0] as Lease;
  const caller = new LeaseClient({ store, clock, owner: "me", onEvent: (event) => told.push(event) });
  const patience = { waitMs: 5_000, retry: { strategy: "fixed", delayMs: 1_000 } } as const;
  const waits = [caller.acquire("k", patience), acquireAll(caller, ["k", "l"], patience)];
  const outcomes = Promise.allSettled(waits);
  await clock.advance(1_500);
  for (const lease of held) await lease?.release();
  for (const key of ["k", "l"]) await next?.acquire(key);
  // Looks that lag show no holder: the tries after them are refused once more.
  const read = store.get.bind(store);
  let lagging = 3;
  store.get = async (...asked) => (lagging-- > 0 ? undefined : await read(...asked));
  await clock.advance(4_000);
  expect((await outcomes).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  const of = (key: string) => ({
    ...{ type: "contended", key, sortKey: "lease", owner: "me", holder: "first", expiresAt },
    ...{ inCooldown: false },
  });
  // One for the call that waits for the lock, and one for each lock of the group.
  expect(told.toSorted((one, other) => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1))).toEqual([
    of("k"),
    of("k"),
    of("l"),
  ]);
});

it("contended is not told of a refusal that shows nobody", async () => {
  const told: LeaseEvent[] = [];
  const caller = new LeaseClient({ store, clock, owner: "me", onEvent: (event) => told.push(event) });
  const update = store.update.bind(store);
  store.update = async () => {
    store.update = update;
    return { applied: false, item: undefined, retried: false };
  };
  const acquired = caller.acquire("k", { waitMs: 5_000 });
  await clock.advance(5_000);
  expect((await acquired).held).toBe(true);
  expect(told.map(({ type }) => type)).toEqual(["acquired"]);
});

it("takeover tells from whom, before acquired tells that the lock is held", async () => {
  const told: LeaseEvent[] = [];
  const dead = await new LeaseClient({ store, clock, owner: "dead", leaseDurationMs: 1_000 }).acquire("k");
  await clock.advance(10_000);
  const update = store.update.bind(store);
  store.update = (request, call) => {
    clock.freeze(0.8);
    return update(request, call);
  };
  const client = new LeaseClient({ store, clock, owner: "me", onEvent: (event) => told.push(event) });
  const { fencingToken, expiresAt } = await client.acquire("k");
  const subject = { key: "k", sortKey: "lease", owner: "me", fencingToken };
  const from = { owner: "dead", fencingToken: dead.fencingToken, expiresAt: dead.expiresAt };
  expect(told).toEqual([
    { type: "takeover", ...subject, reason: "serviceClock", from },
    // Two requests of 0.8 ms.
    { type: "acquired", ...subject, waitedMs: 2, expiresAt },
  ]);
});

it("a slot that could not be recorded is told with its lease and the reason", async () => {
  const told: LeaseEvent[] = [];
  const onEvent = (event: LeaseEvent): void => void told.push(event);
  const lease = await new LeaseClient({ store, clock, owner: "me", onEvent }).acquire("k", { slot: "7" });
  lease.tellCompletionFailed("7", "LEASE_THROTTLED");
  const { fencingToken } = lease;
  const said = { key: "k", sortKey: "lease", owner: "me", fencingToken, slot: "7", code: "LEASE_THROTTLED" };
  expect(told.slice(1)).toEqual([{ type: "completionFailed", ...said }]);
});

describe("several listeners", () => {
  it("get every event side by side, and an error of one keeps none from the others", async () => {
    const uncaught = collectUncaught();
    const failing = new Error("the listener failed");
    const heard: string[][] = [[], []];
    const onEvent = [
      (event: LeaseEvent): void => void heard[0]?.push(event.type),
      (): void => {
        throw failing;
      },
      (event: LeaseEvent): void => void heard[1]?.push(event.type),
    ];
    const lease = await new LeaseClient({ store, clock, onEvent }).acquire("k");
    // What was given is what is called.
    onEvent.length = 0;
    await lease.release();
    expect(heard).toEqual([
      ["acquired", "released"],
      ["acquired", "released"],
    ]);
    await settled();
    expect(uncaught).toEqual([failing, failing]);
  });

  it("of a SingleFlight get its events, too", async () => {
    const heard: string[] = [];
    const flights = new SingleFlight(new LeaseClient({ store, clock }), {
      freshForMs: 1_000,
      onEvent: [({ type }) => void heard.push(`1 ${type}`), ({ type }) => void heard.push(`2 ${type}`)],
    });
    await flights.getOrCompute("k", { compute: () => 1 });
    expect(heard).toEqual(["1 computed", "2 computed", "1 served", "2 served"]);
  });

  it.each([
    ["log", 'onEvent is "log"; allowed: a function, or an array of functions'],
    [[() => undefined, undefined], "onEvent is undefined; allowed: a function, or an array of functions"],
  ])("are refused where one is none: %j", (onEvent, message) => {
    expect(() => new LeaseClient({ store, onEvent } as never)).toThrow(message);
  });
});

describe("a call to acquire can be traced", () => {
  const follow = (): [string, AcquireTrace][] => {
    const seen: [string, AcquireTrace][] = [];
    for (const step of ["start", "asyncEnd", "error"]) {
      const name = `tracing:leasehold:acquire:${step}`;
      const listener = (trace: unknown): void => void seen.push([step, trace as AcquireTrace]);
      subscribe(name, listener);
      onTestFinished(() => void unsubscribe(name, listener));
    }
    return seen;
  };

  it("from its beginning to its end, and no trace has a token or a payload", async () => {
    const seen = follow();
    const client = new LeaseClient({ store, clock, owner: "me" });
    const lease = await client.acquire("k", { waitMs: 5, data: "hunter2" });
    const trace = { tableName: store.tableName, keys: ["k"], sortKey: "lease", owner: "me", waitMs: 5 };
    expect(seen).toMatchObject([
      ["start", trace],
      ["asyncEnd", trace],
    ]);
    const text = JSON.stringify(seen);
    for (const secret of [lease.token, "hunter2"]) expect(text).not.toContain(secret);
  });

  it("of several locks as one call, which names them all", async () => {
    const seen = follow();
    const { signal } = new AbortController();
    await acquireAll(new LeaseClient({ store, clock, owner: "me" }), ["k", "l"], { waitMs: 5, signal });
    const { tableName } = store;
    const trace = { tableName, keys: ["k", "l"], sortKey: "lease", owner: "me", waitMs: 5, signal };
    expect(seen).toEqual([
      ["start", expect.objectContaining(trace)],
      ["asyncEnd", expect.objectContaining(trace)],
    ]);
  });

  it("and the intent by which a waiting writer keeps new readers out is none", async () => {
    const lockOf = (owner: string) => new ReadWriteLock(new LeaseClient({ store, clock, owner }), "book");
    await lockOf("reader").read();
    const seen = follow();
    const writing = lockOf("me").write({ waitMs: 10 });
    const refusal = expect(writing).rejects.toMatchObject({ holder: "reader" });
    await clock.advance(10);
    await refusal;
    expect(seen.map(([step, { owner, waitMs }]) => [step, owner, waitMs])).toEqual([
      ["start", "me", 10],
      ["error", "me", 10],
      ["asyncEnd", "me", 10],
    ]);
  });
});

it("the list of the types of events is complete", () => {
  // The compiler keeps the table of levels complete.
  const { served, computed, cacheFailed, refreshFailed, ...levels } = logLevels;
  expect([...leaseEventTypes].sort()).toEqual(Object.keys(levels).sort());
});

describe("a lease of less than a second over a network", () => {
  const refuse = (): Promise<never> =>
    Promise.reject(
      Object.assign(new Error("no"), { name: "AccessDeniedException", $metadata: { httpStatusCode: 400 } }),
    );
  const far = (told: LeaseEvent[], others: object = {}): LeaseClient =>
    new LeaseClient({
      tableName: "leases",
      dynamodb: { send: refuse } as unknown as DynamoDBClient,
      clock,
      owner: "me",
      onEvent: (event) => told.push(event),
      ...others,
    });

  it("is told once for each client, in one event and on its channel", async () => {
    const told: LeaseEvent[] = [];
    const heard: unknown[] = [];
    const listener = (event: unknown): void => void heard.push(event);
    subscribe("leasehold:shortLease", listener);
    onTestFinished(() => void unsubscribe("leasehold:shortLease", listener));
    const client = far(told);
    await client.acquire("k", { leaseDurationMs: 30 }).catch(() => undefined);
    await client.acquire("l", { leaseDurationMs: 999 }).catch(() => undefined);
    expect(told).toEqual([
      { type: "shortLease", key: "k", sortKey: "lease", owner: "me", leaseDurationMs: 30 },
    ]);
    expect(heard).toEqual(told);
  });

  it("is told of the client's own duration, of a permit and of several locks", async () => {
    const calls: ((client: LeaseClient) => Promise<unknown>)[] = [
      (client) => client.acquire("k"),
      (client) => new Semaphore(client, "k", { permits: 1 }).acquire(),
      (client) => acquireAll(client, ["k"]),
    ];
    for (const call of calls) {
      const told: LeaseEvent[] = [];
      await call(far(told, { leaseDurationMs: 500 })).catch(() => undefined);
      expect(told).toMatchObject([{ type: "shortLease", key: "k", leaseDurationMs: 500 }]);
    }
  });

  it("is not told of a second, nor where no network lies between", async () => {
    const told: LeaseEvent[] = [];
    await far(told)
      .acquire("k", { leaseDurationMs: 1_000 })
      .catch(() => undefined);
    const near = new LeaseClient({
      store: new MemoryLeaseStore(),
      clock,
      onEvent: (event) => told.push(event),
    });
    await (await near.acquire("k", { leaseDurationMs: 30 })).release();
    expect(told.map((event) => event.type)).toEqual(["acquired", "released"]);
  });
});

describe("skew", () => {
  it("is reported once a minute while it lasts, and not below the allowance", async () => {
    const told: LeaseEvent[] = [];
    store.isLocal = false;
    let aheadMs = 500;
    store.time = () => ({ earliest: clock.now() + aheadMs, latest: clock.now() + aheadMs + 1_000 });
    const client = new LeaseClient({ store, clock, clockSkewMs: 500, onEvent: (event) => told.push(event) });
    const skews = (): number => told.filter((event) => event.type === "skew").length;
    await client.tryAcquire("k1");
    expect(skews()).toBe(0);
    aheadMs = 501;
    await client.tryAcquire("k2");
    await client.tryAcquire("k3");
    expect(skews()).toBe(1);
    expect(told.find((event) => event.type === "skew")).toEqual({
      type: "skew",
      offsetMinMs: 501,
      offsetMaxMs: 1_500,
      clockSkewMs: 500,
    });
    await clock.advance(59_999);
    await client.tryAcquire("k4");
    expect(skews()).toBe(1);
    await clock.advance(1);
    await client.tryAcquire("k5");
    expect(skews()).toBe(2);
  });

  it.each([
    ["is told", "ahead by more than the allowance at least", 1_001, 2_000],
    ["is not told", "ahead by the allowance at least", 1_000, 2_000],
    ["is told", "behind by more than the allowance at least", -2_000, -1_001],
    ["is not told", "behind by the allowance at least", -2_000, -1_000],
    ["is not told", "known too roughly", -5_000, 5_000],
  ])("%s where the service is %s", async (how, _, minMs, maxMs) => {
    const told: LeaseEvent[] = [];
    store.isLocal = false;
    store.time = () => ({ earliest: clock.now() + minMs, latest: clock.now() + maxMs });
    const client = new LeaseClient({
      store,
      clock,
      clockSkewMs: 1_000,
      onEvent: (event) => told.push(event),
    });
    await client.inspect("k");
    const skew = { type: "skew", offsetMinMs: minMs, offsetMaxMs: maxMs, clockSkewMs: 1_000 };
    expect(told).toEqual(how === "is told" ? [skew] : []);
  });
});
