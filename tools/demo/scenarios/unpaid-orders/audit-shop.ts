import type { Order } from "../../../../functions/close-unpaid-orders/order.ts";
import type { ClosedOrder, Stock } from "../../../../functions/close-unpaid-orders/shop-table.ts";
import { type Check, check, promise } from "../../check.ts";
import type { Evidence } from "./recording.ts";

/** Judges the orders and the stock. */
export function auditShop(evidence: Evidence): Check[] {
  const { before, after, lastScheduledAt } = evidence;
  const overdue = before.open.filter((order) => order.dueAt < lastScheduledAt);
  const others = [...before.open.filter((order) => order.dueAt >= lastScheduledAt), ...before.paid];
  const closed = new Map(after.closed.map((order) => [order.orderId, order]));
  const remaining = new Set([...after.open, ...after.paid].map((order) => order.orderId));

  return [
    check(
      "overdue orders closed exactly once",
      overdue.length,
      overdue.filter(({ orderId }) => closed.get(orderId)?.closings === 1).length,
    ),
    check("overdue orders left open", 0, overdue.filter(({ orderId }) => remaining.has(orderId)).length),
    promise(
      "orders paid or not yet due, untouched",
      others.length,
      others.filter(({ orderId }) => remaining.has(orderId) && !closed.has(orderId)).length,
    ),
    promise(
      "closings under a lease that was granted",
      after.closed.length,
      after.closed.filter((order) => wasGranted(order, evidence)).length,
    ),
    ...auditStaleWrites(evidence),
    ...auditStock(before.stock, after.stock, overdue),
  ];
}

function wasGranted({ closedBy, fencingToken }: ClosedOrder, { events }: Evidence): boolean {
  return events.some(
    ({ instance, event }) =>
      event.type === "acquired" && event.fencingToken === fencingToken && instance === closedBy,
  );
}

function auditStaleWrites({ after, casualties, deliveries }: Evidence): Check[] {
  const frozen = casualties.filter((run) => run.kind === "frozen");
  const fencedOff = frozen.filter((run) =>
    deliveries.some(
      ({ tick, instance, answer }) =>
        tick === run.tick &&
        instance === run.instance &&
        answer?.result === "lost" &&
        answer.fencedOff === run.orderId,
    ),
  );
  const landed = casualties.map((run) => {
    const underItsLease = after.closed.filter((order) => order.fencingToken === run.fencingToken);
    return Math.max(0, underItsLease.length - run.closed);
  });
  return [
    check("stale writes sent and fenced off", frozen.length, fencedOff.length),
    promise(
      "stale writes that landed",
      0,
      landed.reduce((sum, amount) => sum + amount, 0),
    ),
  ];
}

function auditStock(before: Stock, after: Stock, returned: readonly Order[]): Check[] {
  return Object.entries(before).map(([product, available]) => {
    const back = returned.flatMap(({ lines }) => lines).filter((line) => line.product === product);
    const expected = back.reduce((sum, line) => sum + line.quantity, available);
    return check(`stock: ${product}`, expected, after[product] ?? "missing");
  });
}
