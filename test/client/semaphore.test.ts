import {
  type Lease,
  LeaseClient,
  type LeaseClientOptions,
  type LeaseEvent,
  LeaseServiceError,
  LeaseUnavailableError,
} from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { together } from "@leasehold/client/together";
import { beforeEach, describe, expect, it, test } from "vitest";
import { callBudgetMs } from "../../packages/client/src/base/timed-call.ts";
import {
  type PermitOptions,
  Semaphore,
  type SemaphoreOptions,
} from "../../packages/client/src/entries/semaphore.ts";
import { adminOf } from "../support/admin.ts";
import { follow } from "../support/follow.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
import { watchedMs } from "../support/watching.ts";

const leaseDurationMs = 30_000;
const clockSkewMs = 1_000;

let clock: ManualClock;
let store: ScriptedStore;

const clientOf = (owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient => {
  let tokens = 0;
  const randomness = { token: () => `${owner}-${++tokens}`, fraction: () => 0 };
  return new LeaseClient({ store, clock, owner, leaseDurationMs, clockSkewMs, randomness, ...options });
};
const semaphoreOf = (owner: string, permits = 3, options: Partial<LeaseClientOptions> = {}): Semaphore =>
  new Semaphore(clientOf(owner, options), "k", { permits });
const sortKeyOf = (lease: Lease | undefined): string | undefined => lease?.toJSON().sortKey;
const methods = (): string[] => store.calls.map((call) => call.method);

/** Holds the permits from 0 on, one for each owner. */
const fill = async (...owners: readonly string[]): Promise<Lease[]> => {
  const leases: Lease[] = [];
  for (const [permit, owner] of owners.entries()) {
    const fraction = (): number => permit / owners.length;
    const randomness = { token: () => `${owner}-token`, fraction };
    leases.push(await semaphoreOf(owner, owners.length, { randomness }).acquire());
  }
  store.calls.length = 0;
  return leases;
};

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
});

describe("requests", () => {
  it("is 1 to acquire, 1 to renew and 1 to release a permit of a fresh semaphore", async () => {
    const lease = await semaphoreOf("a").acquire();
    expect(methods()).toEqual(["update"]);
    await lease.renew();
    expect(methods()).toEqual(["update", "update"]);
    expect(await lease.release()).toBe(true);
    expect(methods()).toEqual(["update", "update", "update"]);
  });

  it("is 1 for each of many permits, whatever else is held, and for several at once", async () => {
    const semaphore = semaphoreOf("a", 6);
    await Promise.all([semaphore.acquire(), semaphore.acquire(), semaphoreOf("b", 6).acquire()]);
    await semaphore.acquire({ permits: 3 });
    expect(methods()).toEqual(Array(4).fill("update"));
  });

  it("is 1 to learn that too few are free", async () => {
    await fill("a", "b", "c");
    expect(await semaphoreOf("d").tryAcquire()).toBeUndefined();
    expect(methods()).toEqual(["update"]);
  });

  it("is 2 to take the place of leases that are over, however many they are", async () => {
    const [, last] = await fill("a", "b");
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    const lease = await semaphoreOf("c", 2).acquire({ permits: 2 });
    expect(methods()).toEqual(["update", "update"]);
    expect(lease.fencingToken).toBe((last?.fencingToken ?? 0) + 1);
  });

  it("while waiting is 1 read that may lag for each look, and no write until a permit is free", async () => {
    await fill("a", "b", "c");
    const waiting = follow(semaphoreOf("d").acquire({ waitMs: 25_000 }), clock);
    await clock.advance(25_000);
    expect(waiting.error).toBeInstanceOf(LeaseUnavailableError);
    expect(store.count("update")).toBe(1);
    expect(store.calls.filter((call) => call.consistent)).toHaveLength(0);
    expect(store.count("get")).toBeGreaterThan(5);
    expect(store.count("get")).toBeLessThan(25);
  });

  it("is 1 for each renewal of one semaphore, and 1 for those of different ones where they share requests", async () => {
    const client = clientOf("a", { renewals: together() });
    for (const key of ["k", "k", "k2"]) {
      await new Semaphore(client, key, { permits: 2 }).acquire({ heartbeat: true });
    }
    store.calls.length = 0;
    await clock.advance(leaseDurationMs / 3);
    expect(methods().sort()).toEqual(["update", "updateMany"]);
  });
});

