import { leaseSortKey } from "@leasehold/client/schema";
import { describe, expect, it } from "vitest";
import type { Order } from "../../../functions/close-unpaid-orders/orders.ts";
import type { ClosedOrder } from "../../../functions/close-unpaid-orders/shop-table.ts";
import type { Grant } from "../leases.ts";
import {
  type Answer,
  type Casualty,
  type Delivery,
  type Evidence,
  judgeOrders,
  type RecordedEvent,
} from "../scenarios/unpaid-orders-audit.ts";
import { acquired, at, grant, lost, type Mutable, testsOfAudit } from "./evidence.ts";

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

const granted = (tick: number, instance: string, fencingToken: number): RecordedEvent => ({
  tick,
  ...acquired(instance, fencingToken, leaseSortKey, tick * tickMs),
});

/** What the table shows of a grant. Leases last as long as a tick, less 300 ms. */
const leaseOf = (owner: string, fencingToken: number, acquiredAt: number, from?: string): Grant =>
  grant(owner, fencingToken, acquiredAt, {
    leaseMs: tickMs - 300,
    from:
      from === undefined
        ? from
        : { owner: from, fencingToken: fencingToken - 1, expiresAt: acquiredAt - 300 },
  });

const casualty = (kind: Casualty["kind"], tick: number, instance: string, orderId: string): Casualty => ({
  kind,
  tick,
  instance,
  fencingToken: 100 + tick,
  closedAtGate: 1,
  closed: 1,
  orderId,
});

function closed(open: Order, closedBy: string, fencingToken: number): ClosedOrder {
  return { ...open, closedBy, fencingToken, closings: 1 };
}

/** A run of five ticks in which all went as it should. */
function rightEvidence(): Evidence {
  const open = [1, 2, 3, 4, 5, 6].map((number) => order(number, number));
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
      granted(1, "A", 101),
      granted(2, "B", 102),
      granted(3, "A", 103),
      granted(4, "C", 104),
      granted(5, "A", 105),
    ],
    grants: [
      leaseOf("A", 101, tickMs),
      leaseOf("B", 102, 2 * tickMs),
      leaseOf("A", 103, 3 * tickMs, "B"),
      leaseOf("C", 104, 4 * tickMs),
      leaseOf("A", 105, 5 * tickMs, "C"),
    ],
    casualties: [casualty("killed", 2, "B", "o-3"), casualty("frozen", 4, "C", "o-5")],
    before: {
      open: [...open, notYetDue],
      paid: [paid],
      closed: [],
      stock: { mug: 50, lamp: 50 },
    },
    after: {
      open: [notYetDue],
      paid: [paid],
      closed: [
        ["A", 101],
        ["B", 102],
        ["A", 103],
        ["C", 104],
        ["A", 105],
        ["A", 105],
      ].map(([by, token], index) => closed(at(open, index), String(by), Number(token))),
      stock: { mug: 62, lamp: 59 },
    },
  };
}

