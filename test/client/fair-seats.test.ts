import { type Lease, LeaseClient, type LeaseEvent, LeaseUnavailableError } from "@leasehold/client";
import { fair } from "@leasehold/client/fair";
import { ReadWriteLock } from "@leasehold/client/read-write";
import { leaseItemKey } from "@leasehold/client/schema";
import { Semaphore } from "@leasehold/client/semaphore";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { put } from "../support/foreign-items.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const leaseDurationMs = 30_000;
const clockSkewMs = 500;
const waitMs = 3_600_000;

describe("an order of arrival over seats:", () => {
  let clock: ManualClock;
  let store: ScriptedStore;
  /** Owners in the order in which they got their leases. */
  let served: string[];
  let leases: Map<string, Lease>;

  beforeEach(() => {
    clock = new ManualClock();
    store = new ScriptedStore();
    served = [];
    leases = new Map();
  });

  const clientOf = (owner: string, over = store): LeaseClient =>
    new LeaseClient({ store: over, clock, owner, leaseDurationMs, clockSkewMs });
  const semaphoreOf = (owner: string, permits: number, over = store, maxWaiters = 100): Semaphore =>
    new Semaphore(clientOf(owner, over), "k", { permits, order: fair({ maxWaiters }) });
  const bookOf = (owner: string): ReadWriteLock => new ReadWriteLock(clientOf(owner), "k", { order: fair() });
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
    it("costs 1 request to acquire, to renew and to release while nobody waits", async () => {
      const lease = await semaphoreOf("a", 2).acquire({ waitMs });
      await lease.renew();
      await lease.release();
      expect(store.calls.map(({ method }) => method)).toEqual(["update", "update", "update"]);
    });

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

    it("lets a reader that comes beside readers in with 1 request while nobody waits", async () => {
      await come("r1", bookOf("r1").read());
      store.calls.length = 0;
      await come("r2", bookOf("r2").read());
      expect(store.calls).toHaveLength(1);
      expect(served).toEqual(["r1", "r2"]);
    });
  });
});
