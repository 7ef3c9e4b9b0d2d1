/** Whose turn it is, in a line for a lock and for seats, and what a caller in line is told. */
import { type Lease, LeaseClient, type LeaseEvent, LeaseUnavailableError } from "@leasehold/client";
import { type CheckIn, FairLock, fair, type QueuePosition } from "@leasehold/client/fair";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { leaseItemKey } from "@leasehold/client/schema";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { coreOf } from "../../packages/client/src/core/core.ts";
import { CheckInCaller } from "../../packages/client/src/primitives/fair/check-ins.ts";
import { Queue, unresponsiveAfterMs } from "../../packages/client/src/primitives/fair/queue.ts";
import { queueLimits, ticketText } from "../../packages/client/src/primitives/fair/queue-ticket.ts";
import { seatLimits } from "../../packages/client/src/primitives/seats/seat.ts";
import { put } from "../support/foreign-items.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const leaseDurationMs = 30_000;
const clockSkewMs = 500;
const waitMs = 3_600_000;
/** Longer than any test lasts. */
const ticketMs = 600_000;

describe("the turns of a line", () => {
  let clock: ManualClock;
  let store: ScriptedStore;

  beforeEach(() => {
    clock = new ManualClock();
    store = new ScriptedStore();
  });

  const clientOf = (owner: string, over = store, by = clock): LeaseClient =>
    new LeaseClient({ store: over, clock: by, owner, leaseDurationMs, clockSkewMs });
  const lockOf = (owner: string): FairLock => new FairLock(clientOf(owner), "k");
  const semaphoreOf = (owner: string, permits: number, over = store, by = clock): Semaphore =>
    new Semaphore(clientOf(owner, over, by), "k", { permits, order: fair() });
  /** Lets a caller wait in line that does nothing by itself. */
  const waits = (owner: string): Promise<CheckIn> =>
    lockOf("desk").checkIn({ owner, leaseDurationMs: ticketMs });
  /** Begins to wait for permits, and dies. */
  const dies = async (owner: string, permits: number, of: number): Promise<void> => {
    const doomed = new ScriptedStore(store.table);
    semaphoreOf(owner, of, doomed)
      .acquire({ permits, waitMs })
      .catch(() => undefined);
    await clock.advance(20);
    doomed.cutOff();
  };

  it("nobody in line is overtaken where a holder has died whose clock was ahead", async () => {
    const ahead = new ManualClock(clock.now() + 3_600_000);
    await clientOf("dead", store, ahead).acquire("k", { leaseDurationMs: 10_000 });
    const lock = lockOf("observer");
    await lock.checkIn({ owner: "a", leaseDurationMs: ticketMs });
    const overtakes = (): Promise<Lease> => lock.acquire({ owner: "newcomer", reentrant: true });
    await expect(overtakes()).rejects.toMatchObject({ holder: "dead" });
    await clock.advance(10_100);
    await expect(overtakes()).rejects.toBeInstanceOf(LeaseUnavailableError);
    expect((await lock.checkIn({ owner: "a", leaseDurationMs: ticketMs })).state).toBe("held");
  });

  it.each([
    [1, "ahead of the line"],
    [0, "in its turn"],
  ])("an owner that comes back %i ms before its lease expires has it %s", async (leftMs, how) => {
    const again = { owner: "x", reentrant: true };
    const lease = await lockOf("x").acquire(again);
    await waits("a");
    await clock.advance(leaseDurationMs - leftMs);
    expect(lease.expiresAt - clock.now()).toBe(leftMs);
    const back = lockOf("x").acquire(again);
    if (how === "in its turn") await expect(back).rejects.toBeInstanceOf(LeaseUnavailableError);
    else expect((await back).fencingToken).toBe(lease.fencingToken + 1);
  });

  it("a try while another one waits in front takes no turn of that one", async () => {
    const first = await lockOf("first").acquire();
    for (const owner of ["a", "b"]) await waits(owner);
    await first.release();
    const core = coreOf(clientOf("desk"));
    /** Writes what takes the lock, whether it is the owner's turn or not. */
    const tries = (owner: string): boolean => {
      const { form } = new CheckInCaller(core, new Queue(core, "k", "lease"), owner, ticketMs);
      form.judge(store.table.peek(leaseItemKey("k")), { owner, resumes: false }, core.detector);
      const times = { acquiredAt: clock.now(), expiresAt: clock.now() + leaseDurationMs, leaseDurationMs };
      const wishes = { reentrant: false, data: undefined, slot: undefined };
      const grant = {
        token: owner,
        version: 1,
        owner,
        retentionMs: core.times.retentionMs,
        ...times,
        ...wishes,
      };
      return store.table.updateNow(form.acquire(grant, []).request()).applied;
    };
    expect([tries("b"), tries("a")]).toEqual([false, true]);
  });

  describe("over seats:", () => {
    /** Owners in the order in which they got their leases. */
    let served: string[];
    let leases: Map<string, Lease>;

    beforeEach(() => {
      served = [];
      leases = new Map();
    });

    const bookOf = (owner: string): ReadWriteLock =>
      new ReadWriteLock(clientOf(owner), "k", { order: fair() });
    /** Takes note of who gets a lease, and when. */
    const come = async (owner: string, acquired: Promise<Lease>): Promise<void> => {
      void acquired.then(
        (lease) => {
          served.push(owner);
          leases.set(owner, lease);
        },
        () => undefined,
      );
      await clock.advance(20);
    };
    const release = async (...owners: string[]): Promise<void> => {
      for (const owner of owners) await leases.get(owner)?.release();
      await clock.advance(2_000);
    };

    describe("a semaphore", () => {
      it("gives a permit although another's seat cannot be read, and keeps none that it does not give", async () => {
        put(store.table, "k", "semaphore", { "s:x": "of another program", "f:x": 1 });
        const events: LeaseEvent[] = [];
        const onEvent = (event: LeaseEvent): void => void events.push(event);
        const client = new LeaseClient({ store, clock, leaseDurationMs, onEvent });
        const lease = await new Semaphore(client, "k", { permits: 2, order: fair() }).acquire({ waitMs });
        await lease.renew();
        expect(events.map(({ type }) => type)).toEqual(["unreadable", "acquired", "renewed"]);
        const refused = semaphoreOf("b", 1).acquire();
        await expect(refused).rejects.toMatchObject({ code: "LEASE_ITEM_UNREADABLE" });
        expect(await lease.release()).toBe(true);
        expect(store.table.peek(leaseItemKey("k", "semaphore"))).toMatchObject({ permits: 0 });
      });

      it("lets as many in at once as there are permits, each with 1 write", async () => {
        for (const owner of ["x", "y", "z"]) {
          await come(owner, semaphoreOf(owner, 3).acquire({ heartbeat: true }));
        }
        for (const owner of ["a", "b", "c"]) {
          await come(owner, semaphoreOf(owner, 3).acquire({ waitMs, heartbeat: true }));
        }
        for (const owner of ["x", "y", "z"]) await leases.get(owner)?.release();
        await clock.advance(2_000);
        expect(served.slice(3).sort()).toEqual(["a", "b", "c"]);
      });

      it("lets nobody with a smaller wish before a waiter that wants several permits", async () => {
        for (const owner of ["x", "y"]) {
          await come(owner, semaphoreOf(owner, 3).acquire({ heartbeat: true }));
        }
        await come("big", semaphoreOf("big", 3).acquire({ permits: 3, waitMs, heartbeat: true }));
        await come("small", semaphoreOf("small", 3).acquire({ waitMs, heartbeat: true }));
        await clock.advance(5_000);
        expect(served).toEqual(["x", "y"]);
        expect(await semaphoreOf("newcomer", 3).tryAcquire()).toBeUndefined();
        await release("x");
        expect(served).toEqual(["x", "y"]);
        await release("y");
        expect(served).toEqual(["x", "y", "big"]);
        await release("big");
        expect(served).toEqual(["x", "y", "big", "small"]);
      });

      it("says what is held and how many wait when its time is over", async () => {
        await come("x", semaphoreOf("x", 1).acquire({ heartbeat: true }));
        await come("a", semaphoreOf("a", 1).acquire({ waitMs, heartbeat: true }));
        const refused = semaphoreOf("b", 1).acquire({ waitMs: 1_000 });
        refused.catch(() => undefined);
        await clock.advance(1_100);
        await expect(refused).rejects.toBeInstanceOf(LeaseUnavailableError);
        await expect(refused).rejects.toThrow(/semaphore "k".*; 1 wait in turn;/);
      });
    });

    describe("a read-write lock", () => {
      it("lets readers at the head in together, and nobody past a writer", async () => {
        await come("w1", bookOf("w1").write({ heartbeat: true }));
        for (const owner of ["r1", "r2"]) await come(owner, bookOf(owner).read({ waitMs, heartbeat: true }));
        await come("w2", bookOf("w2").write({ waitMs, heartbeat: true }));
        await come("r3", bookOf("r3").read({ waitMs, heartbeat: true }));
        await release("w1");
        expect([...served].sort()).toEqual(["r1", "r2", "w1"]);
        expect(await bookOf("newcomer").tryRead()).toBeUndefined();
        await release("r1", "r2");
        expect(served.at(-1)).toBe("w2");
        await release("w2");
        expect(served.at(-1)).toBe("r3");
        expect(served).toHaveLength(5);
      });
    });
  });

  describe("for the permits of a semaphore", () => {
    it("leases that have expired make room, more of them than one write can remove", async () => {
      const permits = seatLimits.passedPerWrite + 1;
      const dead = new Semaphore(clientOf("dead"), "k", { permits });
      for (let held = 0; held < permits; held += 1) await dead.acquire();
      await clock.advance(leaseDurationMs + clockSkewMs + 1);
      expect((await semaphoreOf("a", permits).acquire({ permits })).held).toBe(true);
    });

    it.each([45, seatLimits.passedPerWrite])(
      "%i dead holders make room together with dead waiters, in writes of no more operators than DynamoDB takes",
      async (permits) => {
        const dead = new Semaphore(clientOf("dead"), "k", { permits });
        for (let held = 0; held < permits; held += 1) await dead.acquire();
        const key = leaseItemKey("k", "semaphore");
        const { pk: _, sk: __, ...item } = store.table.peek(key) ?? {};
        const times = { since: clock.now(), until: clock.now() + 1_000, leaseMs: 1_000 };
        const shape = `permit:${permits}:${permits}`;
        const text = ticketText({ ...times, isWatching: true, ownClock: false, shape, owner: "dead" });
        const waiting = queueLimits.removalsPerWrite;
        const tickets: Record<string, string | number> = {};
        for (let id = 1; id <= waiting; id += 1)
          Object.assign(tickets, { [`q:${id}`]: id, [`w:${id}`]: text });
        put(store.table, "k", "semaphore", { ...item, ...tickets, waiting, lastTicket: waiting });
        await clock.advance(leaseDurationMs + clockSkewMs + 1);
        store.calls.length = 0;
        expect((await semaphoreOf("a", permits).acquire({ permits })).held).toBe(true);
        for (const { condition } of store.calls.flatMap(({ requests }) => requests))
          expect((condition.match(/AND|OR|<>|<=|=|<|attribute_/g) ?? []).length).toBeLessThanOrEqual(300);
        expect(store.table.peek(key)).toMatchObject({ permits, waiting: 0 });
      },
    );

    it("a waiter is not passed for its silence while there is no room for what it wants", async () => {
      const first = await semaphoreOf("first", 2).acquire({ heartbeat: true });
      await dies("dead", 2, 2);
      const served: string[] = [];
      void semaphoreOf("a", 2)
        .acquire({ waitMs, heartbeat: true })
        .then(() => served.push("a"));
      await clock.advance(20_000);
      expect(served).toEqual([]);
      await first.release();
      await clock.advance(unresponsiveAfterMs);
      expect(served).toEqual([]);
      await clock.advance(2 * clockSkewMs);
      expect(served).toEqual(["a"]);
    });

    it("a waiter has its time to answer from the release on, where a look has met nobody in line before", async () => {
      const first = await semaphoreOf("first", 1).acquire({ leaseDurationMs: ticketMs });
      const observer = semaphoreOf("observer", 1);
      expect(await observer.tryAcquire()).toBeUndefined();
      await dies("dead", 1, 1);
      await clock.advance(20_000);
      await first.release();
      expect(await observer.tryAcquire()).toBeUndefined();
      await clock.advance(unresponsiveAfterMs + clockSkewMs + 1);
      expect(await observer.tryAcquire()).toBeDefined();
    });

    it("a waiter has its time to answer where one of the dead holders did not know the service's time", async () => {
      await semaphoreOf("first", 2).acquire({ leaseDurationMs: 10_000 });
      const untold = Object.assign(new ScriptedStore(store.table), { isLocal: false });
      const behind = semaphoreOf("second", 2, untold, new ManualClock(clock.now() - 3_600_000));
      await (await behind.acquire()).release();
      await behind.acquire();
      await dies("dead", 2, 2);
      const observer = semaphoreOf("observer", 2);
      const overtakes = (): Promise<Lease | undefined> => observer.tryAcquire({ permits: 2 });
      expect(await overtakes()).toBeUndefined();
      await clock.advance(1.01 * leaseDurationMs);
      expect(await overtakes()).toBeUndefined();
      await clock.advance(unresponsiveAfterMs);
      expect(await overtakes()).toBeDefined();
    });

    it("a waiter has its time to answer once the last lease in its way has surely expired", async () => {
      await semaphoreOf("first", 2).acquire({ leaseDurationMs: 20_000 });
      const { expiresAt } = await semaphoreOf("second", 2).acquire();
      await dies("dead", 2, 2);
      const overtakes = (): Promise<Lease> => semaphoreOf("newcomer", 2).acquire({ permits: 2 });
      await clock.advance(expiresAt + 2 * clockSkewMs + unresponsiveAfterMs - clock.now());
      await expect(overtakes()).rejects.toMatchObject({ retryAfterMs: 1 });
      await clock.advance(1);
      expect((await overtakes()).held).toBe(true);
    });
  });

  describe("come, as waiters are told,", () => {
    /** Of a waiter that joins behind a holder that has just begun. */
    const estimate = async (): Promise<number | undefined> => {
      await lockOf("holder").acquire();
      const visit = await waits("a");
      return visit.state === "waiting" ? visit.estimatedWaitMs : undefined;
    };

    it("as long as holders keep the lock closed, where they release it earlier", async () => {
      const lease = await lockOf("first").acquire({ lockAtLeastForMs: 8_000 });
      await clock.advance(1_000);
      await lease.release();
      await clock.advance(7_000 + clockSkewMs + 1);
      expect(await estimate()).toBe(8_000);
    });

    it("when the leases that stand side by side end, each in its turn", async () => {
      const learning = await semaphoreOf("first", 3).acquire();
      await clock.advance(8_000);
      await learning.release();
      for (const owner of ["x", "y", "z"]) {
        await semaphoreOf(owner, 3).acquire();
        await clock.advance(1_000);
      }
      const told: QueuePosition[] = [];
      const order = fair({ onPosition: (position) => told.push(position) });
      for (const owner of ["a", "b", "c", "d"]) {
        new Semaphore(clientOf(owner), "k", { permits: 3, order }).acquire({ waitMs }).catch(() => undefined);
        await clock.advance(0);
      }
      expect(told).toEqual([
        { position: 1, estimatedWaitMs: 5_000 },
        { position: 2, estimatedWaitMs: 6_000 },
        { position: 3, estimatedWaitMs: 7_000 },
        { position: 4, estimatedWaitMs: 13_000 },
      ]);
    });
  });
});
