import { InvalidOptionsError, LeaseClient } from "@leasehold/client";
import type { LeaseAdmin } from "@leasehold/client/admin";
import { ManualClock, MemoryLeaseStore, settled } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { Leader, type LeaderOptions } from "../../packages/client/src/entries/leader.ts";
import { leaderContract } from "../contract/leader-contract.ts";
import { adminOf } from "../support/admin.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const memory = new MemoryLeaseStore();
leaderContract(() => ({ store: memory }));

let clock: ManualClock;
let store: ScriptedStore;

/** Jitter that is always the middle. */
const randomness = { token: () => crypto.randomUUID(), fraction: () => 0.5 };
const clientOf = (owner: string): LeaseClient =>
  new LeaseClient({ store, clock, randomness, owner, leaseDurationMs: 10_000 });
const candidate = (owner: string, options: LeaderOptions = {}): Leader =>
  new Leader(clientOf(owner), "k", options);

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
});

describe("the requests of an election", () => {
  it("1 to be elected, 1 for each third of the lease to stay it, 1 to resign", async () => {
    const leader = candidate("one");
    await leader.campaign();
    expect(store.calls).toHaveLength(1);
    await clock.advance(30_000);
    const renewals = store.calls.length - 1;
    expect(renewals).toBeGreaterThanOrEqual(9);
    expect(renewals).toBeLessThanOrEqual(11);
    await leader.resign();
    expect(store.calls).toHaveLength(renewals + 2);
    expect(await leader.resign()).toBe(false);
    expect(store.calls).toHaveLength(renewals + 2);
    expect(clock.pending).toBe(0);
  });

  it("2 to resume the leadership of the same owner from elsewhere, as after a restart, without waiting for its lease", async () => {
    const again = { owner: "pod-1", reentrant: true };
    const before = await candidate("a", again).campaign();
    store.calls.length = 0;
    const leadership = await candidate("b", again).campaign();
    expect(store.calls).toHaveLength(2);
    expect(leadership.fencingToken).toBeGreaterThan(before.fencingToken);
    await expect(before.renew()).rejects.toMatchObject({ reason: "taken" });
    const stop = AbortSignal.abort(new Error("stop"));
    await expect(candidate("c", { ...again, owner: "pod-2" }).campaign({ signal: stop })).rejects.toThrow(
      "stop",
    );
  });

  it("reads alone while another leads, every 5 s in the long run", async () => {
    await candidate("one").campaign();
    const stop = new AbortController();
    const campaign = candidate("two").campaign({ signal: stop.signal });
    const outcome = expect(campaign).rejects.toThrow("stop");
    await clock.advance(60_000);
    const reads = store.count("get");
    await clock.advance(600_000);
    expect(store.count("get") - reads).toBe(120);
    expect(store.calls.filter(({ requests }) => requests[0]?.update.includes("if_not_exists"))).toHaveLength(
      2,
    );
    stop.abort(new Error("stop"));
    await outcome;
  });

  it("of an observer: reads that get rarer, up to every 10 s", async () => {
    await candidate("one").campaign();
    store.calls.length = 0;
    const stop = new AbortController();
    const observation = candidate("two").observe({ signal: stop.signal });
    expect((await observation.next()).value).toMatchObject({ owner: "one" });
    const next = observation.next();
    await clock.advance(15_000);
    const early = store.count("get");
    await clock.advance(600_000);
    expect(early).toBeGreaterThanOrEqual(4);
    expect(store.count("get") - early).toBeLessThanOrEqual(120);
    expect(store.count("get") - early).toBeGreaterThanOrEqual(40);
    expect(store.calls.filter(({ method }) => method === "get").every(({ consistent }) => !consistent)).toBe(
      true,
    );
    stop.abort();
    expect(await next).toEqual({ done: true, value: undefined });
  });
});