describe("a permit", () => {
  it("is a lease with a token and a fencing token of its own, which grows over all holders", async () => {
    const [a, b] = await fill("a", "b");
    expect([a, b].map(sortKeyOf)).toEqual(["semaphore", "semaphore"]);
    expect(b?.fencingToken).toBe((a?.fencingToken ?? 0) + 1);
    expect(a?.token).not.toBe(b?.token);
    expect(a?.key).toBe("k");
    expect(await b?.release()).toBe(true);
    expect(a?.held).toBe(true);
    await a?.renew();
  });

  it("is adopted from its handle by another process, with its payload", async () => {
    const lease = await semaphoreOf("a").acquire({ permits: 2, data: { page: 1 } });
    const adopted = semaphoreOf("z").adopt(JSON.parse(JSON.stringify(lease)));
    await adopted.renew();
    expect(sortKeyOf(adopted)).toBe("semaphore");
    expect((await semaphoreOf("b").inspect()).held).toMatchObject([
      { data: { page: 1 }, seat: { kind: "permit", permits: 2 } },
    ]);
    expect(await adopted.release()).toBe(true);
    expect((await semaphoreOf("b").inspect()).free).toBe(3);
  });

  it("is refused as a handle that something has changed", () => {
    const handle = {
      ...{ tableName: store.tableName, key: "k", sortKey: "semaphore", owner: "a", token: "t", version: 1 },
      ...{ fencingToken: 7, acquiredAt: 1, expiresAt: 2, leaseDurationMs: 1 },
    };
    const seat = { kind: "permit", permits: 1, reentrant: false } as const;
    const missing = [{ kind: undefined }, { permits: undefined }, { reentrant: undefined }];
    for (const wrong of [{ kind: "seat" }, { permits: -1 }, { reentrant: 1 }, { data: 3n }, ...missing]) {
      const changed = { ...handle, seat: { ...seat, ...wrong } } as never;
      expect(() => semaphoreOf("z").adopt(changed)).toThrow(
        expect.objectContaining({ code: "LEASE_INVALID_OPTIONS" }),
      );
    }
    expect(() => semaphoreOf("z").adopt({ ...handle, seat }, { heartBeat: true } as object)).toThrow(
      expect.objectContaining({ option: "options.heartBeat" }),
    );
  });

  it("that is gone is lost to nobody in particular, whoever else holds permits", async () => {
    const lease = await semaphoreOf("a").acquire();
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    await semaphoreOf("b").acquire({ permits: 3 });
    const error = await semaphoreOf("a").adopt(lease.toJSON()).renew().catch(String);
    expect(error).toContain("LeaseLostError");
    expect(error).not.toContain("held by");
  });

  it("is broken and asked to stop by its sort key and token, and found by the client's lists", async () => {
    const [a, b] = await fill("a", "b");
    const operator = clientOf("operator");
    const found = await adminOf(operator).inspectAll("k");
    expect(found.map(({ owner, sortKey }) => [owner, sortKey])).toEqual([
      ["a", "semaphore"],
      ["b", "semaphore"],
    ]);
    const listed: string[] = [];
    for await (const { owner } of adminOf(operator).list({ all: true })) listed.push(owner);
    expect(listed).toEqual(["a", "b"]);
    expect(await adminOf(operator).inspect("k", { sortKey: "semaphore" })).toMatchObject({ owner: "a" });

    const stop = { sortKey: "semaphore", token: a?.token ?? "", reason: "maintenance" };
    expect(await adminOf(operator).requestRevocation("k", stop)).toBe(true);
    await a?.renew().catch(() => undefined);
    expect(a?.signal.reason).toMatchObject({ reason: "revoked" });

    const broken = { sortKey: "semaphore", token: b?.token ?? "" };
    expect(await adminOf(operator).forceRelease("k", broken)).toBe(true);
    expect(await adminOf(operator).forceRelease("k", broken)).toBe(true);
    await expect(b?.renew()).rejects.toMatchObject({ reason: "released" });
    let instead: unknown;
    const onRefused = (holder: unknown): void => {
      instead = holder;
    };
    expect(
      await adminOf(operator).forceRelease("k", { sortKey: "semaphore", token: "none", onRefused }),
    ).toBe(false);
    expect(instead).toMatchObject({ owner: "a" });
    expect(clientOf("c").held()).toEqual([]);
  });

  it("is held by the client that acquired it, and let go when that is closed", async () => {
    const client = clientOf("a");
    const lease = await new Semaphore(client, "k", { permits: 1 }).acquire();
    expect(client.held().map(({ token }) => token)).toEqual([lease.token]);
    await client.close();
    expect((await semaphoreOf("b", 1).inspect()).held).toEqual([]);
  });

  it("has nothing to do with the lock of the same key", async () => {
    const client = clientOf("a");
    const lock = await client.acquire("k");
    const permit = await new Semaphore(client, "k", { permits: 1 }).acquire();
    expect([lock.held, permit.held]).toEqual([true, true]);
    expect((await new Semaphore(client, "k", { permits: 1 }).inspect()).held).toHaveLength(1);
  });

  it("that was never given back heals when its lease and the allowance for skew are over", async () => {
    await fill("a", "b");
    await clock.advance(leaseDurationMs + clockSkewMs);
    expect(await semaphoreOf("c", 2).tryAcquire()).toBeUndefined();
    await clock.advance(1);
    const healed = semaphoreOf("c", 2);
    expect((await healed.tryAcquire())?.held).toBe(true);
    expect((await healed.tryAcquire())?.held).toBe(true);
    expect(await healed.tryAcquire()).toBeUndefined();
  });

  it("of a dead holder heals without wall clocks too, by being watched", async () => {
    const options = { clockSkewMs: Number.POSITIVE_INFINITY };
    await fill("a", "b");
    const semaphore = semaphoreOf("c", 2, options);
    expect(await semaphore.tryAcquire()).toBeUndefined();
    await clock.advance(2 * leaseDurationMs);
    const waiting = follow(semaphore.acquire({ waitMs: 2 * leaseDurationMs }), clock);
    await clock.advance(2 * leaseDurationMs);
    expect(waiting.value).toBeDefined();
  });

  it("whose holder asked for lockAtLeastForMs stays taken after its release", async () => {
    const semaphore = semaphoreOf("a", 1);
    await (await semaphore.acquire({ lockAtLeastForMs: 5_000 })).release();
    await expect(semaphoreOf("b", 1).acquire()).rejects.toMatchObject({ inCooldown: true, holder: "a" });
    await clock.advance(5_000 + clockSkewMs + 1);
    expect((await semaphoreOf("b", 1).acquire()).held).toBe(true);
  });
});

