import { leaseSortKey } from "@leasehold/client/schema";
import { describe, expect, it } from "vitest";
import type { Order } from "../../../functions/close-unpaid-orders/order.ts";
import type { ClosedOrder } from "../../../functions/close-unpaid-orders/shop-table.ts";
import type { Grant } from "../lease-history.ts";
import type { Answer } from "../scenarios/unpaid-orders/answers.ts";
import { audit, lateIn, summarize } from "../scenarios/unpaid-orders/audit.ts";
import type { Delivery, Evidence, RecordedEvent } from "../scenarios/unpaid-orders/recording.ts";

type Mutable<T> = T extends Error
  ? T
  : { -readonly [K in keyof T]: K extends "lines" ? T[K] : Mutable<T[K]> };

const key = "close-unpaid-orders";
const sortKey = leaseSortKey;
const tickMs = 1000;

function order(number: number, dueAt: number): Order {
  const lines = [{ product: number % 2 === 0 ? "mug" : "lamp", quantity: number }];
  return { orderId: `o-${number}`, lines, dueAt };
}

function delivery(tick: number, instance: string, answer: Answer, repeated = false): Delivery {
  return { tick, instance, repeated, answer };
}

function ran(fencingToken: number, closed: number): Answer {
  return { result: "ran", fencingToken, closed, parked: 0, isUnfinished: false, tookMs: 100 };
}

function skipped(holder: string): Answer {
  return { result: "skipped", holder, expiresAt: 0, tookMs: 5 };
}

const done: Answer = { result: "doneBefore", slot: "2026-11-21T10:00:00.000Z", tookMs: 5 };

function acquired(tick: number, instance: string, fencingToken: number): RecordedEvent {
  const event = {
    type: "acquired",
    key,
    sortKey,
    owner: instance,
    fencingToken,
    waitedMs: 5,
    expiresAt: 0,
  } as const;
  return { tick, instance, at: tick * tickMs, event };
}

function released(tick: number, instance: string, fencingToken: number): RecordedEvent {
  const event = {
    type: "released",
    key,
    sortKey,
    owner: instance,
    fencingToken,
    heldMs: 100,
    confirmed: true,
  } as const;
  return { tick, instance, at: tick * tickMs + 100, event };
}

function takeover(tick: number, instance: string, fencingToken: number, fromOwner: string): RecordedEvent {
  const from = { owner: fromOwner, fencingToken: fencingToken - 1, expiresAt: tick * tickMs - 300 };
  const event = {
    type: "takeover",
    key,
    sortKey,
    owner: instance,
    fencingToken,
    reason: "serviceClock",
    from,
  } as const;
  return { tick, instance, at: tick * tickMs, event };
}

/** What the table shows of a grant. Leases last as long as a tick, less 300 ms. */
function grant(owner: string, fencingToken: number, acquiredAt: number, from?: Grant["from"]): Grant {
  return { sortKey, owner, fencingToken, acquiredAt, expiresAt: acquiredAt + tickMs - 300, from };
}

function closed(open: Order, closedBy: string, fencingToken: number): ClosedOrder {
  return { ...open, closedBy, fencingToken, closings: 1 };
}

