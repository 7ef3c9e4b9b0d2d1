/** What the client's calls take and give beside what every store has to do. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { DynamoDBDocumentClient } from "@aws-sdk/lib-dynamodb";
import { brandClass, CloseIncompleteError, LeaseClient, type LeaseEvent } from "@leasehold/client";
import { acquireAll } from "@leasehold/client/group";
import { coreOf, pauseWhileOpen } from "@leasehold/client/internal";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock, settled } from "@leasehold/client/testing";
import { together } from "@leasehold/client/together";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { ScriptedStore } from "../support/scripted-store.ts";

let clock: ManualClock;
let store: ScriptedStore;
let client: LeaseClient;

beforeEach(() => {
  clock = new ManualClock(Date.UTC(2026, 10, 1));
  clock.freeze(7_000);
  store = new ScriptedStore();
  client = new LeaseClient({ store, clock, owner: "a", leaseDurationMs: 10_000 });
});

describe("withLease", () => {
  it("takes its work second or third, and releases after it", async () => {
    expect(await client.withLease("k", ({ key }) => key)).toBe("k");
    const duration = ({ leaseDurationMs }: { readonly leaseDurationMs: number }): number => leaseDurationMs;
    expect(
      await client.withLease("k", { leaseDurationMs: 77_000 }, (lease) => duration(lease.toJSON())),
    ).toBe(77_000);
    expect(await client.inspect("k")).toBeUndefined();
  });

  it("refuses two functions, and work that is none", async () => {
    const work = (): void => undefined;
    await expect(client.withLease("k", work as never, work)).rejects.toMatchObject({ option: "options" });
    await expect(client.withLease("k", "work" as never)).rejects.toMatchObject({ option: "work" });
    expect(store.calls).toEqual([]);
  });
});

describe("a handle that does not hold", () => {
  it("is told so by complete, also without a slot", async () => {
    const lease = await client.acquire("k");
    await clock.advance(12_000);
    await new LeaseClient({ store, clock, owner: "b" }).acquire("k");
    expect(await lease.complete()).toBe(false);
  });

  it("sends nothing to renew a lease that is known to be lost", async () => {
    const lease = await client.acquire("k");
    await clock.advance(12_000);
    store.calls.length = 0;
    await expect(lease.renew()).rejects.toMatchObject({ code: "LEASE_LOST", reason: "expired" });
    expect(store.calls).toEqual([]);
  });
});

describe("options of calls are named in full where they are refused", () => {
  it("those of adopt and of close", async () => {
    const handle = (await client.acquire("k")).toJSON();
    expect(() => client.adopt(handle, { waitMs: 1 } as never)).toThrow(/options\.waitMs|waitMs/);
    expect(() => client.adopt(handle, "soon" as never)).toThrow(/^options/);
    await expect(client.close("soon" as never)).rejects.toThrow(/^options/);
  });
});

describe("events without a listener", () => {
  it("go to those who subscribe to their channel", async () => {
    const heard: LeaseEvent[] = [];
    const listen = (event: unknown): void => void heard.push(event as LeaseEvent);
    subscribe("leasehold:acquired", listen);
    onTestFinished(() => void unsubscribe("leasehold:acquired", listen));
    const lease = await client.acquire("k");
    await lease.release();
    expect(heard).toMatchObject([{ type: "acquired", key: "k", owner: "a" }]);
  });
});

describe("a mistake in a program that a heartbeat meets", () => {
  it("is told with its lease's key and owner, once", async () => {
    const told: LeaseEvent[] = [];
    const onEvent = (event: LeaseEvent): void => void (event.type === "error" && told.push(event));
    const lease = await new LeaseClient({ store, clock, owner: "a", onEvent }).acquire("k", {
      heartbeat: 1_000,
    });
    const mistake = new TypeError("a mistake");
    store.update = () => Promise.reject(mistake);
    await clock.advance(5_000);
    expect(lease.held).toBe(false);
    expect(told).toEqual([
      { type: "error", operation: "renew", key: "k", sortKey: "lease", owner: "a", error: mistake },
    ]);
  });
});

describe("a mistake that comes after the release", () => {
  it("is not told of a lease that nobody holds any more", async () => {
    const told: LeaseEvent[] = [];
    const onEvent = (event: LeaseEvent): void => void (event.type === "error" && told.push(event));
    const lease = await new LeaseClient({ store, clock, owner: "a", onEvent }).acquire("k", {
      heartbeat: 1_000,
    });
    const update = store.update.bind(store);
    let isRenewal = true;
    store.update = (request, call) => {
      if (!isRenewal) return update(request, call);
      isRenewal = false;
      return new Promise((_, reject) => clock.schedule(() => reject(new TypeError("a mistake")), 500));
    };
    await clock.advance(1_000);
    const releasing = lease.release();
    await clock.advance(5_000);
    expect(await releasing).toBe(true);
    expect(told).toEqual([]);
  });
});

describe("a handle for another process", () => {
  const away = (time?: () => { readonly earliest: number; readonly latest: number }): ScriptedStore => {
    const far = new ScriptedStore(store.table);
    far.isLocal = false;
    far.time = time;
    return far;
  };

  it("promises no more than its holder believes, by the earliest time that the service may have", async () => {
    const time = () => ({ earliest: clock.now() - 700, latest: clock.now() + 300 });
    const lease = await new LeaseClient({ store: away(time), clock, leaseDurationMs: 10_000 }).acquire("k");
    await lease.renew();
    const { expiresAt } = lease.toJSON();
    expect(expiresAt).toBeLessThan(lease.expiresAt);
    expect(expiresAt).toBeGreaterThan(clock.now());
  });

  it("whose expiry is of its holder's own clock keeps that mark in the first renewal elsewhere", async () => {
    const holder = new LeaseClient({ store: away(), clock, leaseDurationMs: 10_000 });
    const lease = await holder.acquire("k");
    await lease.renew();
    const handle = lease.toJSON();
    expect(handle.ownClock).toBe(true);
    const far = away();
    const adopted = new LeaseClient({ store: far, clock }).adopt(handle);
    await adopted.renew();
    const [first] = far.calls.flatMap(({ requests }) => requests);
    expect(first?.update).toContain("#ownClock = :");
  });
});

describe("a permit from another process", () => {
  it("is renewed beside the leases of a client that renews together", async () => {
    const semaphore = new Semaphore(client, "s", { permits: 2 });
    const permit = await semaphore.acquire();
    const elsewhere = new LeaseClient({
      store,
      clock,
      owner: "b",
      leaseDurationMs: 10_000,
      renewals: together(),
    });
    const own = await elsewhere.acquire("own", { heartbeat: 3_000 });
    const adopted = new Semaphore(elsewhere, "s", { permits: 2 }).adopt(permit.toJSON(), {
      heartbeat: 3_000,
    });
    await clock.advance(60_000);
    expect([own.held, adopted.held]).toEqual([true, true]);
  });
});

describe("a pause of a caller whose signal has aborted", () => {
  it("is over at once", async () => {
    await pauseWhileOpen(coreOf(client), 60_000, AbortSignal.abort());
    expect(clock.monotonic()).toBe(7_000);
  });
});

describe("a client that is none", () => {
  class Foreign {}
  brandClass(Foreign, "LeaseClient");

  it.each([undefined, null, 1, "client", {}])("%s is refused by name", (given) => {
    expect(() => new Semaphore(given as never, "k", { permits: 1 })).toThrow(
      /^client is .*; allowed: a LeaseClient/,
    );
  });

  it("that cannot be looked at is refused by name, too", () => {
    const hidden = new Proxy(
      {},
      {
        getPrototypeOf() {
          throw new Error("hidden");
        },
      },
    );
    expect(() => new Semaphore(hidden as never, "k", { permits: 1 })).toThrow(/^client/);
  });

  it("of another copy of the package is told what to install", () => {
    expect(() => new Semaphore(new Foreign() as never, "k", { permits: 1 })).toThrow(
      /client is a LeaseClient of another copy of @leasehold\/client.*npm ls/,
    );
  });
});

describe("fences of a client with a document client", () => {
  it("have plain values, and those of a bare client have typed ones", async () => {
    const handle = (await client.acquire("k")).toJSON();
    const bare = new DynamoDBClient({ region: "eu-central-1" });
    const native = new LeaseClient({
      tableName: store.tableName,
      dynamodb: DynamoDBDocumentClient.from(bare),
      clock,
    });
    const typed = new LeaseClient({ tableName: store.tableName, dynamodb: bare, clock });
    expect(native.adopt(handle).fence().attributes).toEqual({ fence: handle.fencingToken });
    expect(typed.adopt(handle).fence().attributes).toEqual({ fence: { N: String(handle.fencingToken) } });
  });
});

describe("an incomplete close", () => {
  const closed = async (): Promise<CloseIncompleteError> => {
    const closing = client.close({ timeoutMs: 1_000 }).catch((error: unknown) => error);
    await clock.advance(1_000);
    return (await closing) as CloseIncompleteError;
  };

  it("names five keys at most, with their ends, and has all of them", async () => {
    for (let index = 1; index <= 7; index += 1) await client.acquire(`k${index}`);
    store.weather = "throttled";
    const error = await closed();
    expect(error).toBeInstanceOf(CloseIncompleteError);
    expect(error.left).toHaveLength(7);
    expect(error.message).toMatch(
      /7 keys may stay held \("k1" until \S+, "k2" until .*, "k5" until [^,]*\), 0 calls/,
    );
    expect(error.cause).toMatchObject({ code: "LEASE_THROTTLED" });
  });

  it("has the first error there is as its cause, beside requests without an answer", async () => {
    await client.acquire("k1");
    await client.acquire("k2");
    store.next("hangs", "throttled");
    const error = await closed();
    expect(error.left.map(({ error }) => error === undefined).toSorted()).toEqual([false, true]);
    for (const left of [error.left, error.left.toReversed()])
      expect(new CloseIncompleteError(left, 0).cause).toMatchObject({ code: "LEASE_THROTTLED" });
  });

  it("tells of an acquisition that may have to be taken back, and until when it may stand", async () => {
    store.weather = "request lost";
    const controller = new AbortController();
    const call = client.acquire("k", { signal: controller.signal }).catch((error: unknown) => error);
    controller.abort();
    await call;
    const { left } = await closed();
    expect(left).toMatchObject([{ key: "k", sortKey: "lease", error: { code: "LEASE_NO_ANSWER" } }]);
    expect(Math.abs((left[0]?.expiresAt ?? 0) - clock.now() - 10_000)).toBeLessThan(3_000);
  });

  it("without a timeout gives up after ten seconds in which nothing is confirmed", async () => {
    await client.acquire("k1");
    await client.acquire("k2");
    const update = store.update.bind(store);
    let count = 0;
    store.update = (request, call) => {
      count += 1;
      // One is confirmed after eight seconds, the other never.
      if (count > 1) return new Promise(() => undefined);
      return new Promise((resolve) => clock.schedule(() => resolve(update(request, call)), 8_000));
    };
    let outcome: unknown;
    void client.close().catch((error: unknown) => {
      outcome = error;
    });
    await clock.advance(19_000);
    expect(outcome).toBeUndefined();
    await clock.advance(2_000);
    expect(outcome).toMatchObject({ code: "LEASE_CLOSE_INCOMPLETE" });
  });

  it("is no error of `await using`, and a mistake in the program is", async () => {
    await client.acquire("k");
    store.weather = "throttled";
    await client[Symbol.asyncDispose]();
    const broken = new LeaseClient({ store: new ScriptedStore(), clock });
    broken.close = () => Promise.reject(new TypeError("a mistake"));
    await expect(broken[Symbol.asyncDispose]()).rejects.toThrow("a mistake");
  });
});

describe("a reentrant owner", () => {
  const reentrant = { owner: "a", reentrant: true } as const;

  it("whose second call fails leaves the slot open for the first one's release", async () => {
    const first = await client.acquire("k", { ...reentrant, slot: "2026-11-01" });
    store.next("throttled");
    const second = client.acquire("k", { ...reentrant, slot: "2026-11-01", leaseDurationMs: 60_000 });
    await expect(second).rejects.toMatchObject({ code: "LEASE_THROTTLED" });
    expect(await first.release()).toBe(true);
    expect(await client.doneSlot("k")).toBeUndefined();
  });

  it("whose group call fails leaves the slot open, too", async () => {
    const first = await client.acquire("k", { ...reentrant, slot: "2026-11-01" });
    await new LeaseClient({ store, clock, owner: "b" }).acquire("other");
    await expect(acquireAll(client, ["k", "other"], reentrant)).rejects.toMatchObject({
      code: "LEASE_UNAVAILABLE",
    });
    expect(first.held).toBe(true);
    expect(await first.release()).toBe(true);
    expect(await client.doneSlot("k")).toBeUndefined();
  });

  it("gets no cooldown that nobody has asked for", async () => {
    await client.acquire("k", reentrant);
    const second = await client.acquire("k", reentrant);
    expect(second.toJSON()).not.toHaveProperty("cooldownUntil");
  });

  it("waits for its own earlier call as long as a request may take, and no longer", async () => {
    const update = store.update.bind(store);
    let answer: () => void = () => undefined;
    store.update = (request, call) =>
      new Promise((resolve) => {
        answer = () => resolve(update(request, call));
      });
    void client.acquire("k", reentrant).catch(() => undefined);
    let outcome: unknown;
    void client.acquire("k", reentrant).catch((error: unknown) => {
      outcome = error;
    });
    await clock.advance(9_000);
    expect(outcome).toBeUndefined();
    await clock.advance(2_000);
    expect(outcome).toMatchObject({ code: "LEASE_UNAVAILABLE" });
    answer();
    await settled();
  });
});

describe("a refusal", () => {
  it("advises the owner that holds the lock to share it, unless that is in a cooldown or was asked for", async () => {
    await client.acquire("k", { owner: "me" });
    const own = client.acquire("k", { owner: "me" });
    await expect(own).rejects.toThrow(/reentrant/);
    await expect(client.acquire("k", { owner: "you" })).rejects.not.toThrow(/reentrant/);
    const closing = await client.acquire("c", { owner: "me", lockAtLeastForMs: 5_000 });
    await closing.release();
    await expect(client.acquire("c", { owner: "me" })).rejects.not.toThrow(/reentrant/);
  });
});
