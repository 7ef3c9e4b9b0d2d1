import type { LeaseEvent } from "@leasehold/client";
import { leaseSortKey } from "@leasehold/client/schema";
import type { TriggerOutcome } from "../../../functions/close-unpaid-orders/handler.ts";
import type { JobOutcome } from "../../../functions/close-unpaid-orders/job.ts";
import type { Order } from "../../../functions/close-unpaid-orders/orders.ts";
import type { ClosedOrder, ShopState, Stock } from "../../../functions/close-unpaid-orders/shop-table.ts";
import {
  type Grant,
  type LoggedLeaseEvent,
  overlaps,
  ranOut,
  takenOver,
  type WasCutShort,
} from "../leases.ts";
import { type Check, check, listed, type Outcome, promise } from "../scenario.ts";

/**
 * What goes wrong in a tick.
 *
 * - `deliveredTwice`: when the run is over, everybody gets the same trigger once more.
 * - `killed`: the running instance gets SIGKILL in mid-run, and its write on the way is lost.
 * - `frozen`: the running instance gets SIGSTOP in mid-run, its lease checked and its write on the way.
 * - `woken`: that write arrives as soon as another has taken over, before that one writes, and the frozen one gets SIGCONT.
 */
export type Mishap = "deliveredTwice" | "killed" | "frozen" | "woken";

/** One tick: how many orders become overdue for it, and what goes wrong. */
export interface Step {
  readonly orders: number;
  readonly mishap?: Mishap;
}

/** What an instance made of a trigger. */
export type Answer =
  | ((TriggerOutcome | Extract<JobOutcome, { readonly result: "lost" }>) & { readonly tookMs: number })
  /** The job rejected. */
  | { readonly result: "failed"; readonly problem: string; readonly timedOut: boolean }
  /** The process ended before it answered. */
  | { readonly result: "died" };

/** One trigger that was delivered to one instance. */
export interface Delivery {
  readonly tick: number;
  readonly instance: string;
  /** Whether it was the second copy of the same trigger. */
  readonly repeated: boolean;
  readonly answer: Answer;
}

/** A lease event of one instance, in one tick. */
export interface RecordedEvent extends LoggedLeaseEvent {
  readonly tick: number;
}

/** Whether an event is about the job's lock, and not about another lease under its key. */
export function isOfTheLock(event: LeaseEvent): boolean {
  return !("sortKey" in event) || event.sortKey === leaseSortKey;
}

/** A run that was killed or frozen. */
export interface Casualty {
  readonly kind: "killed" | "frozen";
  readonly tick: number;
  readonly instance: string;
  readonly fencingToken: number;
  /** How many orders it had closed when its write was stopped at the gate. */
  readonly closedAtGate: number;
  /** How many the shop's table showed when its process had been stopped: known only then. */
  closed: number;
  /** The order that it was about to close. */
  readonly orderId: string;
}

/** All that the audit looks at. */
export interface Evidence {
  readonly deliveries: readonly Delivery[];
  readonly events: readonly RecordedEvent[];
  readonly casualties: readonly Casualty[];
  readonly plan: readonly Step[];
  /** The lock's grants, as the table made them; owners are the names of instances. */
  readonly grants: readonly Grant[];
  /** The scheduled time of the last tick, in epoch milliseconds: what is due before has to be closed at the end. */
  readonly lastScheduledAt: number;
  /** The shop before the first tick. */
  readonly before: ShopState;
  /** The shop after the last one, read from its table. */
  readonly after: ShopState;
}

/**
 * Judges what happened by the records and by the final tables.
 *
 * Trusts no instance: it compares the instances' reports with the plan, the lease events and the shop's own items.
 */
export function judgeOrders(recorded: Evidence): Outcome {
  const evidence: Evidence = {
    ...recorded,
    events: recorded.events.filter(({ event }) => isOfTheLock(event)),
    // Other leases under the job's key belong to its run history.
    grants: recorded.grants.filter(({ sortKey }) => sortKey === leaseSortKey),
  };
  const checks = [...auditRuns(evidence), ...auditLeases(evidence), ...auditShop(evidence)];
  return { checks, inShort: summarize(evidence), late: lateIn(evidence) };
}

/** Says what came too late for the plan. */
function lateIn({ plan, grants, events, casualties, deliveries }: Evidence): string[] {
  const timedOut = deliveries.flatMap(({ tick, instance, answer }) =>
    answer.result === "failed" && answer.timedOut
      ? [`${instance} did not come to an end in tick ${tick}`]
      : [],
  );
  const barred = plan.flatMap((_, index) => {
    const own = deliveries.filter(({ tick }) => tick === index + 1);
    const isBarred = ({ answer }: Delivery): boolean =>
      answer.result === "skipped" && casualties.some(({ instance }) => instance === answer.holder);
    return own.length > 0 && own.every(isBarred)
      ? [`a dead lease still stood in the way in tick ${index + 1}`]
      : [];
  });
  const wentOn = casualties.flatMap(({ kind, instance, tick, closed, closedAtGate }) =>
    closed > closedAtGate ? [`${instance} went on in tick ${tick} before it could be ${kind}`] : [],
  );
  return [...timedOut, ...barred, ...wentOn, ...ranOut(grants, events, wasCutShort(casualties))];
}