describe("at its worst moments", () => {
  it("a campaign outlasts a service that fails, and gives up at an error that will not pass", async () => {
    store.weather = "throttled";
    const campaign = candidate("one").campaign();
    await clock.advance(3_600_000);
    store.weather = undefined;
    await clock.advance(10_000);
    expect((await campaign).held).toBe(true);
    store.weather = "rejected";
    await expect(candidate("two").campaign()).rejects.toMatchObject({ code: "LEASE_REQUEST_REJECTED" });
  });

  it("a campaign whose winning answer is lost recognises its own election", async () => {
    store.next("answer lost");
    const campaign = candidate("one").campaign();
    await clock.advance(1_000);
    expect((await campaign).held).toBe(true);
  });

  it("a campaign that is called off before its answer comes leaves no leader behind", async () => {
    store.next("hangs");
    const stop = new AbortController();
    const campaign = candidate("one").campaign({ signal: stop.signal });
    const outcome = expect(campaign).rejects.toThrow("stop");
    await settled();
    stop.abort(new Error("stop"));
    await outcome;
    await settled();
    expect(await candidate("two").current()).toBeUndefined();
  });

  it("a leader that freezes past its lease finds its signal aborted when it wakes, and hears that it lost", async () => {
    const told: string[] = [];
    const one = candidate("one", { onLost: ({ reason }) => told.push(reason) });
    const leadership = await one.campaign();
    clock.freeze(12_000);
    expect(leadership.signal.aborted).toBe(true);
    expect(one.leadership).toBeUndefined();
    await settled();
    expect(told).toEqual(["expired"]);
  });

  it("a leader whose renewals fail is told at its own deadline, before anybody can succeed it", async () => {
    const elected: string[] = [];
    const one = candidate("one");
    const leadership = await one.campaign();
    let lostAt = 0;
    leadership.signal.addEventListener("abort", () => {
      lostAt = clock.monotonic();
    });
    store.weather = "request lost";
    await clock.advance(9_000);
    store.weather = "throttled";
    await clock.advance(1_001);
    expect(lostAt).toBe(10_000);
    store.weather = undefined;
    const two = candidate("two", { onElected: () => elected.push("two") });
    const campaign = two.campaign();
    await clock.advance(1_100);
    expect(elected).toEqual(["two"]);
    expect((await campaign).held).toBe(true);
    await two.resign();
  });

  it("a leader that was asked to stop lets its key go before it stands again", async () => {
    const one = candidate("one");
    const leadership = await one.campaign();
    await adminOf(clientOf("operator")).requestRevocation("k", { token: leadership.token });
    await clock.advance(4_000);
    expect(leadership.signal.reason).toMatchObject({ reason: "revoked" });
    const again = await one.campaign();
    expect(again.fencingToken).toBe(leadership.fencingToken + 1);
    await one.resign();
  });

  it("a resignation that the service does not confirm can be repeated", async () => {
    const one = candidate("one");
    await one.campaign();
    store.next("throttled");
    await expect(one.resign()).rejects.toMatchObject({ code: "LEASE_THROTTLED" });
    expect(one.leadership).toBeUndefined();
    expect(await one.resign()).toBe(true);
    expect(await one.current()).toBeUndefined();
  });

  it("a dead leader is nobody to an observer, once clocks cannot explain it any more", async () => {
    const dead = new LeaseClient({ store, clock: new ManualClock(), owner: "dead", leaseDurationMs: 10_000 });
    await new Leader(dead, "k").campaign();
    const observer = candidate("observer");
    await clock.advance(11_000);
    expect(await observer.current()).toMatchObject({ owner: "dead" });
    await clock.advance(1);
    expect(await observer.current()).toBeUndefined();
  });

  it("an observer that was frozen until ttl had removed a dead leader hears that nobody leads", async () => {
    const dead = new LeaseClient({ store, clock: new ManualClock(), owner: "dead", leaseDurationMs: 10_000 });
    await new Leader(dead, "k").campaign();
    const observing = candidate("observer").observe();
    expect((await observing.next()).value).toMatchObject({ owner: "dead" });
    clock.freeze(30 * 24 * 3_600_000);
    expect(store.table.collectGarbage(clock.now())).toBe(1);
    const next = observing.next();
    await clock.advance(20_000);
    expect(await next).toEqual({ done: false, value: undefined });
    await observing.return();
  });

  it("an observer outlasts a service that fails", async () => {
    const failing = new (class extends ScriptedStore {
      isDown = true;
      override async get(...call: Parameters<ScriptedStore["get"]>) {
        if (this.isDown) await this.update({ ...probe, key: { pk: "x", sk: "x" } }, call[1]);
        return await super.get(...call);
      }
    })();
    failing.weather = "throttled";
    const observer = new Leader(new LeaseClient({ store: failing, clock }), "k");
    const seen = observer.observe().next();
    await clock.advance(20_000);
    failing.isDown = false;
    await clock.advance(20_000);
    expect(await seen).toEqual({ done: false, value: undefined });
  });
});

const probe = {
  update: "SET #a = :a",
  condition: ":a = :a",
  names: { "#a": "a" },
  values: { ":a": 1 },
  returnsItem: false,
};

