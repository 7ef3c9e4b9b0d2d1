import {
  LeaseClient,
  type LeaseClientOptions,
  type LeaseEvent,
  LeaseUnavailableError,
} from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import {
  acquireAll,
  GroupUnavailableError,
  type LeaseGroup,
} from "../../packages/client/src/entries/group.ts";
import { adminOf } from "../support/admin.ts";
import { eventually } from "../support/patience.ts";
import { PatientClock } from "../support/patient-clock.ts";
import { watchedMs } from "../support/watching.ts";
import type { Place } from "./lease-contract.ts";
import { newKey } from "./new-key.ts";

const leaseDurationMs = 300;
const clockSkewMs = 100;
const pastLease = leaseDurationMs + clockSkewMs + 1;

/**
 * What holds of groups wherever leases are kept; run for memory and for an engine.
 *
 * The place is told the clock of each test: its service has to tell the same time, as it vouches for clocks.
 */
export function groupContract(place: (clock: PatientClock) => Place): void {
  let clock: PatientClock;
  let events: LeaseEvent[];
  let a: string;
  let b: string;
  let c: string;

  const clientOf = (owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient =>
    new LeaseClient({
      ...place(clock),
      clock,
      owner,
      leaseDurationMs,
      clockSkewMs,
      onEvent: (event) => events.push(event),
      ...options,
    });
  const refusalOf = (acquiring: Promise<LeaseGroup>): Promise<unknown> => acquiring.catch((error) => error);
  /** Lets timers fire and answers arrive until something has come. */
  const until = async <T>(coming: Promise<T>): Promise<T> => {
    let isThere = false;
    const seen = coming.finally(() => {
      isThere = true;
    });
    await eventually(async () => {
      await clock.advance(5);
      expect(isThere).toBe(true);
    });
    return await seen;
  };

  beforeEach(() => {
    clock = new PatientClock(Date.now());
    const key = newKey("group");
    [a, b, c] = [`${key}/a`, `${key}/b`, `${key}/c`];
    events = [];
  });

  describe("acquireAll", () => {
    it("gives one lease of each key, all with one token and one fencing token", async () => {
      const group = await acquireAll(clientOf("g"), [b, a], { data: { job: 1 } });
      expect(group).toMatchObject({ keys: [b, a], owner: "g", held: true });
      expect(group.remainingMs()).toBe(leaseDurationMs);
      for (const key of [a, b]) {
        const lease = group.leases.get(key);
        expect(lease).toMatchObject({
          key,
          token: group.token,
          fencingToken: group.fencingToken,
          data: { job: 1 },
        });
        expect(await clientOf("x").inspect(key)).toMatchObject({
          owner: "g",
          token: group.token,
          fencingToken: group.fencingToken,
          expiresAt: group.expiresAt,
          data: { job: 1 },
        });
      }
      // That these leases are short for a network is told besides.
      const ofLeases = events.filter(({ type }) => type !== "shortLease");
      expect(ofLeases.map(({ type }) => type)).toEqual(["acquired", "acquired"]);
    });

    it("holds nothing when one of the keys is another's, and says which, whose and until when", async () => {
      const held = await clientOf("other").acquire(b);
      const refusal = await refusalOf(acquireAll(clientOf("g"), [a, b, c]));
      expect(refusal).toBeInstanceOf(GroupUnavailableError);
      expect(refusal).toBeInstanceOf(LeaseUnavailableError);
      expect(refusal).toMatchObject({
        code: "LEASE_UNAVAILABLE",
        keys: [a, b, c],
        key: b,
        held: [{ key: b, holder: "other", expiresAt: held.expiresAt, inCooldown: false }],
        message: expect.stringMatching(/^the lock /),
      });
      expect((refusal as GroupUnavailableError).retryAfterMs).toBeGreaterThan(0);
      expect(await clientOf("x").inspect(a)).toBeUndefined();
      expect(await clientOf("x").inspect(c)).toBeUndefined();
      expect(held.held).toBe(true);
    });

    it("names every key that is in the way, in the order that was asked for", async () => {
      await clientOf("one").acquire(c);
      await clientOf("two").acquire(a);
      const refusal = await refusalOf(acquireAll(clientOf("g"), [a, b, c]));
      expect((refusal as GroupUnavailableError).held.map(({ key, holder }) => [key, holder])).toEqual([
        [a, "two"],
        [c, "one"],
      ]);
      expect(String(refusal)).toContain("2 of the 3 locks are not to be had; the lock ");
    });

    it("takes over what dead holders left, beside what is free, once the allowance for skew is over", async () => {
      const dead = await clientOf("dead").acquire(b);
      await clock.advance(leaseDurationMs + clockSkewMs);
      expect(await refusalOf(acquireAll(clientOf("g"), [a, b]))).toBeInstanceOf(GroupUnavailableError);
      await clock.advance(1);
      const group = await acquireAll(clientOf("h"), [a, b]);
      expect(group.fencingToken).toBeGreaterThan(dead.fencingToken);
      expect(events.filter(({ type }) => type === "takeover")).toMatchObject([
        { key: b, reason: "serviceClock", from: { owner: "dead", fencingToken: dead.fencingToken } },
      ]);
      await dead.renew().catch(() => undefined);
      expect(await dead.release()).toBe(false);
      expect(group.held).toBe(true);
    });

    it("takes a dead group over from another, and the dead group's late release touches nothing", async () => {
      const dead = await acquireAll(clientOf("dead"), [a, b, c]);
      await clock.advance(pastLease);
      const group = await acquireAll(clientOf("g"), [c, a]);
      expect(await dead.release()).toBe(false);
      expect(await clientOf("x").inspect(a)).toMatchObject({ token: group.token });
      expect(await clientOf("x").inspect(b)).toBeUndefined();
    });

    it("watches a dead holder where clocks are not to be compared", async () => {
      await clientOf("dead").acquire(a);
      const watcher = clientOf("g", { clockSkewMs: Number.POSITIVE_INFINITY });
      expect(await refusalOf(acquireAll(watcher, [a, b]))).toBeInstanceOf(GroupUnavailableError);
      await clock.advance(watchedMs(leaseDurationMs));
      expect((await acquireAll(watcher, [a, b])).held).toBe(true);
      expect(events.find(({ type }) => type === "takeover")).toMatchObject({ reason: "observation" });
    });

    it("has a larger fencing token than every earlier holder, whatever their clocks said", async () => {
      const ahead = await clientOf("ahead", { clock: new ManualClock(clock.now() + 3_600_000) }).acquire(a);
      await ahead.release();
      const group = await acquireAll(clientOf("g"), [a, b]);
      expect(group.fencingToken).toBe(ahead.fencingToken + 1);
      await group.release();
      const single = await clientOf("s").acquire(b);
      expect(single.fencingToken).toBe(group.fencingToken + 1);
    });

    it("waits, holding nothing, until all keys are free", async () => {
      const first = await clientOf("one", { leaseDurationMs: 60_000 }).acquire(a);
      const second = await clientOf("two", { leaseDurationMs: 60_000 }).acquire(c);
      const waiting = acquireAll(clientOf("g"), [a, b, c], { waitMs: 30_000 });
      await eventually(() => expect(events.map(({ type }) => type)).toContain("contended"));
      await first.release();
      await clock.advance(1_000);
      const meanwhile = await clientOf("m").acquire(a);
      await meanwhile.release();
      await second.release();
      const group = await until(waiting);
      expect(group.keys).toEqual([a, b, c]);
      expect(await clientOf("x").inspect(b)).toMatchObject({ owner: "g" });
    });
  });

  describe("a group", () => {
    it("renews all of its leases", async () => {
      const group = await acquireAll(clientOf("g"), [a, b]);
      await clock.advance(200);
      await group.renew();
      expect(group.remainingMs()).toBe(leaseDurationMs);
      expect(await clientOf("x").inspect(b)).toMatchObject({ expiresAt: clock.now() + leaseDurationMs });
    });

    it("keeps all of its leases by its heartbeat", async () => {
      const client = clientOf("g", { leaseDurationMs: 900 });
      const group = await acquireAll(client, [a, b, c], { heartbeat: true });
      for (let passedMs = 0; passedMs < 2_000; passedMs += 20) {
        await clock.advance(20);
      }
      expect(group.held).toBe(true);
      expect(await refusalOf(acquireAll(clientOf("x"), [c]))).toBeInstanceOf(GroupUnavailableError);
      await group.release();
    });

    it("lets all of its locks go, and they can be had at once", async () => {
      const group = await acquireAll(clientOf("g"), [a, b]);
      expect(await group.release()).toBe(true);
      expect(await group.release()).toBe(true);
      expect(group.held).toBe(false);
      expect(group.signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "released" });
      expect((await acquireAll(clientOf("h"), [b, a])).fencingToken).toBeGreaterThan(group.fencingToken);
    });

    it("that loses one key tells so at once, and lets the others go all the same", async () => {
      const group = await acquireAll(clientOf("g"), [a, b, c]);
      await adminOf(clientOf("operator")).forceRelease(b, { token: group.token });
      const taker = await clientOf("taker").acquire(b);
      await expect(group.renew()).rejects.toMatchObject({ code: "LEASE_LOST", key: b, reason: "taken" });
      expect(group.held).toBe(false);
      expect(group.signal.reason).toMatchObject({ key: b, reason: "taken" });
      // The others were renewed with it, and stay closed to everybody until the release.
      expect(await clientOf("x").tryAcquire(a)).toBeUndefined();
      expect(await group.release()).toBe(false);
      expect(await clientOf("x").inspect(a)).toBeUndefined();
      expect(await clientOf("x").inspect(c)).toBeUndefined();
      expect(await clientOf("x").inspect(b)).toMatchObject({ token: taker.token });
    });

    it("stays closed after an early release, where it was asked to", async () => {
      const group = await acquireAll(clientOf("g"), [a, b], { lockAtLeastForMs: 200 });
      await group.release();
      const refusal = await refusalOf(acquireAll(clientOf("h"), [a, b]));
      expect(refusal).toMatchObject({
        held: [
          { key: a, inCooldown: true },
          { key: b, inCooldown: true },
        ],
      });
      await clock.advance(200 + clockSkewMs + 1);
      expect((await acquireAll(clientOf("h"), [a, b])).held).toBe(true);
      // A cooldown has no holder.
      expect(events.map(({ type }) => type)).not.toContain("takeover");
    });
  });
}
