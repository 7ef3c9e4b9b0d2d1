import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { LeaseClient, type LeaseEvent } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import fc from "fast-check";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { isWithinAllowance, offsetFromDate } from "../../packages/client/src/time/skew.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

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
  const [a, b] = ["a", "b"].map(
    (owner) => new LeaseClient({ store, clock, owner, leaseDurationMs: 5_000, onEvent }),
  );

  const lease = await a?.acquire("k");
  await b?.tryAcquire("k");
  await lease?.renew();
  await clock.advance(6_001);
  store.offset = { minMs: 9_000, maxMs: 10_000 };
  await b?.tryAcquire("k");
  store.offset = { minMs: 0, maxMs: 0 };
  await (await b?.acquire("k"))?.release();

  expect(heard).toEqual(told);
  expect(new Set(heard.map((event) => event.type))).toEqual(new Set(types));
});

it("no event carries a token or a payload", async () => {
  const told: LeaseEvent[] = [];
  const client = new LeaseClient({
    store,
    clock,
    leaseDurationMs: 5_000,
    onEvent: (event) => told.push(event),
  });
  const lease = await client.acquire("k", { data: { password: "hunter2" } });
  await clock.advance(6_001);
  const next = await client.acquire("k");
  await next.release();
  const text = JSON.stringify(told);
  for (const secret of [lease.token, next.token, "hunter2"]) expect(text).not.toContain(secret);
});

it("acquired says how long the caller waited, and released for how long the lock was held", async () => {
  const told: LeaseEvent[] = [];
  const onEvent = (event: LeaseEvent): void => void told.push(event);
  const randomness = { token: () => crypto.randomUUID(), fraction: () => 0.5 };
  const holder = await new LeaseClient({ store, clock }).acquire("k");
  const waiting = new LeaseClient({ store, clock, onEvent, randomness }).acquire("k", {
    waitMs: 20_000,
    retry: { strategy: "fixed", delayMs: 500 },
  });
  await clock.advance(1_200);
  await holder.release();
  await clock.advance(300);
  const lease = await waiting;
  await clock.advance(2_500);
  await lease.release();
  expect(told).toMatchObject([
    { type: "contended" },
    { type: "acquired", waitedMs: 1_500 },
    { type: "released", heldMs: 2_500, confirmed: true },
  ]);
});

it("a listener that throws does not disturb the lease", async () => {
  const thrown = new Promise((resolve) => {
    const listeners = process.listeners("uncaughtException");
    process.removeAllListeners("uncaughtException");
    process.once("uncaughtException", (error) => {
      for (const listener of listeners) process.on("uncaughtException", listener);
      resolve(error);
    });
  });
  const failing = new Error("the listener failed");
  let isFirst = true;
  const onEvent = (): void => {
    if (!isFirst) return;
    isFirst = false;
    throw failing;
  };
  const lease = await new LeaseClient({ store, clock, onEvent }).acquire("k");
  expect(lease.held).toBe(true);
  expect(await thrown).toBe(failing);
});

describe("skew", () => {
  it("is reported once a minute while it lasts, and not below the allowance", async () => {
    const told: LeaseEvent[] = [];
    const client = new LeaseClient({ store, clock, clockSkewMs: 500, onEvent: (event) => told.push(event) });
    const skews = (): number => told.filter((event) => event.type === "skew").length;
    store.offset = { minMs: 500, maxMs: 1_500 };
    await client.tryAcquire("k1");
    expect(skews()).toBe(0);
    store.offset = { minMs: 501, maxMs: 1_500 };
    await client.tryAcquire("k2");
    await client.tryAcquire("k3");
    expect(skews()).toBe(1);
    expect(told.find((event) => event.type === "skew")).toEqual({
      type: "skew",
      offsetMinMs: 501,
      offsetMaxMs: 1_500,
      clockSkewMs: 500,
    });
    await clock.advance(60_000);
    await client.tryAcquire("k4");
    expect(skews()).toBe(2);
  });

  it("as measured from a Date header always contains the truth", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: -5_000_000, max: 5_000_000 }),
        fc.nat(5_000),
        fc.nat(5_000),
        fc.nat(10_000_000),
        (truth, thereMs, backMs, sentAt) => {
          const servedAt = sentAt + thereMs + truth + 1_700_000_000_000;
          const received = sentAt + thereMs + backMs + 1_700_000_000_000;
          const offset = offsetFromDate(
            new Date(servedAt).toUTCString(),
            sentAt + 1_700_000_000_000,
            received,
          );
          expect(offset?.minMs).toBeLessThanOrEqual(truth);
          expect(offset?.maxMs).toBeGreaterThanOrEqual(truth);
        },
      ),
    );
  });

  it("is not known without a header, or with one that cannot be read", () => {
    expect(offsetFromDate(undefined, 0, 1)).toBeUndefined();
    expect(offsetFromDate("yesterday", 0, 1)).toBeUndefined();
    expect(isWithinAllowance(undefined, Number.POSITIVE_INFINITY)).toBe(false);
  });
});