/** Counts what happened, for the last line. */
function summarize({ deliveries, casualties, after }: Evidence): string {
  const ended = (result: string): number =>
    deliveries.filter(({ answer }) => answer.result === result).length;
  const frozen = casualties.filter(({ kind }) => kind === "frozen").length;
  return (
    `${ended("ran")} runs, ${ended("skipped") + ended("doneBefore")} skips, ` +
    `${after.closed.length} orders closed exactly once, stock right to the unit, ` +
    `${frozen} stale ${frozen === 1 ? "write" : "writes"} fenced off`
  );
}

function auditRuns({ plan, deliveries, events, casualties }: Evidence): Check[] {
  const count = (test: (delivery: Delivery) => boolean): number => deliveries.filter(test).length;
  const ended = (result: string): number => count(({ answer }) => answer.result === result);
  const planned = (mishap: string): number => plan.filter((step) => step.mishap === mishap).length;
  const suffered = (kind: Casualty["kind"]): number => casualties.filter((run) => run.kind === kind).length;
  const holders = new Map(granted(events).map(({ tick, instance }) => [tick, instance]));
  const ranToTheEnd = new Set(
    deliveries.flatMap(({ tick, answer }) => (answer.result === "ran" ? [tick] : [])),
  );
  const isDone = ({ tick, answer }: Delivery): boolean =>
    answer.result === "doneBefore" && ranToTheEnd.has(tick);
  const isHeld = ({ tick, answer }: Delivery): boolean =>
    answer.result === "skipped" && answer.holder === holders.get(tick);
  const repeated = count((delivery) => delivery.repeated);
  const cutShort = planned("killed") + planned("frozen");

  return [
    check("ticks fired", plan.length, new Set(deliveries.map(({ tick }) => tick)).size),
    check("instances killed in mid-run", planned("killed"), suffered("killed")),
    check("instances frozen in mid-run", planned("frozen"), suffered("frozen")),
    check("runs to the end", plan.length - cutShort, ended("ran")),
    check("runs cut short by a kill", planned("killed"), ended("died")),
    check("runs that lost their lease", planned("frozen"), ended("lost")),
    check(
      "skips, with a true reason each",
      deliveries.length - plan.length,
      count((one) => isDone(one) || isHeld(one)),
    ),
    check(
      "second copies of a trigger, all skipped",
      planned("deliveredTwice") === 0 ? 0 : Math.max(1, repeated),
      count((delivery) => delivery.repeated && isDone(delivery)),
    ),
  ];
}

function auditLeases({ plan, events, grants, casualties }: Evidence): Check[] {
  const told = granted(events);
  const once = `1 in each of ${plan.length} ticks`;
  const others = plan.flatMap((_, index) => {
    const amount = told.filter(({ tick }) => tick === index + 1).length;
    return amount === 1 ? [] : [`${amount} in tick ${index + 1}`];
  });
  const fallen = told.find(({ fencingToken }, index) => fencingToken <= (told[index - 1]?.fencingToken ?? 0));
  const tokens = fallen === undefined ? "growing" : `not growing in tick ${fallen.tick}`;
  const takenFrom = takenOver(grants, wasCutShort(casualties));
  return [
    check("leases granted", once, others.length === 0 ? once : others.join(", ")),
    promise("fencing tokens, from tick to tick", "growing", tokens),
    promise("leases that overlapped in time", 0, overlaps(grants)),
    check("takeovers, from", listed(casualties.map((run) => run.instance)), listed(takenFrom)),
  ];
}

function wasCutShort(casualties: readonly Casualty[]): WasCutShort {
  return (owner, fencingToken) =>
    casualties.some((run) => run.instance === owner && run.fencingToken === fencingToken);
}

function granted(events: readonly RecordedEvent[]) {
  return events.flatMap(({ tick, instance, event }) =>
    event.type === "acquired" ? [{ tick, instance, fencingToken: event.fencingToken }] : [],
  );
}

/** Judges the orders and the stock. */
function auditShop(evidence: Evidence): Check[] {
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
  return granted(events).some((one) => one.fencingToken === fencingToken && one.instance === closedBy);
}

function auditStaleWrites({ after, casualties, deliveries }: Evidence): Check[] {
  const frozen = casualties.filter((run) => run.kind === "frozen");
  const fencedOff = frozen.filter((run) =>
    deliveries.some(
      ({ tick, instance, answer }) =>
        tick === run.tick &&
        instance === run.instance &&
        answer.result === "lost" &&
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
