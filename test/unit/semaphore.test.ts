import { type Lease, LeaseClient, type LeaseClientOptions, LeaseUnavailableError } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it, test } from "vitest";
import {
  type PermitOptions,
  permitPlace,
  Semaphore,
  type SemaphoreOptions,
} from "../../packages/client/src/semaphore/index.ts";
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
const placeOf = (lease: Lease | undefined): string | undefined => lease?.toJSON().sortKey;
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

/** Follows a promise without waiting for it. */
function follow<T>(promise: Promise<T>): { value?: T; error?: unknown; at?: number } {
  const followed: { value?: T; error?: unknown; at?: number } = {};
  promise.then(
    (value) => Object.assign(followed, { value, at: clock.monotonic() }),
    (error: unknown) => Object.assign(followed, { error, at: clock.monotonic() }),
  );
  return followed;
}

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

  it("is 1 for each permit that one object takes, for it knows its own", async () => {
    const semaphore = semaphoreOf("a");
    const leases = await Promise.all([semaphore.acquire(), semaphore.acquire(), semaphore.acquire()]);
    expect(methods()).toEqual(["update", "update", "update"]);
    expect(new Set(leases.map(placeOf)).size).toBe(3);
  });

  it("is 1 to acquire again after a release, at the permit that was released", async () => {
    const semaphore = semaphoreOf("a", 10);
    const [first, second] = [await semaphore.acquire(), await semaphore.acquire()];
    await second.release();
    store.calls.length = 0;
    const third = await semaphore.acquire();
    expect(methods()).toEqual(["update"]);
    expect(placeOf(third)).toBe(placeOf(second));
    expect(placeOf(third)).not.toBe(placeOf(first));
  });

  it("is 3 where the first permit that is tried is held and another is free", async () => {
    await semaphoreOf("a").acquire();
    store.calls.length = 0;
    expect((await semaphoreOf("b").acquire()).held).toBe(true);
    expect(methods()).toEqual(["update", "query", "update"]);
    expect(store.calls[1]?.consistent).toBe(true);
  });

  it("is 2 to learn that all are held, and 1 when all of them are this object's own", async () => {
    await fill("a", "b", "c");
    expect(await semaphoreOf("d").tryAcquire()).toBeUndefined();
    expect(methods()).toEqual(["update", "query"]);

    store.calls.length = 0;
    const own = new Semaphore(clientOf("e"), "other", { permits: 1 });
    await own.acquire();
    store.calls.length = 0;
    expect(await own.tryAcquire()).toBeUndefined();
    expect(methods()).toEqual(["query"]);
  });

  it("is 2 to take over the permit of a dead holder that is met first", async () => {
    const [dead] = await fill("a", "b");
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    const lease = await semaphoreOf("c", 2).acquire();
    expect(methods()).toEqual(["update", "update"]);
    expect(lease.fencingToken).toBe((dead?.fencingToken ?? 0) + 1);
  });

  it("while waiting is 1 read that may lag for each look, and no write until a permit is free", async () => {
    await fill("a", "b", "c");
    const waiting = follow(semaphoreOf("d").acquire({ waitMs: 25_000 }));
    await clock.advance(25_000);
    expect(waiting.error).toBeInstanceOf(LeaseUnavailableError);
    expect(store.count("update")).toBe(1);
    expect(store.calls.filter((call) => call.consistent)).toHaveLength(1);
    expect(store.count("query")).toBeGreaterThan(5);
    expect(store.count("query")).toBeLessThan(25);
  });

  it("renews all permits of a client together", async () => {
    const semaphore = semaphoreOf("a");
    await semaphore.acquire({ heartbeat: true });
    await semaphore.acquire({ heartbeat: true });
    store.calls.length = 0;
    await clock.advance(leaseDurationMs / 3);
    expect(methods()).toEqual(["updateMany"]);
  });
});

