/** What a client knows of a line, and what its callers share. */
import { type Clock, type Item, LeaseClient } from "@leasehold/client";
import { leaseItemKey, limits } from "@leasehold/client/schema";
import { ManualClock } from "@leasehold/client/testing";
import { beforeEach, describe, expect, it } from "vitest";
import { type Core, coreOf } from "../../packages/client/src/core/core.ts";
import {
  type LocalWaiter,
  Queue,
  queues,
  unresponsiveAfterMs,
} from "../../packages/client/src/primitives/fair/queue.ts";
import {
  type QueueTicket,
  queueLimits,
  type TicketTerms,
  ticketsIn,
  ticketText,
} from "../../packages/client/src/primitives/fair/queue-ticket.ts";
import { joinIfRoom } from "../../packages/client/src/primitives/fair/queue-writes.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const clockSkewMs = 500;
const leaseMs = 60_000;

/** The core of a client whose store is far away: only its answers tell the service's time. */
function farCore(clock: Clock): Core {
  const store = new ScriptedStore();
  store.isLocal = false;
  return coreOf(new LeaseClient({ store, clock, clockSkewMs }));
}

describe("a client whose machine was suspended", () => {
  /** Clocks of a machine: the monotonic one stands still while it is suspended. */
  const machine = { monotonic: 0, wall: 1_000_000 };
  const core = farCore({
    now: () => machine.wall,
    monotonic: () => machine.monotonic,
    schedule: () => () => undefined,
  });
  const { clock } = core;
  const queue = new Queue(core, "k", "lease");
  const ticket = (until: number): QueueTicket => {
    const flags = { isWatching: true, ownClock: false };
    const text = ticketText({ since: 0, until, leaseMs, ...flags, shape: undefined, owner: "w" });
    const [read] = ticketsIn({ "q:1": 1, "w:1": text });
    if (read === undefined) throw new Error("no ticket");
    return read;
  };
  const isLiving = (until: number): boolean => queue.living([ticket(until)]).length > 0;

  it("does not pass a ticket before the service's time, at its earliest, lies beyond it", () => {
    const sentAt = clock.moment();
    // The answer took 5 s: the service's time was known to no more than 6 s.
    machine.monotonic += 5_000;
    machine.wall += 5_000;
    clock.note({ earliest: 1_000_000, latest: 1_001_000 }, sentAt);
    machine.wall += 30_000;
    const now = clock.earliest() ?? 0;
    expect(clock.now()).toBeGreaterThan(now + 5_000);
    expect(isLiving(now)).toBe(true);
    expect(isLiving(now - clockSkewMs)).toBe(true);
    expect(isLiving(now - clockSkewMs - 1)).toBe(false);
  });
});