describe("a refusal", () => {
  it("tells of the permit that ends first", async () => {
    const client = clientOf("a");
    const semaphore = new Semaphore(client, "k", { permits: 3 });
    await semaphore.acquire({ owner: "long", leaseDurationMs: 60_000 });
    const short = await semaphore.acquire({ owner: "short", leaseDurationMs: 10_000 });
    await semaphore.acquire({ owner: "middle", leaseDurationMs: 20_000 });
    await expect(semaphoreOf("d").acquire()).rejects.toMatchObject({
      code: "LEASE_UNAVAILABLE",
      key: "k",
      holder: "short",
      expiresAt: short.expiresAt,
      retryAfterMs: watchedMs(10_000),
    });
  });

  it("is not repeated in a spin where the service does not tell its time", async () => {
    store.isLocal = false;
    await fill("a");
    // The other has died, and this machine's clock is an hour ahead: only watching helps.
    clock.jump(3_600_000);
    const waiting = follow(semaphoreOf("b", 1).acquire({ waitMs: 60_000 }), clock);
    await clock.advance(29_000);
    expect(store.count("update")).toBeLessThanOrEqual(2);
    await clock.advance(3_000);
    expect(waiting.value?.held).toBe(true);
  });
});

describe("waiting", () => {
  it("ends soon after any of the permits is released", async () => {
    const leases = await fill("a", "b", "c");
    const waiting = follow(semaphoreOf("d").acquire({ waitMs: 25_000 }), clock);
    await clock.advance(600);
    await leases[1]?.release();
    await clock.advance(1_500);
    expect(waiting.value?.held).toBe(true);
  });

  it("ends when the first holder's time is up", async () => {
    await fill("a", "b", "c");
    const waiting = follow(semaphoreOf("d").acquire({ waitMs: 60_000 }), clock);
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    expect(waiting.value?.held).toBe(true);
  });

  it("is over when its patience is, to the millisecond", async () => {
    await fill("a", "b", "c");
    const waiting = follow(semaphoreOf("d").acquire({ waitMs: 7_777 }), clock);
    await clock.advance(7_776);
    expect(waiting.at).toBeUndefined();
    await clock.advance(1);
    expect(waiting.error).toMatchObject({ code: "LEASE_UNAVAILABLE", holder: "a" });
  });

  it("follows the strategy that was asked for", async () => {
    await fill("a", "b", "c");
    const retry = { strategy: "fixed", delayMs: 1_000 } as const;
    follow(semaphoreOf("d").acquire({ waitMs: 10_000, retry }), clock);
    await clock.advance(9_500);
    expect(store.count("get")).toBe(9);
  });

  it("is given up when its signal aborts, with its reason as the cause, and holds nothing", async () => {
    const leases = await fill("a", "b", "c");
    const controller = new AbortController();
    const waiting = follow(semaphoreOf("d").acquire({ waitMs: 25_000, signal: controller.signal }), clock);
    await clock.advance(1_000);
    controller.abort(new Error("no longer wanted"));
    await clock.advance(0);
    expect(waiting.error).toMatchObject({ code: "LEASE_ABORTED", cause: controller.signal.reason });
    await Promise.all(leases.map((lease) => lease.release()));
    await clock.advance(30_000);
    expect((await semaphoreOf("e").inspect()).held).toEqual([]);
  });

  it("outlives a service that fails for a while", async () => {
    store.next("throttled", "throttled");
    const waiting = follow(semaphoreOf("a").acquire({ waitMs: 10_000 }), clock);
    await clock.advance(5_000);
    expect(waiting.value?.held).toBe(true);
  });

  it("ends with the service's error where that is what the last attempt ended with", async () => {
    store.weather = "throttled";
    const waiting = follow(semaphoreOf("a").acquire({ waitMs: 3_000 }), clock);
    await clock.advance(3_000);
    expect(waiting.error).toMatchObject({ code: "LEASE_THROTTLED" });
  });
});

