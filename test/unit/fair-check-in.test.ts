import { LeaseClient, type LeaseEvent } from "@leasehold/client";
import { type CheckIn, FairLock, fair, QueueFullError } from "@leasehold/client/fair";
import { leaseItemKey } from "@leasehold/client/schema";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { ScriptedStore } from "../support/scripted-store.ts";

const leaseDurationMs = 10_000;
const clockSkewMs = 500;

describe("check-ins at a fair lock", () => {
  let clock: ManualClock;
  let store: ScriptedStore;
  let events: LeaseEvent[];

  beforeEach(() => {
    clock = new ManualClock();
    store = new ScriptedStore();
    events = [];
  });

  /** A process that knows nothing of the others. */
  const desk = (maxWaiters = 10, way: ScriptedStore = store): FairLock => {
    const onEvent = (event: LeaseEvent): void => void events.push(event);
    const options = { store: way, clock, owner: "desk", leaseDurationMs, clockSkewMs, onEvent };
    const client = new LeaseClient(options);
    return new FairLock(client, "k", { maxWaiters });
  };
  const checkIn = (owner: string, join = true): Promise<CheckIn> => desk().checkIn({ owner, join });
  const states = async (...owners: string[]): Promise<string[]> => {
    const seen: string[] = [];
    for (const owner of owners) {
      const visit = await checkIn(owner, false);
      seen.push(visit.state === "waiting" ? `waiting ${visit.position}` : visit.state);
    }
    return seen;
  };

  it("the first one has the lock, the others wait in the order in which they came, each in 2 requests", async () => {
    for (const [owner, state] of [
      ["a", "held"],
      ["b", "waiting"],
      ["c", "waiting"],
    ] as const) {
      store.calls.length = 0;
      expect((await checkIn(owner)).state).toBe(state);
      expect(store.calls).toHaveLength(2);
    }
    expect(await states("a", "b", "c")).toEqual(["held", "waiting 1", "waiting 2"]);
  });

  it("coming again renews the lease under the same fencing token, and keeps the place", async () => {
    const first = await checkIn("a");
    await checkIn("b");
    for (let time = 0; time < 10; time += 1) {
      await clock.advance(leaseDurationMs - 1_000);
      expect(await states("a", "b")).toEqual(["held", "waiting 1"]);
    }
    const again = await checkIn("a");
    const token = (visit: CheckIn): number => (visit.state === "held" ? visit.lease.fencingToken : 0);
    expect(token(again)).toBe(token(first));
    expect(events.filter(({ type }) => type === "lost")).toEqual([]);
  });

  it("the next one gets the lock with its first check-in after the holder has gone, and nobody before it", async () => {
    await checkIn("a");
    await checkIn("b");
    await checkIn("c");
    expect(await desk().checkOut({ owner: "a" })).toBe(true);
    expect(await states("c")).toEqual(["waiting 2"]);
    expect((await checkIn("d")).state).toBe("waiting");
    expect(await states("b", "c", "d")).toEqual(["held", "waiting 1", "waiting 2"]);
  });

  it("a waiter that has stopped coming is passed over, and hears that it is absent", async () => {
    await checkIn("a");
    await checkIn("dead");
    await clock.advance(6_000);
    await checkIn("a");
    await checkIn("c");
    await clock.advance(leaseDurationMs - 6_000 + clockSkewMs + 2);
    expect(await states("a", "c")).toEqual(["held", "waiting 1"]);
    await desk().checkOut({ owner: "a" });
    expect(await states("c", "dead")).toEqual(["held", "absent"]);
  });

  it("a holder that has stopped coming is taken over by the next in line, with a larger fencing token", async () => {
    const before = await checkIn("dead");
    await checkIn("b");
    await clock.advance(leaseDurationMs - 1_000);
    expect(await states("b")).toEqual(["waiting 1"]);
    await clock.advance(1_000 + clockSkewMs + 2);
    const after = await checkIn("b");
    if (before.state !== "held" || after.state !== "held")
      throw new Error("one of them does not hold the lock");
    expect(after.lease.fencingToken).toBeGreaterThan(before.lease.fencingToken);
    expect(await states("dead")).toEqual(["absent"]);
    expect(events.map(({ type }) => type)).toContain("takeover");
  });

  it("an owner has one place, however often and from however many processes at once it comes", async () => {
    await checkIn("a");
    await Promise.all([checkIn("b"), checkIn("b"), checkIn("b")]);
    expect(store.table.peek(leaseItemKey("k"))?.waiting).toBe(1);
    expect((await desk().inspect()).waiting.map(({ owner }) => owner)).toEqual(["b"]);
    await Promise.all([checkIn("a"), checkIn("a")]);
    expect(await states("a", "b")).toEqual(["held", "waiting 1"]);
  });

  it("two copies of a visit that both find the lock free get one lease under one token", async () => {
    const [one, other] = await Promise.all([checkIn("a"), checkIn("a")]);
    if (one?.state !== "held" || other?.state !== "held")
      throw new Error("one of them does not hold the lock");
    expect([other.lease.token, other.lease.fencingToken]).toEqual([one.lease.token, one.lease.fencingToken]);
    expect(events.map(({ type }) => type)).not.toContain("takeover");
    await one.lease.renew();
    expect(await other.lease.release()).toBe(true);
  });

  it("whoever goes gives up its place or the lock once; going again finds nothing, in 1 request", async () => {
    await checkIn("a");
    await checkIn("b");
    expect(await desk().checkOut({ owner: "b" })).toBe(true);
    expect(await desk().checkOut({ owner: "a" })).toBe(true);
    store.calls.length = 0;
    expect(await desk().checkOut({ owner: "a" })).toBe(false);
    expect(store.calls).toHaveLength(1);
    expect(await desk().inspect()).toEqual({ holder: undefined, waiting: [] });
  });

  it("a second copy of a check-out's write, arriving late, leaves the place that its owner has joined since", async () => {
    await checkIn("a");
    await checkIn("b");
    await desk().checkOut({ owner: "b" });
    const sent = store.calls.at(-1)?.requests ?? [];
    await clock.advance(1);
    await checkIn("b");
    expect(sent.map((request) => store.table.updateNow(request).applied)).toEqual([false]);
    expect(await states("b")).toEqual(["waiting 1"]);
  });

  describe("a process that freezes between its look and its write", () => {
    /** Looks, and sends its write when it wakes. */
    const freeze = async (visit: (lock: FairLock) => Promise<unknown>): Promise<() => Promise<unknown>> => {
      const way = Object.assign(new ScriptedStore(), { table: store.table });
      let wake = (): void => undefined;
      const asleep = new Promise<void>((resolve) => {
        wake = resolve;
      });
      way.update = async (...request) => {
        await asleep;
        return await store.update(...request);
      };
      const done = visit(desk(10, way));
      done.catch(() => undefined);
      await clock.advance(1);
      return () => {
        wake();
        return done;
      };
    };

    it.each(["held", "waiting"] as const)(
      "in a check-out ends nothing that its owner, %s anew after another copy of it, has got since",
      async (state) => {
        if (state === "waiting") await checkIn("other");
        await checkIn("a");
        const wake = await freeze((lock) => lock.checkOut({ owner: "a" }));
        for (const owner of ["a", "passer-by"]) {
          if (owner !== "a") await checkIn(owner);
          await desk().checkOut({ owner });
        }
        await clock.advance(1);
        await checkIn("a");
        expect(await wake()).toBe(true);
        expect((await checkIn("a", false)).state).toBe(state);
      },
    );

    it("in a check-out while its owner's turn is taken: it has to go again, and then leaves nothing", async () => {
      await checkIn("other");
      await checkIn("a");
      await desk().checkOut({ owner: "other" });
      const wake = await freeze((lock) => lock.checkOut({ owner: "a" }));
      expect((await checkIn("a")).state).toBe("held");
      await expect(wake()).rejects.toMatchObject({ code: "LEASE_CONFLICT", retryable: true });
      expect(await desk().checkOut({ owner: "a" })).toBe(true);
      expect(await desk().inspect()).toEqual({ holder: undefined, waiting: [] });
    });

    it("in a check-out while its owner renews the lock: it has to go again", async () => {
      await checkIn("a");
      const wake = await freeze((lock) => lock.checkOut({ owner: "a" }));
      expect((await checkIn("a")).state).toBe("held");
      await expect(wake()).rejects.toMatchObject({ code: "LEASE_CONFLICT", retryable: true });
      expect((await checkIn("a", false)).state).toBe("held");
      expect(await desk().checkOut({ owner: "a" })).toBe(true);
      expect((await desk().inspect()).holder).toBeUndefined();
    });

    it("in a check-out while its place is prolonged: gives it up all the same", async () => {
      await checkIn("other");
      await checkIn("a");
      const wake = await freeze((lock) => lock.checkOut({ owner: "a" }));
      await checkIn("a");
      expect(await wake()).toBe(true);
      expect(await states("a")).toEqual(["absent"]);
    });

    it("in a check-in while its turn is taken by another copy: finds the lease, under its token", async () => {
      await checkIn("other");
      await checkIn("a");
      await desk().checkOut({ owner: "other" });
      const wake = await freeze((lock) => lock.checkIn({ owner: "a" }));
      const first = await checkIn("a");
      const second = (await wake()) as CheckIn;
      if (first.state !== "held" || second.state !== "held") throw new Error("it does not hold the lock");
      expect(second.lease.token).toBe(first.lease.token);
    });
  });

  it("refuses beyond maxWaiters, and lets a newcomer in where one of them has died", async () => {
    await checkIn("a");
    await desk(1).checkIn({ owner: "b" });
    await expect(desk(1).checkIn({ owner: "c" })).rejects.toThrow(QueueFullError);
    expect((await desk(1).checkIn({ owner: "b" })).state).toBe("waiting");
    await clock.advance(leaseDurationMs + clockSkewMs + 2);
    expect((await desk(1).checkIn({ owner: "c" })).state).toBe("held");
  });

  it("waits in one line with those who acquire", async () => {
    await checkIn("a");
    await checkIn("b");
    const client = new LeaseClient({ store, clock, owner: "c", leaseDurationMs, clockSkewMs });
    const waiting = client.acquire("k", { order: fair(), waitMs: 60_000, heartbeat: true });
    waiting.catch(() => undefined);
    await clock.advance(10);
    await checkIn("d");
    await desk().checkOut({ owner: "a" });
    await clock.advance(3_000);
    expect(await states("d")).toEqual(["waiting 3"]);
    expect(await states("b")).toEqual(["held"]);
    await desk().checkOut({ owner: "b" });
    await clock.advance(3_000);
    const lease = await waiting;
    expect(await states("d")).toEqual(["waiting 1"]);
    await lease.release();
    expect(await states("d")).toEqual(["held"]);
  });

  it("shows a holder that was asked to stop a lease whose signal has aborted", async () => {
    const client = new LeaseClient({ store, clock });
    const visit = await checkIn("a");
    if (visit.state !== "held") throw new Error("it does not hold the lock");
    await client.requestRevocation("k", { token: visit.lease.token, reason: "closing time" });
    const again = await checkIn("a");
    expect(again.state === "held" && again.lease.signal.aborted).toBe(true);
    expect(await desk().checkOut({ owner: "a" })).toBe(true);
  });

  it("its lease can be handed on, fences writes, and is released by whoever adopts it", async () => {
    const visit = await checkIn("a");
    if (visit.state !== "held") throw new Error("it does not hold the lock");
    const adopted = new LeaseClient({ store, clock }).adopt(visit.lease.toJSON());
    await checkIn("a");
    expect(await adopted.release()).toBe(true);
    expect(await states("a")).toEqual(["absent"]);
  });

  describe.each(["answer lost", "request lost"] as const)("%s", (fate) => {
    it.each(["held", "waiting"] as const)(
      "of the write that makes it %s: coming again finds it",
      async (state) => {
        if (state === "waiting") await checkIn("other");
        store.next(fate);
        await checkIn("a").catch(() => undefined);
        expect((await checkIn("a")).state).toBe(state);
        if (state === "waiting") expect(store.table.peek(leaseItemKey("k"))?.waiting).toBe(1);
      },
    );

    it("of the check-out: going again leaves nothing", async () => {
      await checkIn("a");
      store.next(fate);
      await desk()
        .checkOut({ owner: "a" })
        .catch(() => undefined);
      await desk().checkOut({ owner: "a" });
      expect((await desk().inspect()).holder).toBeUndefined();
    });
  });

  it.each([
    [{}, "owner"],
    [{ owner: "" }, "owner"],
    [{ owner: "a", leaseDurationMs: 100 }, "leaseDurationMs"],
    [{ owner: "a", leaseDurationMs: 8 * 24 * 3_600_000 }, "leaseDurationMs"],
    [{ owner: "a", join: 1 }, "join"],
    [{ owner: "a", waitMs: 1 }, "options.waitMs"],
  ])("refuses %j before it sends anything", async (options, option) => {
    await expect(desk().checkIn(options as { owner: string })).rejects.toMatchObject({
      code: "LEASE_INVALID_OPTIONS",
      message: expect.stringContaining(option),
    });
    expect(store.calls).toHaveLength(0);
  });
});