describe("lead", () => {
  it("runs the work once at a time: a work that ignores its signal keeps its own candidate out", async () => {
    const one = candidate("one", { pauseMs: 0 });
    const stop = new AbortController();
    let runs = 0;
    let end = (): void => undefined;
    const leading = one.lead(
      () => {
        runs += 1;
        return new Promise<void>((resolve) => {
          end = resolve;
        });
      },
      { signal: stop.signal },
    );
    await settled();
    const token = one.leadership?.token ?? "";
    await adminOf(clientOf("operator")).forceRelease("k", { token });
    await clock.advance(30_000);
    expect(one.leadership).toBeUndefined();
    expect(runs).toBe(1);
    end();
    await clock.advance(100);
    expect(runs).toBe(2);
    stop.abort();
    end();
    await leading;
    expect(runs).toBe(2);
  });

  it.each<[number, string, (one: Leader) => unknown, LeaderOptions]>([
    [1_000, "its work has ended of itself", () => undefined, {}],
    [5_000, "its work has ended of itself", () => undefined, { pauseMs: 5_000 }],
    [5_000, "its work has resigned", (one) => one.resign(), { pauseMs: 5_000 }],
  ])("leaves the field to others for %i ms after %s", async (pauseMs, _, work, options) => {
    const stop = new AbortController();
    const startedAt: number[] = [];
    const one = candidate("one", options);
    const leading = one.lead(
      () => {
        startedAt.push(clock.monotonic());
        return work(one);
      },
      { signal: stop.signal },
    );
    await clock.advance(2.5 * pauseMs);
    expect(startedAt).toEqual([0, pauseMs, 2 * pauseMs]);
    stop.abort();
    await leading;
  });

  it.each<[string, number, (admin: LeaseAdmin, of: { readonly token: string }) => Promise<boolean>]>([
    ["at once where the leadership was lost", 2, (admin, of) => admin.forceRelease("k", of)],
    ["after a pause where it was asked to stop", 1, (admin, of) => admin.requestRevocation("k", of)],
  ])("stands again %s before its work had ended", async (_, expected, end) => {
    const stop = new AbortController();
    const one = candidate("one", { pauseMs: 60_000 });
    let runs = 0;
    const leading = one.lead(
      async (_, signal) => {
        runs += 1;
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
      { signal: stop.signal },
    );
    await settled();
    await end(adminOf(clientOf("operator")), { token: one.leadership?.token ?? "" });
    await clock.advance(10_000);
    expect(runs).toBe(expected);
    await clock.advance(60_000);
    expect(runs).toBe(2);
    stop.abort();
    await leading;
  });

  it("resigns and rejects when its work fails", async () => {
    const told: string[] = [];
    const one = candidate("one", { onResigned: () => told.push("resigned") });
    await expect(
      one.lead(() => {
        throw new Error("broken");
      }),
    ).rejects.toThrow("broken");
    expect(told).toEqual(["resigned"]);
    expect(await one.current()).toBeUndefined();
  });

  it("does not hide an error of the work's own that came after its signal", async () => {
    const one = candidate("one");
    const stop = new AbortController();
    const leading = one.lead(
      async (_, signal) => {
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        throw new Error("could not clean up");
      },
      { signal: stop.signal },
    );
    const outcome = expect(leading).rejects.toThrow("could not clean up");
    await settled();
    stop.abort();
    await outcome;
  });

  it("ends at once with a signal that has aborted before, and sends nothing", async () => {
    await candidate("one").lead(() => undefined, { signal: AbortSignal.abort() });
    expect(store.calls).toEqual([]);
  });
});

describe("bad input", () => {
  const refused: [string, object][] = [
    ["an option that nobody knows", { waitMs: 5 }],
    ["no heartbeat", { heartbeat: false }],
    ["a heartbeat of more than half the lease", { heartbeat: 6_000 }],
    ["a callback that is no function", { onLost: "log" }],
    ["a negative pause", { pauseMs: -1 }],
    ["an unknown rhythm", { retry: { strategy: "often" } }],
    ["a payload that JSON changes", { data: new Map() }],
  ];

  it.each(refused)("%s is refused by the constructor", (_, options) => {
    expect(() => candidate("one", options)).toThrow(InvalidOptionsError);
  });

  it("a lease shorter than clocks may differ is refused by the constructor", () => {
    const client = new LeaseClient({ store, clock, owner: "one", clockSkewMs: 1_000 });
    expect(() => new Leader(client, "k", { leaseDurationMs: 999 })).toThrow(
      expect.objectContaining({ option: "leaseDurationMs" }),
    );
  });

  it("two campaigns of one candidate at a time are refused", async () => {
    await candidate("other").campaign();
    const one = candidate("one");
    const stop = new AbortController();
    const first = one.campaign({ signal: stop.signal });
    const outcome = expect(first).rejects.toThrow();
    await expect(one.campaign()).rejects.toBeInstanceOf(InvalidOptionsError);
    await expect(one.lead(() => undefined)).rejects.toBeInstanceOf(InvalidOptionsError);
    stop.abort();
    await outcome;
  });

  it("a rhythm of observation that is no time is refused", () => {
    expect(() => candidate("one").observe({ everyMs: 0 })).toThrow(InvalidOptionsError);
  });
});
