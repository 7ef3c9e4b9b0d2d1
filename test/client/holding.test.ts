import {
  type Lease,
  LeaseClient,
  type LeaseEvent,
  LeaseLostError,
  LeaseServiceError,
} from "@leasehold/client";
import { leaseItemKey } from "@leasehold/client/schema";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { adminOf } from "../support/admin.ts";
import { put } from "../support/foreign-items.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

let clock: ManualClock;
let store: ScriptedStore;
let events: LeaseEvent[];
let client: LeaseClient;

const leaseDurationMs = 9_000;
const typeCount = (type: LeaseEvent["type"]): number => events.filter((event) => event.type === type).length;

beforeEach(() => {
  clock = new ManualClock();
  store = new ScriptedStore();
  events = [];
  const randomness = { token: () => "token-a", fraction: () => 0 };
  client = new LeaseClient({
    store,
    clock,
    owner: "a",
    leaseDurationMs,
    randomness,
    onEvent: (event) => events.push(event),
  });
});

describe("the holder's deadline", () => {
  it("aborts the signal with its reason, with nobody asking", async () => {
    const lease = await client.acquire("k");
    const { signal } = lease;
    await clock.advance(leaseDurationMs - 1);
    expect(signal.aborted).toBe(false);
    await clock.advance(1);
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toBeInstanceOf(LeaseLostError);
    expect(signal.reason).toMatchObject({ code: "LEASE_LOST", key: "k", reason: "expired" });
    expect(events.at(-1)).toMatchObject({ type: "lost", reason: "expired", heldMs: leaseDurationMs });
  });

  it.each<[string, (lease: Lease) => boolean]>([
    ["held", ({ held }) => !held],
    ["remainingMs()", (lease) => lease.remainingMs() === 0],
    ["signal", ({ signal }) => signal.aborted],
  ])("is noticed at once by who reads %s after a freeze, before any timer has fired", async (_, hasEnded) => {
    const lease = await client.acquire("k", { heartbeat: true });
    const { signal } = lease;
    clock.freeze(leaseDurationMs);
    expect(signal.aborted).toBe(false);
    expect(hasEnded(lease)).toBe(true);
    expect(signal.aborted).toBe(true);
    await expect(lease.renew()).rejects.toMatchObject({ reason: "expired" });
    // The acquisition alone: what is known to be lost is not asked for.
    expect(store.count("update")).toBe(1);
  });

  it("of a lease longer than any timer is kept all the same", async () => {
    const days = 24 * 60 * 60 * 1000;
    const lease = await client.acquire("k", { leaseDurationMs: 60 * days });
    await clock.advance(30 * days);
    expect(lease.held).toBe(true);
    await clock.advance(30 * days);
    expect(lease.signal.aborted).toBe(true);
  });

  it("has one timer, which does not keep the process alive, however often the lease is renewed; nor does its heartbeat's", async () => {
    const lease = await client.acquire("k");
    const schedule = vi.spyOn(clock, "schedule");
    for (let count = 0; count < 3; count += 1) await lease.renew();
    expect(clock.pending).toBe(1);
    const calls: readonly (readonly unknown[])[] = schedule.mock.calls;
    const lasting = calls.filter(([, delayMs]) => delayMs === leaseDurationMs);
    expect(lasting.map(([, , options]) => options)).toEqual(Array(3).fill({ background: true }));
    lease.keepAlive(2_000);
    expect(calls.at(-1)).toEqual([expect.any(Function), 2_000, { background: true }]);
  });
});

describe("the end of a lease", () => {
  const breakIt = async (): Promise<Lease> => {
    const lease = await client.acquire("k");
    await adminOf(client).forceRelease("k", { token: lease.token });
    await new LeaseClient({ store, clock, owner: "b" }).acquire("k");
    return lease;
  };

  it("comes once, with one error for all who ask, whatever comes later", async () => {
    const lease = await breakIt();
    const error = await lease.renew().catch((reason: unknown) => reason);
    expect(error).toMatchObject({ key: "k", reason: "taken" });
    expect(await lease.renew().catch((reason: unknown) => reason)).toBe(error);
    expect(lease.signal.reason).toBe(error);
    expect(await lease.release()).toBe(false);
    await clock.advance(leaseDurationMs);
    expect(lease.signal.reason).toBe(error);
    expect(typeCount("lost")).toBe(1);
  });

  it("is known to the client before its signal aborts, which is one for all who read it", async () => {
    const lease = await breakIt();
    const { signal } = lease;
    expect(lease.signal).toBe(signal);
    const known: unknown[] = [];
    signal.addEventListener("abort", () => known.push(client.held(), typeCount("lost")));
    await lease.renew().catch(() => undefined);
    expect(known).toEqual([[], 1]);
    expect(lease.signal).toBe(signal);
  });
});