describe("a permit", () => {
  it("is a lease with a place, a token and a fencing token of its own", async () => {
    const [a, b] = await fill("a", "b");
    expect([a, b].map(placeOf)).toEqual(["permit#000", "permit#001"]);
    expect(a?.token).not.toBe(b?.token);
    expect(a?.key).toBe("k");
    expect(await b?.release()).toBe(true);
    expect(a?.held).toBe(true);
    await a?.renew();
  });

  it("is adopted from its handle by another process", async () => {
    const [lease] = await fill("a", "b");
    if (lease === undefined) throw new Error("no lease");
    const adopted = clientOf("z").adopt(lease.toJSON());
    await adopted.renew();
    expect(placeOf(adopted)).toBe("permit#000");
    expect(await adopted.release()).toBe(true);
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
    const waiting = follow(semaphore.acquire({ waitMs: 2 * leaseDurationMs }));
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
    const waiting = follow(semaphoreOf("b", 1).acquire({ waitMs: 60_000 }));
    await clock.advance(29_000);
    expect(store.count("update")).toBeLessThanOrEqual(2);
    await clock.advance(3_000);
    expect(waiting.value?.held).toBe(true);
  });
});

describe("waiting", () => {
  it("ends soon after any of the permits is released", async () => {
    const leases = await fill("a", "b", "c");
    const waiting = follow(semaphoreOf("d").acquire({ waitMs: 25_000 }));
    await clock.advance(600);
    await leases[1]?.release();
    await clock.advance(1_500);
    expect(placeOf(waiting.value)).toBe("permit#001");
  });

  it("ends when the first holder's time is up", async () => {
    await fill("a", "b", "c");
    const waiting = follow(semaphoreOf("d").acquire({ waitMs: 60_000 }));
    await clock.advance(leaseDurationMs + clockSkewMs + 1);
    expect(waiting.value?.held).toBe(true);
  });

  it("is over when its patience is, to the millisecond", async () => {
    await fill("a", "b", "c");
    const waiting = follow(semaphoreOf("d").acquire({ waitMs: 7_777 }));
    await clock.advance(7_776);
    expect(waiting.at).toBeUndefined();
    await clock.advance(1);
    expect(waiting.error).toMatchObject({ code: "LEASE_UNAVAILABLE", holder: "a" });
  });

  it("follows the strategy that was asked for", async () => {
    await fill("a", "b", "c");
    const retry = { strategy: "fixed", delayMs: 1_000 } as const;
    follow(semaphoreOf("d").acquire({ waitMs: 10_000, retry }));
    await clock.advance(9_500);
    // The look of the first refusal, and one each second.
    expect(store.count("query")).toBe(10);
  });

  it("is given up when its signal aborts, with its reason as the cause, and holds nothing", async () => {
    const leases = await fill("a", "b", "c");
    const controller = new AbortController();
    const waiting = follow(semaphoreOf("d").acquire({ waitMs: 25_000, signal: controller.signal }));
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
    const waiting = follow(semaphoreOf("a").acquire({ waitMs: 10_000 }));
    await clock.advance(5_000);
    expect(waiting.value?.held).toBe(true);
  });

  it("ends with the service's error where that is what the last attempt ended with", async () => {
    store.weather = "throttled";
    const waiting = follow(semaphoreOf("a").acquire({ waitMs: 3_000 }));
    await clock.advance(3_000);
    expect(waiting.error).toMatchObject({ code: "LEASE_THROTTLED" });
  });
});

describe("worst moments", () => {
  it("gives a permit up whose acquisition was not answered, and takes another one", async () => {
    store.next("answer lost");
    const waiting = follow(semaphoreOf("a").acquire({ waitMs: 10_000 }));
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
    const waiting = follow(semaphoreOf("a").acquire({ waitMs: 500 }));
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
    expect(state.held.map(({ sortKey }) => sortKey)).toEqual(["permit#000", "permit#001"]);
    expect(store.calls).toMatchObject([{ method: "query", consistent: true }]);
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
    expect(methods()).toEqual(["query", "update"]);
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
    const after = await semaphoreOf("z", 2).acquire(reentrant);
    expect(placeOf(after)).toBe(placeOf(before));
    expect(after.fencingToken).toBe(before.fencingToken + 1);
    expect(methods()).toEqual(["query", "update", "update"]);
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
  test.each([0, -1, 1.5, Number.NaN, 1001, "3", undefined])("permits %s", (permits) => {
    const options = { permits } as SemaphoreOptions;
    expect(() => new Semaphore(clientOf("a"), "k", options)).toThrow(
      expect.objectContaining({ code: "LEASE_INVALID_OPTIONS", option: "permits" }),
    );
  });

  test.each([
    ["options.permit", { permit: 3 }],
    ["strict", { permits: 3, strict: 1 }],
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
    const semaphore = semaphoreOf("a", 1000, { randomness: { token: () => "t", fraction: () => 0.9999 } });
    expect(placeOf(await semaphore.acquire())).toBe(permitPlace(999));
  });
});