describe("worst moments", () => {
  it("takes one permit where the acquisition was not answered at first", async () => {
    store.next("answer lost");
    const waiting = follow(semaphoreOf("a").acquire({ waitMs: 10_000 }), clock);
    await clock.advance(2_000);
    expect(waiting.value?.held).toBe(true);
    const { held } = await semaphoreOf("b").inspect();
    expect(held.map(({ token }) => token)).toEqual([waiting.value?.token]);
  });

  it("without patience ends with the service's error, and what may have landed is taken back", async () => {
    store.next("answer lost");
    await expect(semaphoreOf("a").acquire()).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
    await clock.advance(0);
    expect((await semaphoreOf("b").inspect()).held).toEqual([]);
  });

  it("does not outstay its patience by more than a second where the service hangs", async () => {
    store.weather = "hangs";
    const waiting = follow(semaphoreOf("a").acquire({ waitMs: 500 }), clock);
    await clock.advance(1_500);
    expect(waiting.error).toMatchObject({ code: "LEASE_NO_ANSWER" });
  });

  it("keeps the fencing tokens of a permit growing after ttl has removed it", async () => {
    const before = await semaphoreOf("a", 1).acquire();
    await before.release();
    await clock.advance(8 * 24 * 3_600_000);
    expect(store.table.collectGarbage(clock.now())).toBe(1);
    const after = await semaphoreOf("b", 1).acquire();
    expect(after.fencingToken).toBeGreaterThan(before.fencingToken);
  });
});

describe("withPermit", () => {
  it("gives the work's result, and releases the permit", async () => {
    const semaphore = semaphoreOf("a");
    expect(await semaphore.withPermit({}, (lease) => lease.held)).toBe(true);
    expect((await semaphore.inspect()).held).toEqual([]);
  });

  it("releases the permit when the work fails, and passes its error on", async () => {
    const semaphore = semaphoreOf("a");
    const fails = semaphore.withPermit({}, () => Promise.reject(new Error("broken")));
    await expect(fails).rejects.toThrow("broken");
    expect((await semaphore.inspect()).held).toEqual([]);
  });

  it("rejects with LeaseLostError where the lease did not protect the work to its end", async () => {
    const work = semaphoreOf("a").withPermit({}, () => clock.advance(leaseDurationMs));
    await expect(work).rejects.toMatchObject({ code: "LEASE_LOST", reason: "expired" });
  });

  it("never starts the work without a permit", async () => {
    await fill("a", "b", "c");
    let isStarted = false;
    const refused = semaphoreOf("d").withPermit({}, () => {
      isStarted = true;
    });
    await expect(refused).rejects.toBeInstanceOf(LeaseUnavailableError);
    expect(isStarted).toBe(false);
  });
});

