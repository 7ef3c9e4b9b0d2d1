/** What a client believes of a line when its clocks have been wrong. */
import { MemoryLeaseStore } from "@leasehold/client/testing";
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
