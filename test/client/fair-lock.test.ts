import { type Lease, LeaseClient, LeaseUnavailableError, SlotDoneError } from "@leasehold/client";
import { leaseItemKey } from "@leasehold/client/schema";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import {
  FairLock,
  fair,
  QueueFullError,
  type QueuePosition,
} from "../../packages/client/src/entries/fair.ts";
import { queueLimits } from "../../packages/client/src/primitives/fair/queue-ticket.ts";
import { shortestTicketMs, ticketGraceMs } from "../../packages/client/src/primitives/fair/queue-waiter.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const leaseDurationMs = 30_000;
const clockSkewMs = 500;
const waitMs = 3_600_000;

describe("a fair lock", () => {
  let clock: ManualClock;
  let store: ScriptedStore;
  /** Owners in the order in which they got the lock. */
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
  const lockOf = (owner: string, over = store, maxWaiters = 100): FairLock =>
    new FairLock(clientOf(owner, over), "k", { maxWaiters });
  /** Waits for the lock in a process of its own. */
  const queue = (owner: string, lock = lockOf(owner), options: object = {}): Promise<Lease> => {
    const got = lock.acquire({ waitMs, owner, heartbeat: true, ...options }).then((lease) => {
      served.push(owner);
      leases.set(owner, lease);
      return lease;
    });
    got.catch(() => undefined);
    return got;
  };
  /** A way to the table for waiters that die. */
  const doomedWay = (): ScriptedStore => new ScriptedStore(store.table);
  const names = (count: number): string[] => Array.from({ length: count }, (_, index) => `w${index + 1}`);
  const waitingNow = async (): Promise<string[]> =>
    (await lockOf("observer").inspect()).waiting.map(({ owner }) => owner);
  const ticketsInTable = (): number =>
    Object.keys(store.table.peek(leaseItemKey("k")) ?? {}).filter((name) => name.startsWith("q:")).length;

  it("is the lock that callers without the order take: both keep each other out, and those overtake the line", async () => {
    const plain = await clientOf("plain").acquire("k");
    await expect(lockOf("a").acquire()).rejects.toBeInstanceOf(LeaseUnavailableError);
    void queue("w1");
    await clock.advance(10);
    await plain.release();
    await (await clientOf("plain").acquire("k")).release();
    await clock.advance(2_000);
    expect(served).toEqual(["w1"]);
    expect(await clientOf("plain").tryAcquire("k")).toBeUndefined();
  });

  it.each([
    // Refused, and the lock with all the places.
    [queueLimits.removalsPerWrite, 2],
    // Refused, 40 places removed, and the rest with the lock.
    [queueLimits.removalsPerWrite + 10, 3],
  ])(
    "lets a newcomer pass over %i dead, with nobody alive among them, at once, in %i requests",
    async (count, requests) => {
      const first = await lockOf("first").acquire({ heartbeat: true });
      const doomed = doomedWay();
      for (const name of names(count)) void queue(name, lockOf(name, doomed));
      await clock.advance(10);
      expect(ticketsInTable()).toBe(count);
      doomed.cutOff();
      await first.release();
      await clock.advance(120_000);
      store.calls.length = 0;
      const lease = await lockOf("newcomer").acquire();
      expect(lease.held).toBe(true);
      const left = Object.keys(store.table.peek(leaseItemKey("k")) ?? {});
      expect(left.filter((name) => /^[qw]:/.test(name))).toEqual([]);
      expect(store.calls).toHaveLength(requests);
    },
  );

  it("puts a waiter that was frozen and passed over at the end of the queue", async () => {
    const frozenClock = new ManualClock(clock.now());
    const first = await lockOf("first").acquire({ heartbeat: true });
    const client = new LeaseClient({ store, clock: frozenClock, leaseDurationMs, clockSkewMs });
    const positions: number[] = [];
    void queue("frozen", new FairLock(client, "k"), {
      onPosition: ({ position }: QueuePosition) => positions.push(position),
    });
    await frozenClock.advance(10);
    await clock.advance(10);
    void queue("w2");
    await clock.advance(10);
    await first.release();
    await clock.advance(30_000);
    expect(served).toEqual(["w2"]);
    void queue("w3");
    await clock.advance(1_000);
    frozenClock.freeze(31_000);
    await frozenClock.advance(1_000);
    expect(await waitingNow()).toEqual(["w3", "frozen"]);
    expect(positions).toEqual([1, 2]);
    await leases.get("w2")?.release();
    await clock.advance(2_000);
    expect(served).toEqual(["w2", "w3"]);
    await leases.get("w3")?.release();
    await frozenClock.advance(15_000);
    expect(served).toEqual(["w2", "w3", "frozen"]);
  });

  it("refuses a waiter beyond maxWaiters with the length of the queue, and lets it in when somebody has left", async () => {
    await lockOf("first").acquire({ heartbeat: true });
    const giveUp = new AbortController();
    void queue("w1", lockOf("w1", store, 2), { signal: giveUp.signal });
    void queue("w2", lockOf("w2", store, 2));
    await clock.advance(10);
    const refusal = await queue("w3", lockOf("w3", store, 2)).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(QueueFullError);
    expect(refusal).toMatchObject({ code: "LEASE_QUEUE_FULL", key: "k", waiting: 2, maxWaiters: 2 });
    expect(String(refusal)).toContain('2 wait for the lock "k" already, and 2 may');
    giveUp.abort(new Error("no more"));
    await clock.advance(10);
    void queue("w3", lockOf("w3", store, 2));
    await clock.advance(10);
    expect(await waitingNow()).toEqual(["w2", "w3"]);
  });

  it("tells each waiter its place and about when its turn comes", async () => {
    // Three uses of 8 s teach what is typical.
    for (let use = 0; use < 3; use += 1) {
      const lease = await lockOf("first").acquire();
      await clock.advance(8_000);
      await lease.release();
    }
    const first = await lockOf("first").acquire({ heartbeat: true });
    await clock.advance(2_000);
    const told: Record<string, QueuePosition[]> = { w1: [], w2: [], w3: [] };
    for (const [owner, positions] of Object.entries(told)) {
      void queue(owner, lockOf(owner), { onPosition: (position: QueuePosition) => positions.push(position) });
      await clock.advance(0);
    }
    expect(told).toEqual({
      w1: [{ position: 1, estimatedWaitMs: 6_000 }],
      w2: [{ position: 2, estimatedWaitMs: 14_000 }],
      w3: [{ position: 3, estimatedWaitMs: 22_000 }],
    });
    await clock.advance(6_000);
    await first.release();
    await clock.advance(20_000);
    expect(told.w3?.map(({ position }) => position)).toEqual([3, 2]);
  });

  it("refuses a slot that is done, as a lock without the order does", async () => {
    const lease = await lockOf("a").acquire({ slot: "monday" });
    expect(await lease.complete()).toBe(true);
    await expect(lockOf("b").acquire({ slot: "monday", waitMs })).rejects.toBeInstanceOf(SlotDoneError);
  });

  it("lets 100 callers wait, or as many as are asked for, up to 500", () => {
    expect(new FairLock(clientOf("a"), "k").maxWaiters).toBe(100);
    for (const maxWaiters of [1, 500]) expect(lockOf("a", store, maxWaiters).maxWaiters).toBe(maxWaiters);
  });

  const data = "x".repeat(300_000);
  const retry = { strategy: "fixed", delayMs: 1 } as const;
  it.each<[string, (lock: FairLock, client: LeaseClient) => unknown]>([
    ["maxWaiters is 0", (_, client) => new FairLock(client, "k", { maxWaiters: 0 })],
    ["maxWaiters is 501", (_, client) => new FairLock(client, "k", { maxWaiters: 501 })],
    ["options.most is not an option", (_, client) => new FairLock(client, "k", { most: 1 } as object)],
    ["key is", (_, client) => new FairLock(client, "")],
    ["client is", () => new FairLock({} as LeaseClient, "k")],
    ["options.retry is not an option", (lock) => lock.acquire({ retry } as object)],
    ["options.maxWaiters is not an option", (lock) => lock.acquire({ maxWaiters: 3 } as object)],
    ["onPosition is", (lock) => lock.acquire({ onPosition: 1 as never })],
    [
      "options.order is an instance of Object; allowed: nothing: the lock has its own",
      (lock) => lock.acquire({ order: fair() } as object),
    ],
    [
      "data is 300002 bytes of JSON; allowed: at most 262144 bytes with fair",
      (lock) => lock.acquire({ data }),
    ],
    ["work is", (lock) => lock.withLease({}, undefined as never)],
    ["options.join is not an option", (lock) => lock.checkOut({ owner: "a", join: false } as never)],
    ["maxWaiters is 0", () => fair({ maxWaiters: 0 })],
    ["onPosition is", () => fair({ onPosition: 1 as never })],
    ["options.onPlace is not an option", () => fair({ onPlace: () => undefined } as object)],
    ["order is", (_, client) => client.acquire("k", { order: {} as never })],
    ["retry is", (_, client) => client.acquire("k", { order: fair(), retry })],
    ["options.ordr is not an option", (_, client) => client.acquire("k", { ordr: fair() } as object)],
  ])("refuses bad options before it sends anything: %s", async (message, call) => {
    const refused = (async () => await call(lockOf("a"), clientOf("a")))();
    await expect(refused).rejects.toMatchObject({
      code: "LEASE_INVALID_OPTIONS",
      message: expect.stringContaining(message),
    });
    expect(store.calls).toHaveLength(0);
  });

  it("keeps nothing of a waiter that has left, nor of one that has had its turn", async () => {
    const first = await lockOf("first").acquire();
    void queue("w1");
    await clock.advance(10);
    await expect(
      Promise.all([queue("w2", lockOf("w2"), { waitMs: 1_000 }), clock.advance(1_100)]),
    ).rejects.toThrow();
    await clock.advance(10);
    expect(ticketsInTable()).toBe(1);
    await first.release();
    await clock.advance(2_000);
    expect(served).toEqual(["w1"]);
    expect(ticketsInTable()).toBe(0);
  });

  describe("whose answers are lost", () => {
    it.each(["answer lost", "request lost", "throttled"] as const)(
      "%s, of the head's acquisition: it has the lock",
      async (fate) => {
        const first = await lockOf("first").acquire();
        void queue("w1");
        await clock.advance(10);
        void queue("w2");
        await clock.advance(10);
        await first.release();
        store.next(fate);
        await clock.advance(2_000);
        expect(served).toEqual(["w1"]);
        expect(leases.get("w1")?.held).toBe(true);
        expect(await waitingNow()).toEqual(["w2"]);
      },
    );

    it("of its leaving: the ticket expires by itself", async () => {
      await lockOf("first").acquire({ heartbeat: true });
      const waiting = queue("w1", lockOf("w1"), { waitMs: 1_000 });
      await clock.advance(990);
      store.weather = "request lost";
      await clock.advance(20);
      await expect(waiting).rejects.toBeInstanceOf(LeaseUnavailableError);
      store.weather = undefined;
      expect(ticketsInTable()).toBe(1);
      await clock.advance(ticketGraceMs + clockSkewMs + 1);
      expect(await waitingNow()).toEqual([]);
    });

    it("of the tickets' renewal: they are renewed again in time", async () => {
      const first = await lockOf("first").acquire({ leaseDurationMs: 600_000 });
      void queue("w1");
      await clock.advance(1_000);
      store.next("answer lost", "request lost", "throttled");
      await clock.advance(shortestTicketMs * 2);
      expect(await waitingNow()).toEqual(["w1"]);
      await first.release();
      await clock.advance(10_000);
      expect(served).toEqual(["w1"]);
    });
  });

  describe("with many callers in one process", () => {
    it("serves them in the order of their calls, and in their order among others", async () => {
      const first = await lockOf("first").acquire({ heartbeat: true });
      const shared = lockOf("shared");
      for (const name of ["a1", "a2"]) void queue(name, shared);
      await clock.advance(10);
      void queue("b1");
      await clock.advance(10);
      for (const name of ["a3", "a4"]) void queue(name, shared);
      await clock.advance(10);
      await first.release();
      const order = ["a1", "a2", "b1", "a3", "a4"];
      for (const name of order) {
        await clock.advance(5_000);
        await leases.get(name)?.release();
      }
      expect(served).toEqual(order);
    });

    it("gives the lock on within the process at once, in 2 requests", async () => {
      const shared = lockOf("shared");
      const first = await shared.acquire();
      void queue("w1", shared);
      void queue("w2", shared);
      await clock.advance(10);
      store.calls.length = 0;
      await first.release();
      await clock.advance(0);
      expect(served).toEqual(["w1"]);
      expect(store.calls).toHaveLength(2);
    });

    it("keeps the places of all of them, though one write cannot renew so many tickets", async () => {
      const count = queueLimits.removalsPerWrite + 5;
      const first = await lockOf("first").acquire({ leaseDurationMs: 3_600_000 });
      const shared = lockOf("shared");
      for (const name of names(count)) void queue(name, shared);
      await clock.advance(10_000);
      store.next("throttled", undefined, "answer lost");
      for (let minute = 0; minute < 12; minute += 1) await clock.advance(60_000);
      expect(await waitingNow()).toEqual(names(count));
      await first.release();
      await clock.advance(10_000);
      expect(served).toEqual(["w1"]);
    });
  });
});