describe("inspect", () => {
  it("shows who holds permits, and how many are to be had, for 1 consistent read", async () => {
    await fill("a", "b");
    const state = await semaphoreOf("c", 5).inspect();
    expect(state).toMatchObject({ permits: 5, free: 3, held: [{ owner: "a" }, { owner: "b" }] });
    expect(store.calls).toMatchObject([{ method: "get", consistent: true }]);
  });

  it("counts a dead holder's permit as free, and shows it still", async () => {
    await fill("a", "b");
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    expect(await semaphoreOf("c", 2).inspect()).toMatchObject({ free: 2, held: [{}, {}] });
  });
});

describe("a reentrant owner", () => {
  const reentrant: PermitOptions = { owner: "request-1", reentrant: true };

  it("enters its own permit again without a request, and frees it with the last handle", async () => {
    const semaphore = semaphoreOf("a");
    const outer = await semaphore.acquire(reentrant);
    expect(methods()).toEqual(["update"]);
    store.calls.length = 0;
    const inner = await semaphore.acquire(reentrant);
    expect(methods()).toEqual([]);
    expect(inner.token).toBe(outer.token);
    await outer.release();
    const third = await semaphore.acquire(reentrant);
    expect(third.token).toBe(inner.token);
    await inner.release();
    expect((await semaphore.inspect()).held).toHaveLength(1);
    await third.release();
    expect((await semaphore.inspect()).held).toEqual([]);
  });

  it("shares one permit among calls that come at the same time", async () => {
    const semaphore = semaphoreOf("a");
    const leases = await Promise.all([1, 2, 3].map(() => semaphore.acquire(reentrant)));
    expect(new Set(leases.map(({ token }) => token)).size).toBe(1);
    expect((await semaphore.inspect()).held).toHaveLength(1);
  });

  it("finds its permit again in another process, as after a retry, even while all are held", async () => {
    const before = await semaphoreOf("a", 2).acquire(reentrant);
    await semaphoreOf("b", 2).acquire();
    store.calls.length = 0;
    const told: LeaseEvent[] = [];
    const after = await semaphoreOf("z", 2, { onEvent: (event) => told.push(event) }).acquire(reentrant);
    expect(told).toMatchObject([{ type: "takeover", reason: "sameOwner" }, { type: "acquired" }]);
    expect(sortKeyOf(after)).toBe(sortKeyOf(before));
    expect(after.fencingToken).toBeGreaterThan(before.fencingToken);
    expect(methods()).toEqual(["update", "update"]);
    await expect(before.renew()).rejects.toMatchObject({ reason: "taken" });
  });

  it("gets another permit once its own has ended", async () => {
    const semaphore = semaphoreOf("a", 2);
    const before = await semaphore.acquire(reentrant);
    await clock.advance(leaseDurationMs);
    expect(before.held).toBe(false);
    expect((await semaphore.acquire(reentrant)).held).toBe(true);
  });

  it("is not let into another owner's permit", async () => {
    await fill("b", "c");
    await semaphoreOf("a").acquire(reentrant);
    expect(await semaphoreOf("d").tryAcquire({ ...reentrant, owner: "request-2" })).toBeUndefined();
    expect(await semaphoreOf("a").tryAcquire(reentrant)).toBeDefined();
  });

  it("is not let into a plain permit of its own owner, in the same object and from elsewhere", async () => {
    const semaphore = semaphoreOf("a", 1);
    const plain = await semaphore.acquire({ owner: "request-1" });
    expect(await semaphore.tryAcquire(reentrant)).toBeUndefined();
    expect(await semaphoreOf("b", 1).tryAcquire(reentrant)).toBeUndefined();
    await plain.renew();
  });
});

