import { type Lease, LeaseClient, type LeaseEvent } from "@leasehold/client";
import { type CheckIn, FairLock, fair } from "@leasehold/client/fair";
import { leaseItemKey } from "@leasehold/client/schema";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { adminOf } from "../support/admin.ts";
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

  /** The lease of a check-in that has to have the lock. */
  const leaseOf = (visit: CheckIn): Lease => {
    if (visit.state !== "held") throw new Error("it does not hold the lock");
    return visit.lease;
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
    expect(leaseOf(again).fencingToken).toBe(leaseOf(first).fencingToken);
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
    const before = leaseOf(await checkIn("dead"));
    await checkIn("b");
    await clock.advance(leaseDurationMs - 1_000);
    expect(await states("b")).toEqual(["waiting 1"]);
    await clock.advance(1_000 + clockSkewMs + 2);
    expect(leaseOf(await checkIn("b")).fencingToken).toBeGreaterThan(before.fencingToken);
    expect(await states("dead")).toEqual(["absent"]);
    expect(events.map(({ type }) => type)).toContain("takeover");
  });

  it("its lease belongs to no process, though one renews it: closing that client does not end it", async () => {
    const client = new LeaseClient({ store, clock, leaseDurationMs, clockSkewMs });
    await leaseOf(await new FairLock(client, "k").checkIn({ owner: "a" })).renew();
    expect(client.held()).toEqual([]);
    await client.close();
    expect(await states("a")).toEqual(["held"]);
  });

  it("two copies of a visit that both find the lock free get one lease under one token", async () => {
    const visits = await Promise.all([checkIn("a"), checkIn("a")]);
    const [one, other] = visits.map(leaseOf) as [Lease, Lease];
    expect([other.token, other.fencingToken]).toEqual([one.token, one.fencingToken]);
    expect(events.map(({ type }) => type)).not.toContain("takeover");
    await one.renew();
    expect(await other.release()).toBe(true);
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

  describe("a process that is overtaken, or frozen, between its look and its write", () => {
    /** Before its first write happens the first of these things, before its second the second. */
    const overtaken = (...before: (() => Promise<unknown>)[]): { lock: FairLock; writes: () => number } => {
      const way = new ScriptedStore(store.table);
      let writes = 0;
      way.update = async (...request) => {
        writes += 1;
        await before[writes - 1]?.();
        return await store.update(...request);
      };
      return { lock: desk(10, way), writes: () => writes };
    };
    const goes = (): Promise<unknown> => desk().checkOut({ owner: "a" });
    const comes = (): Promise<unknown> => checkIn("a");
    const tooBusy = { code: "LEASE_CONFLICT", retryable: true };
    /** More often than a call tries. */
    const often = <T>(what: T): T[] => Array<T>(8).fill(what);

    it.each(["held", "waiting"] as const)(
      "in a check-out ends nothing that its owner, %s anew after another copy of it, has got since",
      async (state) => {
        if (state === "waiting") await checkIn("other");
        await checkIn("a");
        const { lock } = overtaken(async () => {
          await goes();
          await checkIn("passer-by");
          await desk().checkOut({ owner: "passer-by" });
          await clock.advance(1);
          await comes();
        });
        expect(await lock.checkOut({ owner: "a" })).toBe(true);
        expect((await checkIn("a", false)).state).toBe(state);
      },
    );

    it("in a check-out while its owner's turn is taken: it has to go again, and then leaves nothing", async () => {
      await checkIn("other");
      await checkIn("a");
      await desk().checkOut({ owner: "other" });
      const { lock } = overtaken(async () => expect((await checkIn("a")).state).toBe("held"));
      await expect(lock.checkOut({ owner: "a" })).rejects.toMatchObject(tooBusy);
      expect(await desk().checkOut({ owner: "a" })).toBe(true);
      expect(await desk().inspect()).toEqual({ holder: undefined, waiting: [] });
    });

    it("in a check-out while its owner renews the lock: it has to go again", async () => {
      await checkIn("a");
      await expect(overtaken(comes).lock.checkOut({ owner: "a" })).rejects.toMatchObject(tooBusy);
      expect((await checkIn("a", false)).state).toBe("held");
      expect(await desk().checkOut({ owner: "a" })).toBe(true);
      expect((await desk().inspect()).holder).toBeUndefined();
    });

    it("in a check-out while another copy ends it, and others have the lock: leaves them the lock", async () => {
      await checkIn("a");
      await checkIn("b");
      const { lock } = overtaken(async () => {
        for (const owner of ["a", "b"]) {
          await checkIn(owner);
          await desk().checkOut({ owner });
        }
        await checkIn("c");
      });
      expect(await lock.checkOut({ owner: "a" })).toBe(true);
      expect(await states("a", "b", "c")).toEqual(["absent", "absent", "held"]);
    });

    it("in a check-in until the lease of another copy has expired: takes no turn of the next in line", async () => {
      // As far as a client sees that does not compare clocks.
      const way = new ScriptedStore(store.table);
      const options = { store: way, clock, leaseDurationMs, clockSkewMs: Number.POSITIVE_INFINITY };
      const lock = new FairLock(new LeaseClient(options), "k");
      const asleep = Promise.withResolvers<void>();
      const update = way.update.bind(way);
      way.update = async (...request) => {
        way.update = update;
        await asleep.promise;
        return await update(...request);
      };
      const frozen = lock.checkIn({ owner: "a" });
      await clock.advance(0);
      const first = leaseOf(await lock.checkIn({ owner: "a", leaseDurationMs: 5_000 }));
      await desk().checkIn({ owner: "b", leaseDurationMs: 60_000 });
      await clock.advance(5_100);
      clock.jump(-3_000);
      asleep.resolve();
      expect(leaseOf(await frozen).token).toBe(first.token);
    });

    it("in a check-in while its ticket is given up: joins anew, at the end of the line", async () => {
      for (const owner of ["other", "a", "b"]) await checkIn(owner);
      const { lock, writes } = overtaken(goes);
      expect(await lock.checkIn({ owner: "a" })).toMatchObject({ state: "waiting", position: 2 });
      expect(await states("b", "a")).toEqual(["waiting 1", "waiting 2"]);
      expect(writes()).toBe(2);
    });

    it("in a check-in while its ticket is given up at its turn: has the lock, for nobody waits", async () => {
      for (const owner of ["other", "a"]) await checkIn(owner);
      await desk().checkOut({ owner: "other" });
      expect((await overtaken(goes).lock.checkIn({ owner: "a" })).state).toBe("held");
    });

    it("in a check-in while its lock is given up: acquires it anew", async () => {
      const before = leaseOf(await checkIn("a"));
      const lease = leaseOf(await overtaken(goes).lock.checkIn({ owner: "a" }));
      expect(lease.fencingToken).toBeGreaterThan(before.fencingToken);
      expect(lease.signal.aborted).toBe(false);
    });

    it("in a check-in while the lock is taken and given up in its name: acquires it all the same", async () => {
      expect((await overtaken(comes, goes).lock.checkIn({ owner: "a" })).state).toBe("held");
    });

    it("in a check-in that does not join, while its lock is given up: is absent", async () => {
      await checkIn("a");
      expect(await overtaken(goes).lock.checkIn({ owner: "a", join: false })).toEqual({ state: "absent" });
    });

    it("in a check-in by callers that do not wait in line: joins, and tries no more", async () => {
      const plain = new LeaseClient({ store, clock, leaseDurationMs, clockSkewMs });
      const leases: Lease[] = [];
      const takes = async (): Promise<unknown> => leases.push(await plain.acquire("k"));
      const releases = async (): Promise<unknown> => await leases.pop()?.release();
      const { lock, writes } = overtaken(...often([takes, releases]).flat());
      expect(await lock.checkIn({ owner: "a" })).toMatchObject({ state: "waiting", position: 1 });
      expect(writes()).toBe(2);
      expect((await checkIn("a")).state).toBe("held");
    });

    it("in a check-in with each of five tries: has to come again", async () => {
      await checkIn("a");
      const { lock, writes } = overtaken(...often(() => goes().then(comes)));
      await expect(lock.checkIn({ owner: "a" })).rejects.toMatchObject(tooBusy);
      expect(writes()).toBe(5);
      expect(await states("a")).toEqual(["held"]);
    });

    it.each([
      [4, "leaves the line"],
      [5, "has to go again"],
    ])("in a check-out by its own renewals before %i tries: %s", async (times) => {
      for (const owner of ["other", "a"]) await checkIn(owner);
      let renewed = 0;
      const renews = async (): Promise<unknown> => {
        renewed += 1;
        return await desk().checkIn({ owner: "a", leaseDurationMs: leaseDurationMs + renewed });
      };
      const { lock, writes } = overtaken(...(times < 5 ? Array(times).fill(renews) : often(renews)));
      const gone = lock.checkOut({ owner: "a" });
      if (times < 5) expect(await gone).toBe(true);
      else await expect(gone).rejects.toMatchObject(tooBusy);
      expect(writes()).toBe(5);
      expect(await states("a")).toEqual([times < 5 ? "absent" : "waiting 1"]);
    });
  });

  it("reads consistently before it writes, and so does a look at the line", async () => {
    await checkIn("a");
    await desk().checkOut({ owner: "a" });
    await desk().inspect();
    expect(store.calls.filter(({ method }) => method === "get").map(({ consistent }) => consistent)).toEqual([
      true,
      true,
      true,
    ]);
  });

  it("a ticket tells since when its owner waits, however often that renews it", async () => {
    await checkIn("a");
    const since = clock.now();
    await checkIn("b");
    await clock.advance(3_000);
    await checkIn("b");
    expect((await desk().inspect()).waiting).toEqual([{ owner: "b", since, position: 1 }]);
  });

  it("a ticket takes 150 bytes of the item at most, however long its owner's name is", async () => {
    await checkIn("a");
    await checkIn("b".repeat(1024));
    const parts = Object.entries(store.table.peek(leaseItemKey("k")) ?? {}).filter(([name]) =>
      /^[qw]:/.test(name),
    );
    expect(parts).toHaveLength(2);
    expect(parts.flat().join("").length).toBeLessThanOrEqual(150);
  });

  it("a holder that comes again says nothing of those who wait: nobody passes them for their silence", async () => {
    const lock = desk();
    await lock.checkIn({ owner: "a", leaseDurationMs: 60_000 });
    const client = new LeaseClient({ store, clock, owner: "b", leaseDurationMs, clockSkewMs });
    const giveUp = new AbortController();
    const waiting = client.acquire("k", { order: fair(), waitMs: 60_000, signal: giveUp.signal });
    waiting.catch(() => undefined);
    await clock.advance(10);
    await lock.checkIn({ owner: "a", leaseDurationMs: 60_000 });
    await clock.advance(15_000);
    expect((await lock.inspect()).waiting.map(({ owner }) => owner)).toEqual(["b"]);
    giveUp.abort();
    await clock.advance(0);
  });

  describe("tells", () => {
    const told = (type: LeaseEvent["type"]): LeaseEvent[] => events.filter((event) => event.type === type);

    it("of a lock that is held when an owner joins the line, and not again", async () => {
      await checkIn("a");
      await checkIn("b");
      await checkIn("b");
      expect(told("contended")).toMatchObject([{ key: "k", owner: "b", holder: "a" }]);
    });

    it("how long an owner has waited for its turn", async () => {
      await checkIn("a");
      await checkIn("b");
      await clock.advance(5_000);
      await desk().checkOut({ owner: "a" });
      await checkIn("b");
      expect(told("acquired")).toMatchObject([
        { owner: "a", waitedMs: 0 },
        { owner: "b", waitedMs: 5_000 },
      ]);
    });
  });

  describe("the time that a waiter is told", () => {
    const hold = async (end: (visit: CheckIn) => Promise<unknown>): Promise<void> => {
      const visit = await checkIn("a");
      await clock.advance(4_000);
      await end(visit);
    };
    const byCheckOut = (): Promise<unknown> => desk().checkOut({ owner: "a" });
    const estimate = async (): Promise<number | undefined> => {
      await checkIn("other");
      const visit = await checkIn("b");
      return visit.state === "waiting" ? visit.estimatedWaitMs : undefined;
    };

    it("is how long earlier holders had the lock until they checked out", async () => {
      await hold(byCheckOut);
      expect(await estimate()).toBe(4_000);
    });

    it("stays as it was when a holder releases its lease by itself", async () => {
      await hold(byCheckOut);
      await hold((visit) => leaseOf(visit).release());
      expect(await estimate()).toBe(4_000);
    });
  });

  it("rejects with the service's own error when a renewal fails, after 2 requests", async () => {
    await checkIn("a");
    store.calls.length = 0;
    store.next("throttled");
    await expect(checkIn("a")).rejects.toMatchObject({ code: "LEASE_THROTTLED" });
    expect(store.calls).toHaveLength(2);
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
    const { token } = leaseOf(await checkIn("a"));
    await adminOf(client).requestRevocation("k", { token, reason: "closing time" });
    expect(leaseOf(await checkIn("a")).signal.aborted).toBe(true);
    expect(await desk().checkOut({ owner: "a" })).toBe(true);
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