describe("a client's view of a line", () => {
  /** Longer than any that the tests come to. */
  const farAway = limits.durationMs;
  let clock: ManualClock;
  let store: ScriptedStore;
  let core: Core;
  let queue: Queue;

  beforeEach(() => {
    clock = new ManualClock();
    store = new ScriptedStore();
    core = coreOf(new LeaseClient({ store, clock, clockSkewMs }));
    queue = new Queue(core, "k", "lease");
    clock.freeze(5_000);
  });

  /** An item with tickets, and the tickets. They are as new as can be unless they say when they were written. */
  const lineOf = (...all: Partial<TicketTerms>[]): { item: Item; tickets: QueueTicket[] } => {
    const item: Record<string, string | number> = {};
    for (const [index, terms] of all.entries()) {
      const { leaseMs = farAway } = terms;
      const rest = { since: 0, until: clock.now() + leaseMs, leaseMs, shape: undefined, owner: "w" };
      item[`q:${index}`] = index + 1;
      item[`w:${index}`] = ticketText({ ...rest, isWatching: true, ownClock: false, ...terms });
    }
    return { item, tickets: ticketsIn(item) };
  };
  /** A waiter of this process, with or without a ticket, and what it has heard from the others. */
  const localWaiter = (renewal?: ReturnType<LocalWaiter["renewal"]>): LocalWaiter & { heard: Item[] } => {
    const heard: Item[] = [];
    const onItem = (item: Item | undefined): void => void heard.push(item ?? {});
    return { heard, renewal: () => renewal, onItem, onReleased: () => undefined };
  };
  const queueing = (): ReturnType<typeof localWaiter> => localWaiter({ id: "1", text: "w", number: 1 });

  describe("passes a ticket", () => {
    /** As if its waiter's clock were far ahead. */
    const ahead = 2 ** 52;

    it("only so long after the last write of its waiter, however long the lease has been free", () => {
      queue.see(lineOf({ until: ahead }).item);
      queue.seeFree(true, { fence: 7 }, clock.now());
      clock.freeze(60_000);
      const { item, tickets } = lineOf({ until: ahead, since: 1 });
      queue.see(item);
      expect(queue.passableIn(tickets)).toEqual([unresponsiveAfterMs]);
      clock.freeze(4_000);
      expect(queue.passableIn(tickets)).toEqual([unresponsiveAfterMs - 4_000]);
    });

    it("behind a living waiter only when it has expired: there nobody has to show that it is alive", () => {
      const { item, tickets } = lineOf({ until: ahead }, { until: ahead }, { until: ahead, leaseMs: 5_000 });
      queue.see(item);
      queue.seeFree(true, { fence: 7 }, undefined);
      clock.freeze(10_000);
      queue.see({ ...item, "w:0": lineOf({ until: ahead, since: 1 }).item["w:0"] as string });
      const [first] = ticketsIn({ ...item, "w:0": lineOf({ until: ahead, since: 1 }).item["w:0"] as string });
      const line = [first as QueueTicket, ...tickets.slice(1)];
      expect(queue.passableIn(line)).toEqual([unresponsiveAfterMs, unresponsiveAfterMs, 0]);
      expect(queue.living(line)).toHaveLength(2);
    });

    it("that has expired, also while another caller has the lease; one of an unresponsive waiter only while it stays free", () => {
      const { item, tickets } = lineOf({ until: ahead, leaseMs: 20_000 }, { until: ahead });
      queue.see(item);
      queue.seeFree(true, { fence: 7 }, undefined);
      clock.freeze(20_000);
      expect(queue.passableIn(tickets)).toEqual([0, 0]);
      expect(queue.passingOver(tickets.slice(0, 1))).toBeUndefined();
      expect(queue.passingOver(tickets)).toMatchObject({ fence: 7, expiresAt: undefined });
    });
  });

  it("knows for how long a ticket proves the life of a waiter without the service's time", () => {
    queue.see({});
    const { item, tickets } = lineOf({ ownClock: true });
    clock.freeze(3_000);
    queue.see(item);
    expect(queue.provesLifeFor(tickets[0] as QueueTicket)).toBe(unresponsiveAfterMs - 3_000);
  });

  describe("knows for how long a lease has been free", () => {
    const item = { fence: 7, expiresAt: 1 };

    it("anew after another use, a late renewal or a late release, and not at all while it is held", () => {
      const lookAfter = (ms: number, item: Item, isFree = true): number | undefined => {
        clock.freeze(ms);
        queue.seeFree(isFree, item, undefined);
        return queue.freeForMs;
      };
      expect(lookAfter(0, { fence: 7, expiresAt: 1_000 })).toBe(0);
      expect(lookAfter(5_000, { fence: 7, expiresAt: 1_000 })).toBe(5_000);
      expect(lookAfter(5_000, { fence: 7, expiresAt: 6_000 })).toBe(0);
      expect(lookAfter(5_000, { fence: 7 })).toBe(0);
      expect(lookAfter(5_000, { fence: 8 })).toBe(0);
      expect(lookAfter(5_000, { fence: 8 }, false)).toBeUndefined();
    });

    it("since the end that the last release has noted", () => {
      const endedAt = (clock.now() - 700).toString(36);
      queue.seeFree(true, { ...item, holds: `1 1 7 ${endedAt}` }, undefined);
      expect(queue.freeForMs).toBe(700);
    });

    it.each([
      ["is of an earlier use", "1 1 6 1"],
      ["has no end", "1 1 7"],
      ["has an end that is no time", "1 1 7 ?"],
    ])("not from a note that %s: its waiters keep their time to show that they are alive", (_, holds) => {
      queue.seeFree(true, { ...item, holds }, undefined);
      expect(queue.freeForMs).toBe(0);
      expect(queue.passableIn(lineOf({}).tickets)).toEqual([unresponsiveAfterMs]);
    });
  });

  describe("is shared by the callers of one process:", () => {
    it("what one of them has seen, the others hear, unless the answer was overtaken", () => {
      const [one, other] = [queueing(), queueing()];
      queue.add(one);
      queue.add(other);
      queue.broadcast({ fence: 7, lastTicket: 2 }, one);
      queue.broadcast({ fence: 6 }, one);
      expect([one.heard, other.heard]).toEqual([[], [{ fence: 7, lastTicket: 2 }]]);
      // A new item may count its tickets anew, and ttl may remove the item.
      queue.broadcast({ fence: 8, lastTicket: 1 }, one);
      expect(queue.latest).toEqual({ fence: 8, lastTicket: 1 });
      queue.broadcast(undefined, one);
      expect(queue.latest).toBeUndefined();
    });

    it("a look is a read that may lag, unless it has to be consistent", async () => {
      await queue.look();
      await queue.look({}, true);
      expect(store.calls.map(({ consistent }) => consistent)).toEqual([false, true]);
    });

    it("what was seen counts for a newcomer only while another caller has a ticket", () => {
      const [one, other] = [localWaiter(), queueing()];
      queue.add(one);
      queue.broadcast({ fence: 7 }, one);
      expect(queue.latest).toBeUndefined();
      queue.add(other);
      expect(queue.latest).toEqual({ fence: 7 });
      queue.remove(one);
      expect(queue.latest).toEqual({ fence: 7 });
      queue.remove(other);
      queue.add(queueing());
      expect(queue.latest).toBeUndefined();
    });

    /** Joins the line with as many callers as that; each asks for its ticket to be renewed. */
    const joined = (count: number): LocalWaiter[] =>
      Array.from({ length: count }, (_, index) => {
        const id = `id${index}`;
        const ticket = { id, text: "joined", until: clock.now() };
        const terms = { maxWaiters: 500, retentionMs: 8_000, now: clock.now() };
        const { item } = store.table.updateNow(
          joinIfRoom(queue, { item: undefined, tickets: [] }, [], ticket, terms).request(),
        );
        const waiter = localWaiter({ id, text: "renewed", number: Number(item?.[`q:${id}`]) });
        queue.add(waiter);
        return waiter;
      });
    const renewed = (): string[] =>
      ticketsIn(store.table.peek(leaseItemKey("k")))
        .filter(({ text }) => text === "renewed")
        .map(({ id }) => id);

    it.each([0, 2])(
      "one write renews 40 tickets, the caller's own with the last %i beyond",
      async (beyond) => {
        const { removalsPerWrite } = queueLimits;
        queue.add(localWaiter());
        const [own] = joined(removalsPerWrite + beyond) as [LocalWaiter];
        if (beyond > 0) {
          store.next(undefined, "throttled");
          await expect(queue.lookAndRenew(own, {})).rejects.toMatchObject({ code: "LEASE_THROTTLED" });
          expect(renewed()).toHaveLength(removalsPerWrite);
          expect(renewed()).not.toContain("id0");
        }
        store.calls.length = 0;
        await queue.lookAndRenew(own, {});
        expect(renewed()).toHaveLength(removalsPerWrite + beyond);
        expect(store.calls).toHaveLength(beyond > 0 ? 2 : 1);
      },
    );
  });

  it("is kept as long as a caller waits, however many other leases the client asks for", () => {
    const [busy, idle] = [queues.of(core, "busy", "lease"), queues.of(core, "idle", "lease")];
    busy.add(localWaiter());
    for (let other = 0; other < 1_000; other += 1) queues.of(core, `k${other}`, "lease");
    expect(queues.of(core, "busy", "lease")).toBe(busy);
    expect(queues.of(core, "idle", "lease")).not.toBe(idle);
  });
});