/** A run of five ticks in which all went as it should. */
function rightEvidence(): Mutable<Evidence> {
  const [o1, o2, o3, o4, o5, o6] = [1, 2, 3, 4, 5, 6].map((number) => order(number, number)) as [
    Order,
    Order,
    Order,
    Order,
    Order,
    Order,
  ];
  const notYetDue = order(7, 1_000_000);
  const paid = order(8, 1);
  return {
    plan: [
      { orders: 1, mishap: "deliveredTwice" },
      { orders: 2, mishap: "killed" },
      { orders: 0 },
      { orders: 2, mishap: "frozen" },
      { orders: 1, mishap: "woken" },
    ],
    lastScheduledAt: 1000,
    deliveries: [
      delivery(1, "A", ran(101, 1)),
      delivery(1, "B", skipped("A")),
      delivery(1, "A", done, true),
      delivery(1, "B", done, true),
      delivery(2, "B", { result: "died" }),
      delivery(2, "A", skipped("B")),
      delivery(3, "A", ran(103, 1)),
      delivery(3, "C", skipped("A")),
      delivery(4, "C", { ...ran(104, 1), result: "lost", reason: "expired", fencedOff: "o-5" } as Answer),
      delivery(4, "A", skipped("C")),
      delivery(5, "A", ran(105, 2)),
    ],
    events: [
      acquired(1, "A", 101),
      released(1, "A", 101),
      acquired(2, "B", 102),
      takeover(3, "A", 103, "B"),
      acquired(3, "A", 103),
      released(3, "A", 103),
      acquired(4, "C", 104),
      takeover(5, "A", 105, "C"),
      acquired(5, "A", 105),
      released(5, "A", 105),
    ],
    grants: [
      grant("A", 101, tickMs),
      grant("B", 102, 2 * tickMs),
      grant("A", 103, 3 * tickMs, { owner: "B", fencingToken: 102, expiresAt: 3 * tickMs - 300 }),
      grant("C", 104, 4 * tickMs),
      grant("A", 105, 5 * tickMs, { owner: "C", fencingToken: 104, expiresAt: 5 * tickMs - 300 }),
    ],
    casualties: [
      {
        kind: "killed",
        tick: 2,
        instance: "B",
        fencingToken: 102,
        closedAtGate: 1,
        closed: 1,
        orderId: "o-3",
      },
      {
        kind: "frozen",
        tick: 4,
        instance: "C",
        fencingToken: 104,
        closedAtGate: 1,
        closed: 1,
        orderId: "o-5",
      },
    ],
    before: {
      open: [o1, o2, o3, o4, o5, o6, notYetDue],
      paid: [paid],
      closed: [],
      stock: { mug: 50, lamp: 50 },
    },
    after: {
      open: [notYetDue],
      paid: [paid],
      closed: [
        closed(o1, "A", 101),
        closed(o2, "B", 102),
        closed(o3, "A", 103),
        closed(o4, "C", 104),
        closed(o5, "A", 105),
        closed(o6, "A", 105),
      ],
      stock: { mug: 62, lamp: 59 },
    },
  };
}

function redLabels(evidence: Evidence): string[] {
  return audit(evidence).flatMap(({ ok, label }) => (ok ? [] : [label]));
}

function at<T>(list: T[], index: number): T {
  const found = list[index];
  if (found === undefined) throw new Error(`there is no entry ${index}`);
  return found;
}