describe("bad input is refused before anything is sent", () => {
  test.each([-1, 1.5, Number.NaN, 1001, "3", undefined])("permits %s", (permits) => {
    const options = { permits } as SemaphoreOptions;
    expect(() => new Semaphore(clientOf("a"), "k", options)).toThrow(
      expect.objectContaining({ code: "LEASE_INVALID_OPTIONS", option: "permits" }),
    );
  });

  test.each([
    ["options.permit", { permit: 3 }],
    ["options.strict", { permits: 3, strict: true }],
    ["order", { permits: 3, order: "fair" }],
  ])("%s", (option, options) => {
    const make = () => new Semaphore(clientOf("a"), "k", options as unknown as SemaphoreOptions);
    expect(make).toThrow(expect.objectContaining({ option }));
  });

  test.each([
    ["options.slot", { slot: "2026-01-01" }],
    ["options.wait", { wait: 3 }],
    ["waitMs", { waitMs: -1 }],
    ["heartbeat", { heartbeat: 20_000 }],
    ["retry.strategy", { retry: { strategy: "often" } }],
    ["data", { data: 3n }],
    ["leaseDurationMs", { leaseDurationMs: clockSkewMs - 1 }],
    // About as long as the retention, another holder's write could let ttl remove it.
    ["leaseDurationMs", { leaseDurationMs: 5.25 * 24 * 3_600_000 + 1 }],
    ["permits", { permits: 0 }],
    ["permits", { permits: 4 }],
    ["permits", { permits: 2, reentrant: true, owner: "me" }],
    ["data", { data: "x".repeat(4 * 1024) }],
  ])("%s", async (option, options) => {
    await expect(semaphoreOf("a").acquire(options as PermitOptions)).rejects.toMatchObject({ option });
    expect(store.calls).toEqual([]);
  });

  it("a client that is none, a key that is none, and work that is none", async () => {
    expect(() => new Semaphore({} as LeaseClient, "k", { permits: 1 })).toThrow(/LeaseClient/);
    expect(() => new Semaphore(clientOf("a"), "", { permits: 1 })).toThrow(/key/);
    await expect(semaphoreOf("a").withPermit({}, "work" as never)).rejects.toMatchObject({ option: "work" });
    expect(store.calls).toEqual([]);
  });

  it("waitMs for tryAcquire, which never waits", async () => {
    await expect(semaphoreOf("a").tryAcquire({ waitMs: 1 } as never)).rejects.toMatchObject({
      option: "options.waitMs",
    });
  });

  it("and the largest semaphore there may be is one", async () => {
    const lease = await semaphoreOf("a", 1000).acquire({ permits: 1000 });
    expect(await semaphoreOf("b", 1000).tryAcquire()).toBeUndefined();
    expect(lease.held).toBe(true);
  });
});

describe("N that differs between callers", () => {
  it("refuses callers with a lowered N until so few are held, in whatever order they are released", async () => {
    const many = semaphoreOf("many", 5);
    const leases = [];
    for (let count = 0; count < 5; count += 1) leases.push(await many.acquire());
    const few = semaphoreOf("few", 3);
    for (const index of [4, 0]) {
      await leases[index]?.release();
      expect(await few.tryAcquire()).toBeUndefined();
    }
    await leases[2]?.release();
    expect((await few.tryAcquire())?.held).toBe(true);
    expect(await few.tryAcquire()).toBeUndefined();
    expect((await many.tryAcquire())?.held).toBe(true);
    expect(await few.inspect()).toMatchObject({ permits: 3, free: 0 });
  });
});

describe("a refusal says", () => {
  it.each([
    [
      "how many permits there are",
      1,
      /^too few of the 1 permits of the semaphore "k" are free, .* held by "a"/,
    ],
    ["that the semaphore is paused", 0, /^the semaphore "k", paused with permits: 0, is held by "a"/],
  ])("%s", async (_, permits, message) => {
    await fill("a");
    await expect(semaphoreOf("b", permits).acquire()).rejects.toThrow(message);
  });
});