describe("the demonstration's audit", () => {
  const answered = (index: number, answer: Answer) => (e: Mutable<Evidence>) =>
    Object.assign(at(e.deliveries, index), { answer });
  const { redIn, spoilt } = testsOfAudit<Evidence>(judgeOrders, rightEvidence, {
    "a tick that was not fired": [
      (e) => e.plan.push({ orders: 1 }),
      "ticks fired",
      "runs to the end",
      "skips, with a true reason each",
      "leases granted",
    ],
    "two runs in a tick": [
      (e) => {
        at(e.deliveries, 3).answer = ran(102, 0);
        e.events.splice(1, 0, granted(1, "B", 101.5) as Mutable<RecordedEvent>);
        const from = { owner: "A", fencingToken: 101, expiresAt: 2 * tickMs - 300 };
        e.grants.splice(1, 0, { ...leaseOf("B", 101.5, tickMs + 50), from });
      },
      "runs to the end",
      "skips, with a true reason each",
      "second copies of a trigger, all skipped",
      "leases granted",
      "leases that overlapped in time",
      "takeovers, from",
    ],
    "a tick in which nobody ran": [
      (e) => {
        at(e.deliveries, 0).answer = skipped("B");
        e.events.splice(0, 1);
      },
      "runs to the end",
      "skips, with a true reason each",
      "second copies of a trigger, all skipped",
      "leases granted",
      "closings under a lease that was granted",
    ],
    "a job that failed": [
      answered(0, { result: "failed", problem: "no answer", timedOut: false }),
      "runs to the end",
      "skips, with a true reason each",
      "second copies of a trigger, all skipped",
    ],
    "a skip that names the wrong holder": [answered(1, skipped("C")), "skips, with a true reason each"],
    "a trigger that was not delivered twice": [
      (e) => e.deliveries.splice(2, 2),
      "second copies of a trigger, all skipped",
    ],
    "a kill that did not happen": [
      (e) => e.casualties.shift(),
      "instances killed in mid-run",
      "takeovers, from",
    ],
    "a freeze that did not happen": [
      (e) => e.casualties.pop(),
      "instances frozen in mid-run",
      "takeovers, from",
    ],
    "an instance that died by itself": [
      answered(6, { result: "died" }),
      "runs to the end",
      "runs cut short by a kill",
    ],
    "a fencing token that did not grow": [
      (e) => Object.assign(at(e.events, 3).event, { fencingToken: 103 }),
      "fencing tokens, from tick to tick",
      "closings under a lease that was granted",
    ],
    "an order that was closed twice": [
      (e) => {
        at(e.after.closed, 2).closings = 2;
        e.after.stock.lamp = 62;
      },
      "overdue orders closed exactly once",
      "stock: lamp",
    ],
    "an overdue order that was left open": [
      (e) => {
        e.after.closed.splice(2, 1);
        e.after.open.push(order(3, 3));
        e.after.stock.lamp = 56;
      },
      "overdue orders closed exactly once",
      "overdue orders left open",
      "stock: lamp",
    ],
    "an order that has vanished": [(e) => e.after.closed.splice(2, 1), "overdue orders closed exactly once"],
    "a paid order that was closed": [
      (e) => {
        e.after.closed.push(closed(at(e.after.paid, 0), "A", 105));
        e.after.paid = [];
        e.after.stock.mug = 70;
      },
      "orders paid or not yet due, untouched",
      "stock: mug",
    ],
    "an order that was closed before its time": [
      (e) => {
        e.after.closed.push(closed(at(e.after.open, 0), "A", 105));
        e.after.open = [];
        e.after.stock.lamp = 66;
      },
      "orders paid or not yet due, untouched",
      "stock: lamp",
    ],
    "an order that was closed without a lease": [
      (e) => Object.assign(at(e.after.closed, 0), { fencingToken: 77 }),
      "closings under a lease that was granted",
    ],
    "an order that was closed under another's lease": [
      (e) => Object.assign(at(e.after.closed, 0), { closedBy: "B" }),
      "closings under a lease that was granted",
    ],
    "a stale write that landed": [
      (e) => {
        Object.assign(at(e.after.closed, 4), { closedBy: "C", fencingToken: 104 });
        at(e.deliveries, 8).answer = ran(104, 2);
      },
      "runs to the end",
      "runs that lost their lease",
      "stale writes sent and fenced off",
      "stale writes that landed",
    ],
    "a stale write that was never sent": [
      (e) => Object.assign(at(e.deliveries, 8).answer, { fencedOff: undefined }),
      "stale writes sent and fenced off",
    ],
    "a write by the dead": [
      (e) => Object.assign(at(e.after.closed, 2), { closedBy: "B", fencingToken: 102 }),
      "stale writes that landed",
    ],
    "a stock that is off by one": [(e) => Object.assign(e.after.stock, { mug: 63 }), "stock: mug"],
  });

  it("says what it counted", () => {
    expect(judgeOrders(rightEvidence()).inShort).toMatch(
      /^3 runs, 6 skips, 6 orders .* 1 stale write fenced off$/,
    );
  });

  it("looks at the job's lock, and at no other lease under its key", () => {
    const push = (sortKey: string) => (e: Mutable<Evidence>) =>
      e.events.push({ tick: 2, ...acquired("A", 7, sortKey) } as Mutable<RecordedEvent>);
    expect(redIn(spoilt(push("elsewhere")))).toEqual([]);
    expect(redIn(spoilt(push(leaseSortKey)))).not.toEqual([]);
  });

  it("finds nothing wrong where every event was written down long after it happened", () => {
    const evidence = spoilt((e) => {
      for (const [index, event] of e.events.entries()) {
        event.at += 10_000 - 900 * index;
        if (event.event.type === "acquired") event.event.waitedMs = 8_000;
      }
    });
    expect(redIn(evidence)).toEqual([]);
  });

  it("says which run had too little time to keep its lease, and none that the plan cut short", () => {
    const late = spoilt((e) => e.events.push({ tick: 3, ...lost("A", 103) } as Mutable<RecordedEvent>));
    expect(judgeOrders(late).late).toEqual([
      expect.stringMatching(/^a lease of A ran out while it was alive/),
    ]);
  });

  it("says in which tick everybody was turned away by a lease of the dead", () => {
    const turnedAwayBy = (holder: string): Evidence =>
      spoilt((e) => {
        for (const one of e.deliveries) if (one.tick === 3) one.answer = skipped(holder);
      });
    expect(judgeOrders(turnedAwayBy("B")).late).toEqual(["a dead lease still stood in the way in tick 3"]);
    expect(judgeOrders(turnedAwayBy("A")).late).toEqual([]);
  });

  it("counts no write as stale that landed before its process was stopped, and says that the process went on", () => {
    const evidence = spoilt((e) => {
      Object.assign(at(e.after.closed, 2), { closedBy: "B", fencingToken: 102 });
      at(e.casualties, 0).closed = 2;
    });
    expect(redIn(evidence)).toEqual([]);
    expect(judgeOrders(evidence).late).toEqual(["B went on in tick 2 before it could be killed"]);
  });
});
