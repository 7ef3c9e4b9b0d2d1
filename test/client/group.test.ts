import {
  type AcquireOptions,
  InvalidOptionsError,
  LeaseClient,
  type LeaseClientOptions,
  type LeaseEvent,
  LeaseServiceError,
} from "@leasehold/client";
import { ManualClock, settled } from "@leasehold/client/testing";
import { together } from "@leasehold/client/together";
import { beforeEach, describe, expect, it } from "vitest";
import { acquireAll, type GroupOptions } from "../../packages/client/src/entries/group.ts";
import { adminOf } from "../support/admin.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

describe("the requests of a group", () => {
  const keys = Array.from({ length: 10 }, (_, index) => `key-${index}`);
  let clock: ManualClock;
  let scripted: ScriptedStore;

  const clientOf = (owner: string, options: Partial<LeaseClientOptions> = {}): LeaseClient =>
    new LeaseClient({ store: scripted, clock, owner, leaseDurationMs: 10_000, ...options });
  const counts = (): Record<string, number> => {
    const found: Record<string, number> = {};
    for (const { method } of scripted.calls) found[method] = (found[method] ?? 0) + 1;
    return found;
  };

  beforeEach(() => {
    clock = new ManualClock();
    scripted = new ScriptedStore();
  });

  it("of 10 free keys: 1 to acquire them, 1 to renew them, 1 each to release them", async () => {
    const group = await acquireAll(clientOf("g"), keys);
    expect(counts()).toEqual({ transact: 1 });
    await clock.advance(10);
    await group.renew();
    expect(counts()).toEqual({ transact: 1, updateMany: 1 });
    await group.release();
    expect(counts()).toEqual({ transact: 1, updateMany: 1, update: 10 });
    await clock.advance(10);
    await acquireAll(clientOf("h"), keys);
    expect(counts()).toMatchObject({ transact: 2 });
  });

  it("that waits for 3 of 10: 1 read for each look, and 1 transaction when nothing is in the way any more", async () => {
    const holders = [];
    for (const key of ["key-2", "key-4", "key-6"]) {
      holders.push(await clientOf(key).acquire(key, { leaseDurationMs: 600_000 }));
    }
    scripted.calls.length = 0;
    const waiting = acquireAll(clientOf("g"), keys, {
      waitMs: 500_000,
      retry: { strategy: "fixed", delayMs: 1_000 },
    });
    await clock.advance(10_500);
    expect(counts()).toEqual({ transact: 1, get: 10 });
    for (const holder of holders) await holder.release();
    scripted.calls.length = 0;
    await clock.advance(1_000);
    expect((await waiting).held).toBe(true);
    expect(counts()).toEqual({ get: 3, transact: 1 });
    expect(
      scripted.calls.filter(({ method }) => method === "get").every(({ consistent }) => !consistent),
    ).toBe(true);
  });

  it("by a heartbeat that shares requests: 1 for all of them each time", async () => {
    const group = await acquireAll(clientOf("g", { renewals: together() }), keys, { heartbeat: 3_000 });
    scripted.calls.length = 0;
    await clock.advance(30_000);
    expect(group.held).toBe(true);
    expect(counts().update).toBeUndefined();
    expect(scripted.count("updateMany")).toBeGreaterThanOrEqual(9);
    expect(scripted.count("updateMany")).toBeLessThanOrEqual(12);
    for (const { requests } of scripted.calls) expect(requests).toHaveLength(10);
    await group.release();
    expect(clock.pending).toBe(0);
  });

  describe("at their worst moments", () => {
    it("an answer that is lost: whoever waits recognises the own leases, and holds them whole from then on", async () => {
      scripted.next("answer lost");
      const waiting = acquireAll(clientOf("g"), keys, { waitMs: 60_000 });
      await clock.advance(1_000);
      const group = await waiting;
      expect(group.held).toBe(true);
      // One that was lost, one that shows the own leases, and one that takes them over; nothing is taken back.
      expect(counts()).toEqual({ transact: 3 });
      for (const key of keys) {
        expect(await clientOf("x").inspect(key)).toMatchObject({
          token: group.token,
          expiresAt: group.expiresAt,
          fencingToken: group.fencingToken,
        });
      }
      expect(await group.release()).toBe(true);
    });

    it("a request that is lost: its late arrival is refused, and taking it back costs 1 write", async () => {
      scripted.next("request lost");
      await expect(acquireAll(clientOf("g"), keys)).rejects.toMatchObject({ code: "LEASE_NO_ANSWER" });
      await settled();
      expect(counts()).toEqual({ transact: 1, update: 1 });
      const late = scripted.calls[0]?.entries ?? [];
      expect(late).toHaveLength(10);
      expect(scripted.table.transactNow(late).applied).toBe(false);
    });

    const breakUp = async (): Promise<void> => {
      const mine = await clientOf("operator").inspect("b");
      await adminOf(clientOf("operator")).forceRelease("b", { token: mine?.token ?? "" });
    };
    it.each([
      ["an operator broke up", breakUp, () => clock],
      [
        "a caller took a part of whose clock is ahead",
        () => undefined,
        () => new ManualClock(clock.now() + 3_600_000),
      ],
    ])(
      "an own transaction that landed unknown, and that %s: the rest is let go before it waits",
      async (_, happen, clockOfOther) => {
        scripted.next("answer lost");
        const waiting = acquireAll(clientOf("g"), ["a", "b"], { waitMs: 60_000 });
        await settled();
        await happen();
        const ahead = clientOf("other", { clock: clockOfOther() });
        const other = await ahead.acquire("b", { leaseDurationMs: 30_000 });
        await clock.advance(1_000);
        // The group waits for b: it must not keep a from others meanwhile.
        const passer = await clientOf("passer").tryAcquire("a");
        expect(passer?.held).toBe(true);
        await passer?.release();
        // At its grant: after as long as a lease lasts, one that was granted at once is over.
        const held = waiting.then((group) => group.held);
        await other.release();
        await clock.advance(10_000);
        expect(await held).toBe(true);
      },
    );

    it("an own transaction that landed unknown, and that an operator broke up: it is acquired anew", async () => {
      scripted.next("answer lost");
      const waiting = acquireAll(clientOf("g"), ["a", "b"], { waitMs: 5_000 });
      await settled();
      await breakUp();
      await clock.advance(5_000);
      const group = await waiting;
      expect(group.held).toBe(true);
      for (const key of group.keys) {
        expect(await clientOf("x").inspect(key)).toMatchObject({ token: group.token });
      }
    });

    it("a process that is frozen past its leases: its signal has aborted when it looks", async () => {
      const group = await acquireAll(clientOf("g"), keys, { heartbeat: true });
      clock.freeze(10_001);
      expect(group.signal.aborted).toBe(true);
      expect(group.held).toBe(false);
      expect(group.signal.reason).toMatchObject({ code: "LEASE_LOST", reason: "expired" });
    });

    it("answers that take longer than the leases: an error that says so, and nothing stays held", async () => {
      const slow = new (class extends ScriptedStore {
        override async transact(...call: Parameters<ScriptedStore["transact"]>) {
          const result = await super.transact(...call);
          clock.freeze(600);
          return result;
        }
      })();
      const client = clientOf("g", { store: slow, leaseDurationMs: 500 });
      await expect(acquireAll(client, ["a", "b"])).rejects.toMatchObject({
        code: "LEASE_NO_ANSWER",
        message: expect.stringContaining("lengthen leaseDurationMs"),
      });
      await settled();
      expect(await client.inspect("a")).toBeUndefined();
      expect(await client.inspect("b")).toBeUndefined();
    });

    it("a refusal whose earlier copy is still under way: that copy finds its token revoked", async () => {
      const resent = new (class extends ScriptedStore {
        override async transact(...call: Parameters<ScriptedStore["transact"]>) {
          return { ...(await super.transact(...call)), retried: true };
        }
      })();
      const client = clientOf("g", { store: resent });
      const held = await client.acquire("b");
      await clock.advance(10);
      await expect(acquireAll(client, ["a", "b"])).rejects.toMatchObject({ held: [{ key: "b" }] });
      await settled();
      const copy = resent.calls.find(({ method }) => method === "transact")?.entries ?? [];
      await held.release();
      expect(copy).toHaveLength(2);
      expect(resent.table.transactNow(copy).applied).toBe(false);
    });

    it("a renewal that finds one key taken while another is throttled speaks of the loss", async () => {
      const group = await acquireAll(clientOf("g"), ["a", "b"]);
      await adminOf(clientOf("operator")).forceRelease("b", { token: group.token });
      await clock.advance(10);
      scripted.updateMany = async () => [new LeaseServiceError("LEASE_THROTTLED", "too busy"), undefined];
      await expect(group.renew()).rejects.toMatchObject({ code: "LEASE_LOST", key: "b" });
    });
  });

  describe("of a reentrant owner", () => {
    const again = { owner: "o", reentrant: true };

    it("takes the leases over that it has elsewhere, as after a retry: 2 requests", async () => {
      const before = await acquireAll(clientOf("o"), ["key-0", "key-1"], again);
      scripted.calls.length = 0;
      const told: LeaseEvent[] = [];
      const elsewhere = clientOf("o", { onEvent: (event) => told.push(event) });
      const group = await acquireAll(elsewhere, ["key-0", "key-1", "key-2"], again);
      expect(counts()).toEqual({ transact: 2 });
      expect(told.filter(({ type }) => type === "takeover")).toMatchObject([
        { key: "key-0", reason: "sameOwner" },
        { key: "key-1", reason: "sameOwner" },
      ]);
      expect(group.fencingToken).toBeGreaterThan(before.fencingToken);
      await expect(before.renew()).rejects.toMatchObject({ reason: "taken" });
      expect(group.held).toBe(true);
    });
  });

  describe("bad input", () => {
    const many = (length: number): string[] => Array.from({ length }, (_, index) => String(index));
    const unreadable = new Proxy([], {
      get() {
        throw new Error("no");
      },
    });
    const refused: [string, string, unknown, object][] = [
      ["no key", "keys", [], {}],
      ["101 keys", "keys", many(101), {}],
      ["a key twice", "keys", ["a", "b", "a"], {}],
      ["a text in the place of the keys", "keys", "ab", {}],
      ["keys that cannot be read", "keys", unreadable, {}],
      ["an empty key", "key", ["a", ""], {}],
      ["a key that is no text", "key", ["a", 7], {}],
      ["an option that nobody knows", "options.wait", ["a"], { wait: 1 }],
      ["a reentrance that is no yes or no", "reentrant", ["a"], { reentrant: 1 }],
      ["a group with a slot", "slot", ["a"], { slot: "1" }],
      ["endless patience", "waitMs", ["a"], { waitMs: Number.POSITIVE_INFINITY }],
      ["a payload that JSON changes", "data", ["a"], { data: new Date() }],
      ["more than one transaction takes", "data", keys, { data: "x".repeat(390 * 1024 + 30_000) }],
      ["more than one transaction takes in all", "data", many(11), { data: "x".repeat(380 * 1024) }],
    ];

    it.each(refused)("%s is refused before anything is sent", async (_, option, wanted, options) => {
      const acquiring = acquireAll(
        clientOf("g"),
        wanted as string[],
        options as GroupOptions & AcquireOptions,
      );
      await expect(acquiring).rejects.toThrow(InvalidOptionsError);
      await expect(acquiring).rejects.toMatchObject({ option });
      expect(scripted.calls).toEqual([]);
    });

    it("the most keys that are allowed, and the largest payload, are not refused", async () => {
      expect((await acquireAll(clientOf("g"), many(100))).keys).toHaveLength(100);
      // 4 MB for 64 locks, less 8 KB of our own for each, and the quotation marks.
      const data = "x".repeat((64 - 8) * 1024 - 2);
      expect((await acquireAll(clientOf("h"), many(164).slice(100), { data })).keys).toHaveLength(64);
      await expect(acquireAll(clientOf("h"), many(64), { data: `${data}x` })).rejects.toMatchObject({
        option: "data",
      });
    });
  });
});