describe("the demonstration's audit", () => {
  it("finds nothing where all went as it should, and says what it counted", () => {
    const evidence = rightEvidence();
    expect(redLabels(evidence)).toEqual([]);
    expect(summarize(evidence)).toMatch(/^3 runs, 6 skips, 6 orders .* 1 stale write fenced off$/);
  });

  it("looks at the job's lock, and at no other lease under its key", () => {
    const evidence = rightEvidence();
    const { event, ...rest } = acquired(2, "A", 7);
    evidence.events.push({ ...rest, event: { ...event, sortKey: "elsewhere" } as typeof event });
    expect(redLabels(evidence)).toEqual([]);
    evidence.events.push({ ...rest, event });
    expect(redLabels(evidence)).not.toEqual([]);
  });

  const faults: Record<string, { spoil: (evidence: Mutable<Evidence>) => void; red: string[] }> = {
    "a tick that was not fired": {
      spoil: (evidence) => evidence.plan.push({ orders: 1 }),
      red: ["ticks fired", "runs to the end", "skips, with a true reason each", "leases granted"],
    },
    "two runs in a tick": {
      spoil: (evidence) => {
        at(evidence.deliveries, 3).answer = ran(102, 0);
        evidence.events.splice(2, 0, acquired(1, "B", 101.5), released(1, "B", 101.5));
        const from = { owner: "A", fencingToken: 101, expiresAt: 2 * tickMs - 300 };
        evidence.grants.splice(1, 0, grant("B", 101.5, tickMs + 50, from));
      },
      red: [
        "runs to the end",
        "skips, with a true reason each",
        "second copies of a trigger, all skipped",
        "leases granted",
        "leases that overlapped in time",
        "takeovers, from",
      ],
    },
    "a tick in which nobody ran": {
      spoil: (evidence) => {
        at(evidence.deliveries, 0).answer = skipped("B");
        evidence.events.splice(0, 2);
      },
      red: [
        "runs to the end",
        "skips, with a true reason each",
        "second copies of a trigger, all skipped",
        "leases granted",
        "closings under a lease that was granted",
      ],
    },
    "a trigger that was never answered": {
      spoil: (evidence) => {
        at(evidence.deliveries, 1).answer = undefined;
      },
      red: ["skips, with a true reason each"],
    },
    "a job that failed": {
      spoil: (evidence) => {
        at(evidence.deliveries, 0).answer = { result: "failed", problem: "no answer", timedOut: false };
      },
      red: ["runs to the end", "skips, with a true reason each", "second copies of a trigger, all skipped"],
    },
    "a skip that names the wrong holder": {
      spoil: (evidence) => {
        at(evidence.deliveries, 1).answer = skipped("C");
      },
      red: ["skips, with a true reason each"],
    },
    "a trigger that was not delivered twice": {
      spoil: (evidence) => evidence.deliveries.splice(2, 2),
      red: ["second copies of a trigger, all skipped"],
    },
    "a kill that did not happen": {
      spoil: (evidence) => evidence.casualties.shift(),
      red: ["instances killed in mid-run", "takeovers, from"],
    },
    "an instance that died by itself": {
      spoil: (evidence) => {
        at(evidence.deliveries, 6).answer = { result: "died" };
      },
      red: ["runs to the end", "runs cut short by a kill"],
    },
    "a missing takeover": {
      spoil: (evidence) => {
        at(evidence.grants, 2).from = undefined;
      },
      red: ["takeovers, from"],
    },
    "a takeover from an instance that was alive": {
      spoil: (evidence) => {
        at(evidence.grants, 3).from = { owner: "A", fencingToken: 103, expiresAt: 4 * tickMs - 300 };
      },
      red: ["takeovers, from"],
    },
    "a takeover before the lease had ended": {
      spoil: (evidence) => {
        const { from } = at(evidence.grants, 2);
        if (from !== undefined) from.expiresAt = 3 * tickMs + 1;
      },
      red: ["leases that overlapped in time"],
    },
    "a fencing token that did not grow": {
      spoil: (evidence) => {
        const { event } = at(evidence.events, 6);
        if (event.type === "acquired") event.fencingToken = 103;
      },
      red: ["fencing tokens, from tick to tick", "closings under a lease that was granted"],
    },
    "an order that was closed twice": {
      spoil: (evidence) => {
        at(evidence.after.closed, 2).closings = 2;
        evidence.after.stock.lamp = 62;
      },
      red: ["overdue orders closed exactly once", "stock: lamp"],
    },
    "an overdue order that was left open": {
      spoil: (evidence) => {
        evidence.after.closed.splice(2, 1);
        evidence.after.open.push(order(3, 3));
        evidence.after.stock.lamp = 56;
      },
      red: ["overdue orders closed exactly once", "overdue orders left open", "stock: lamp"],
    },
    "an order that has vanished": {
      spoil: (evidence) => evidence.after.closed.splice(2, 1),
      red: ["overdue orders closed exactly once"],
    },
    "a paid order that was closed": {
      spoil: (evidence) => {
        evidence.after.closed.push(closed(at(evidence.after.paid, 0), "A", 105));
        evidence.after.paid = [];
        evidence.after.stock.mug = 70;
      },
      red: ["orders paid or not yet due, untouched", "stock: mug"],
    },
    "an order that was closed before its time": {
      spoil: (evidence) => {
        evidence.after.closed.push(closed(at(evidence.after.open, 0), "A", 105));
        evidence.after.open = [];
        evidence.after.stock.lamp = 66;
      },
      red: ["orders paid or not yet due, untouched", "stock: lamp"],
    },
    "an order that was closed without a lease": {
      spoil: (evidence) => {
        at(evidence.after.closed, 0).fencingToken = 77;
      },
      red: ["closings under a lease that was granted"],
    },
    "an order that was closed under another's lease": {
      spoil: (evidence) => {
        at(evidence.after.closed, 0).closedBy = "B";
      },
      red: ["closings under a lease that was granted"],
    },
    "a stale write that landed": {
      spoil: (evidence) => {
        Object.assign(at(evidence.after.closed, 4), { closedBy: "C", fencingToken: 104 });
        at(evidence.deliveries, 8).answer = ran(104, 2);
      },
      red: [
        "runs to the end",
        "runs that lost their lease",
        "stale writes sent and fenced off",
        "stale writes that landed",
      ],
    },
    "a stale write that was never sent": {
      spoil: (evidence) => {
        const { answer } = at(evidence.deliveries, 8);
        if (answer?.result === "lost") answer.fencedOff = undefined;
      },
      red: ["stale writes sent and fenced off"],
    },
    "a write by the dead": {
      spoil: (evidence) => {
        Object.assign(at(evidence.after.closed, 2), { closedBy: "B", fencingToken: 102 });
      },
      red: ["stale writes that landed"],
    },
    "a stock that is off by one": {
      spoil: (evidence) => {
        evidence.after.stock.mug = 63;
      },
      red: ["stock: mug"],
    },
    "a stock that is gone": {
      spoil: (evidence) => {
        delete evidence.after.stock.mug;
      },
      red: ["stock: mug"],
    },
  };

  it.each(Object.entries(faults))("turns red for %s", (_, { spoil, red }) => {
    const evidence = rightEvidence();
    spoil(evidence);
    expect(redLabels(evidence)).toEqual(red);
  });

  it("finds nothing wrong where every event was written down long after it happened", () => {
    const evidence = rightEvidence();
    for (const [index, event] of evidence.events.entries()) {
      event.at += 10_000 - 900 * index;
      if (event.event.type === "acquired") event.event.waitedMs = 8_000;
    }
    expect(redLabels(evidence)).toEqual([]);
  });

  it("says which run had too little time to keep its lease, and none that the plan cut short", () => {
    const evidence = rightEvidence();
    expect(lateIn(evidence)).toEqual([]);
    const { event, ...rest } = released(3, "A", 103);
    const { confirmed: _, ...subject } = event as Extract<typeof event, { type: "released" }>;
    evidence.events.push({ ...rest, event: { ...subject, type: "lost", reason: "expired" } });
    expect(lateIn(evidence)).toEqual([expect.stringMatching(/^a lease of A ran out while it was alive/)]);
  });

  it("says in which tick everybody was turned away by a lease of the dead", () => {
    const evidence = rightEvidence();
    for (const one of evidence.deliveries) if (one.tick === 3) one.answer = skipped("B");
    expect(lateIn(evidence)).toEqual(["a dead lease still stood in the way in tick 3"]);
    for (const one of evidence.deliveries) if (one.tick === 3) one.answer = skipped("A");
    expect(lateIn(evidence)).toEqual([]);
  });

  it("counts no write as stale that landed before its process was stopped, and says that the process went on", () => {
    const evidence = rightEvidence();
    Object.assign(at(evidence.after.closed, 2), { closedBy: "B", fencingToken: 102 });
    Object.assign(at(evidence.casualties, 0), { closed: 2 });
    expect(redLabels(evidence)).toEqual([]);
    expect(lateIn(evidence)).toEqual(["B went on in tick 2 before it could be killed"]);
  });
});
