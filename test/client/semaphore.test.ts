import {
  type Lease,
  LeaseClient,
  type LeaseClientOptions,
  type LeaseEvent,
  LeaseServiceError,
} from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
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

/** Holds all permits, one for each owner. */
const fill = async (...owners: readonly string[]): Promise<Lease[]> => {
  const leases: Lease[] = [];
  for (const owner of owners) leases.push(await semaphoreOf(owner, owners.length).acquire());
  store.calls.length = 0;
  return leases;
};

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
});

describe("a permit", () => {
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

  it("that was broken counts as broken when it is broken again, and is lost to its holder; an unknown token is not", async () => {
    const lease = await semaphoreOf("a").acquire();
    const broken = [];
    for (const token of [lease.token, lease.token, "none"]) {
      const permit = { sortKey: "semaphore", token };
      broken.push(await adminOf(clientOf("operator")).forceRelease("k", permit));
    }
    expect(broken).toEqual([true, true, false]);
    await expect(lease.renew()).rejects.toMatchObject({ reason: "released" });
  });
});

describe("inspect", () => {
  it("shows who holds permits, and how many are to be had, for 1 consistent read", async () => {
    await fill("a", "b");
    const state = await semaphoreOf("c", 5).inspect();
    expect(state).toMatchObject({ permits: 5, free: 3, held: [{ owner: "a" }, { owner: "b" }] });
    expect(store.calls).toMatchObject([{ method: "get", consistent: true }]);
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
});

describe("drain", () => {
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