describe("a pause", () => {
  it("is refused as such where nothing is held, and not as a permit that was given back meanwhile", async () => {
    const events: LeaseEvent[] = [];
    const paused = semaphoreOf("a", 0, { onEvent: (event) => events.push(event) });
    await expect(paused.acquire()).rejects.toThrow(
      'the semaphore "k", paused with permits: 0, is not held; try again in 60000 ms',
    );
    expect(events).toEqual([]);
  });

  it("lets nobody in, not even where nothing is held, and leaves the holders alone", async () => {
    expect(await semaphoreOf("b", 0).tryAcquire()).toBeUndefined();
    const [lease] = await fill("a");
    const waiting = follow(semaphoreOf("b", 0).acquire({ waitMs: 100_000, permits: 7 }), clock);
    await clock.advance(50_000);
    await lease?.release().catch(() => undefined);
    await clock.advance(50_000);
    expect(waiting.error).toMatchObject({ code: "LEASE_UNAVAILABLE" });
    expect((waiting.error as LeaseUnavailableError).retryAfterMs).toBeLessThan(100_000);
  });
});

describe("drain", () => {
  it("is over at once where nobody holds a permit, and for 1 consistent read", async () => {
    await semaphoreOf("a").drain();
    expect(store.calls).toMatchObject([{ method: "get", consistent: true }]);
  });

  it("waits for releases, for the end of dead leases, and for lockAtLeastForMs", async () => {
    const [a] = await fill("a", "b");
    const cooling = await semaphoreOf("c").acquire({ lockAtLeastForMs: 5_000 });
    const drained = follow(semaphoreOf("d").drain({ waitMs: 60_000 }), clock);
    await a?.release();
    await cooling.release();
    await clock.advance(leaseDurationMs);
    expect(drained.at).toBeUndefined();
    await clock.advance(clockSkewMs + 60);
    expect(drained.at).toBeDefined();
    expect(store.count("update")).toBe(3);
  });

  it("tells of the lease that may last longest when its time is over", async () => {
    const semaphore = semaphoreOf("a");
    await semaphore.acquire({ owner: "short", leaseDurationMs: 10_000 });
    await semaphore.acquire({ owner: "long" });
    const drained = follow(semaphoreOf("d").drain({ waitMs: 1_000 }), clock);
    await clock.advance(1_000);
    expect(drained.error).toMatchObject({
      code: "LEASE_UNAVAILABLE",
      holder: "long",
      message: expect.stringContaining('a permit of the semaphore "k" is held by "long"'),
    });
  });

  it("does not advise to share the permit that its own caller holds", async () => {
    const semaphore = semaphoreOf("a");
    await semaphore.acquire();
    await expect(semaphore.drain()).rejects.toThrow(/^(?!.*reentrant)/);
  });

  it("does not outstay its patience by more than a second where the service hangs", async () => {
    store.get = (_, { signal }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    const patient = follow(semaphoreOf("a").drain({ waitMs: 500 }), clock);
    const impatient = follow(semaphoreOf("a").drain(), clock);
    await clock.advance(1_500);
    expect(patient.error).toMatchObject({ code: "LEASE_NO_ANSWER" });
    expect(impatient.at).toBeUndefined();
    await clock.advance(callBudgetMs);
    expect(impatient.error).toMatchObject({ code: "LEASE_NO_ANSWER" });
  });

  it("outlives a service that fails for a while, and ends with its signal, and with the client", async () => {
    await fill("a");
    const client = clientOf("d");
    const semaphore = new Semaphore(client, "k", { permits: 3 });
    const controller = new AbortController();
    const aborted = follow(semaphore.drain({ waitMs: 60_000, signal: controller.signal }), clock);
    const closed = follow(semaphore.drain({ waitMs: 60_000 }), clock);
    await clock.advance(1_000);
    controller.abort(new Error("no longer wanted"));
    await client.close();
    await clock.advance(0);
    expect(aborted.error).toMatchObject({ code: "LEASE_ABORTED" });
    expect(closed.error).toMatchObject({ code: "LEASE_CLIENT_CLOSED" });

    const { get } = store;
    store.get = async () => {
      throw new LeaseServiceError("LEASE_THROTTLED", "throttled");
    };
    await expect(semaphoreOf("e").drain()).rejects.toMatchObject({ code: "LEASE_THROTTLED" });
    const patient = follow(semaphoreOf("e").drain({ waitMs: 60_000 }), clock);
    await clock.advance(1_000);
    store.get = get;
    await clock.advance(leaseDurationMs + clockSkewMs);
    expect(patient.at).toBeDefined();
  });
});
