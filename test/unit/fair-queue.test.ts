/** What a client believes of a line: which tickets stand, and since when a lease has been vacant. */
import type { Item } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { describe, expect, it } from "vitest";
import { Queue } from "../../packages/client/src/fair/queue.ts";
import { type QueueTicket, ticketsIn, ticketText } from "../../packages/client/src/fair/queue-ticket.ts";
import type { ProtocolContext } from "../../packages/client/src/protocol/context.ts";
import { TimedStore } from "../../packages/client/src/store/timed-store.ts";
import { ServiceClock } from "../../packages/client/src/time/service-clock.ts";

const clockSkewMs = 500;
const leaseMs = 60_000;

describe("a client whose machine was suspended", () => {
  /** Clocks of a machine: the monotonic one stands still while it is suspended. */
  const machine = { monotonic: 0, wall: 1_000_000 };
  const clock = new ServiceClock(
    { now: () => machine.wall, monotonic: () => machine.monotonic, schedule: () => () => undefined },
    false,
    clockSkewMs,
    () => undefined,
  );
  const context = { clock, clockSkewMs, table: new TimedStore(new MemoryLeaseStore(), clock) };
  const queue = new Queue(context as unknown as ProtocolContext, "k", "lease");
  const ticket = (until: number): QueueTicket => {
    const text = ticketText({ since: 0, until, leaseMs, answered: 0, shape: undefined, owner: "w" });
    const [read] = ticketsIn({ "q:1": 1, "w:1": text });
    if (read === undefined) throw new Error("no ticket");
    return read;
  };

  it("does not pass a ticket before the service's time, at its earliest, lies beyond it", () => {
    const sentAt = clock.moment();
    // The answer took 5 s: the service's time was known to no more than 6 s.
    machine.monotonic += 5_000;
    machine.wall += 5_000;
    clock.note({ earliest: 1_000_000, latest: 1_001_000 }, sentAt);
    machine.wall += 30_000;
    const now = clock.earliest() ?? 0;
    expect(clock.now()).toBeGreaterThan(now + 5_000);
    expect(queue.isLiving(ticket(now))).toBe(true);
    expect(queue.isLiving(ticket(now - clockSkewMs))).toBe(true);
    expect(queue.isLiving(ticket(now - clockSkewMs - 1))).toBe(false);
  });
});

describe("how long a lease has been vacant", () => {
  it("counts anew where its holder's late renewal, or late release, has come in between", async () => {
    const clock = new ManualClock();
    const context = { clock: new ServiceClock(clock, true, clockSkewMs, () => undefined), clockSkewMs };
    const queue = new Queue(context as unknown as ProtocolContext, "k", "lease");
    const lookAfter = async (ms: number, item: Item): Promise<number | undefined> => {
      await clock.advance(ms);
      queue.seeVacancy(true, item, undefined);
      return queue.vacantMs;
    };
    expect(await lookAfter(0, { fence: 7, expiresAt: 1_000 })).toBe(0);
    expect(await lookAfter(5_000, { fence: 7, expiresAt: 1_000 })).toBe(5_000);
    expect(await lookAfter(5_000, { fence: 7, expiresAt: 6_000 })).toBe(0);
    expect(await lookAfter(5_000, { fence: 7 })).toBe(0);
    expect(await lookAfter(5_000, { fence: 7 })).toBe(5_000);
    expect(await lookAfter(5_000, { fence: 8 })).toBe(0);
  });
});