describe("the heartbeat", () => {
  it("renews every third of the lease by default", async () => {
    await client.acquire("k", { heartbeat: true });
    await clock.advance(9_000);
    expect(typeCount("renewed")).toBe(3);
  });

  it.each([
    ["after a fifth of the time that is left", 0, [1_000, 2_600, 3_880]],
    ["up to a tenth sooner", 1, [900, 2_358, 3_554]],
  ])("repeats a failed renewal %s", async (_, fraction, times) => {
    const randomness = { token: () => "token-a", fraction: () => fraction };
    const own = new LeaseClient({ store, clock, leaseDurationMs, randomness });
    await own.acquire("k", { heartbeat: 1_000 });
    const seen: number[] = [];
    store.update = async () => {
      seen.push(clock.monotonic());
      throw new LeaseServiceError("LEASE_THROTTLED", "no");
    };
    await clock.advance(4_000);
    expect(seen).toEqual(times);
  });

  it("stops when the lease is lost, revoked or released", async () => {
    const lease = await client.acquire("k", { heartbeat: true });
    await adminOf(client).requestRevocation("k", { token: lease.token });
    await clock.advance(3_000);
    expect(lease.signal.reason).toMatchObject({ reason: "revoked" });
    const sent = store.count("update");
    expect(clock.pending).toBe(0);
    await clock.advance(60_000);
    expect(store.count("update")).toBe(sent);
  });
});

describe("release", () => {
  it("waits for a renewal that is under way, and is sent only after it", async () => {
    const lease = await client.acquire("k");
    const update = store.update.bind(store);
    const order: string[] = [];
    let letGo: () => void = () => undefined;
    store.update = async (request, options) => {
      order.push(`sent ${order.length}`);
      if (order.length === 1) await new Promise<void>((resolve) => (letGo = resolve));
      const result = await update(request, options);
      order.push("answered");
      return result;
    };
    const renewing = lease.renew().catch(() => undefined);
    const releasing = lease.release();
    await clock.advance(500);
    expect(order).toEqual(["sent 0"]);
    letGo();
    expect(await releasing).toBe(true);
    await renewing;
    expect(order).toEqual(["sent 0", "answered", "sent 2", "answered"]);
  });

  it("cuts a renewal off that hangs for longer than a second", async () => {
    const lease = await client.acquire("k");
    store.next("hangs");
    const renewing = expect(lease.renew()).rejects.toThrow();
    const releasing = lease.release();
    await clock.advance(1_000);
    expect(await releasing).toBe(true);
    await renewing;
    expect(await client.inspect("k")).toBeUndefined();
  });

  it("costs nothing where the lock is known to be another's", async () => {
    const lease = await client.acquire("k");
    await adminOf(client).forceRelease("k", { token: lease.token });
    await expect(lease.renew()).rejects.toMatchObject({ reason: "released" });
    const sent = store.calls.length;
    expect(await lease.release()).toBe(false);
    expect(store.calls.length).toBe(sent);
    expect(events.at(-1)).toMatchObject({ type: "released", confirmed: false });
  });
});

describe("a renewal that finds the lock without its token says why:", () => {
  const other = () => new LeaseClient({ store, clock, owner: "b" });
  const breakIt = ({ token }: Lease) => adminOf(client).forceRelease("k", { token });

  it.each<[LeaseLostError["reason"], string, (lease: Lease) => unknown]>([
    ["taken", "while another holds it", () => other().acquire("k")],
    ["taken", "when another has held it and let it go", async () => (await other().acquire("k")).release()],
    [
      "taken",
      "when its own token has come back with another fencing token",
      (lease) => {
        const { pk, sk, ...item } = store.table.peek(leaseItemKey("k")) ?? {};
        put(store.table, "k", "lease", { ...item, fence: lease.fencingToken + 1 });
      },
    ],
    ["released", "when it was let go by force", breakIt],
    ["expired", "when ttl has removed the item", () => store.table.collectGarbage(clock.now() + 1e9)],
  ])("%s, %s", async (reason, _, happen) => {
    const lease = await client.acquire("k");
    clock.freeze(leaseDurationMs + 1_001);
    const adopted = client.adopt(lease.toJSON());
    await happen(lease);
    await expect(adopted.renew()).rejects.toMatchObject({ reason });
  });

  it("released, when it was let go early and the lock is still closed, and names the holder", async () => {
    const lease = await client.acquire("k", { lockAtLeastForMs: leaseDurationMs });
    await client.adopt(lease.toJSON()).release();
    await expect(lease.renew()).rejects.toMatchObject({
      reason: "released",
      message: expect.stringContaining('held by "a"'),
    });
  });
});

it("a renewal that is confirmed after the deadline revives nothing", async () => {
  const lease = await client.acquire("k");
  const update = store.update.bind(store);
  store.update = async (request, options) => {
    const result = await update(request, options);
    clock.freeze(leaseDurationMs);
    return result;
  };
  await expect(lease.renew()).rejects.toMatchObject({ reason: "expired" });
  expect(lease.held).toBe(false);
  expect(events.map((event) => event.type)).toEqual(["acquired", "lost"]);
});

it("renewals at the same time share one request", async () => {
  const lease = await client.acquire("k");
  await Promise.all([lease.renew(), lease.renew(), lease.renew()]);
  expect(store.count("update")).toBe(2);
  await lease.renew();
  expect(store.count("update")).toBe(3);
});

it("an adopted lease with a heartbeat is renewed at once when little of it is left", async () => {
  const handle = (await client.acquire("k")).toJSON();
  await clock.advance(7_000);
  const adopted = client.adopt(handle, { heartbeat: true });
  expect(adopted.expiresAt).toBe(handle.expiresAt);
  // Of the 2 s that are left, 1 s is for clocks that differ, until a renewal is confirmed.
  expect(adopted.remainingMs()).toBe(1_000);
  await clock.advance(600);
  expect(adopted.remainingMs()).toBeGreaterThan(8_000);
});
