import { type LeaseClient, SlotDoneError } from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import { type LeasedHandler, leased, type SkipReason } from "@leasehold/middy";
import type { Context } from "aws-lambda";
import { type Answering, answering } from "../support/answers.ts";
import { documents } from "../support/documents.ts";
import { once, optional, required, wholeNumber } from "../support/environment.ts";
import { leaseClient } from "../support/leases.ts";
import {
  type CloseUnpaidOrders,
  closeUnpaidOrdersKey,
  openRuns,
  runSlot,
  type SlotOutcome,
  usualLeaseMs,
} from "./job.ts";
import { OrderBook } from "./orders.ts";
import { closeAfterMs, closeAfterVariable, tableVariable } from "./schema.ts";

/** What a schedule sends; an EventBridge rule sends `time` in place of `scheduledTime`. */
export interface ScheduleEvent {
  readonly scheduledTime?: string;
  readonly time?: string;
}

/** The result of a trigger. */
export type TriggerOutcome =
  | SlotOutcome
  /** Another instance runs, or the lock is in its cooldown after a run. Nothing was done. */
  | {
      readonly result: "skipped";
      /** Undefined when the lock was released at that moment. */
      readonly holder: string | undefined;
      /** Epoch milliseconds. */
      readonly expiresAt: number | undefined;
    };

/** What the handler works with. */
export interface ScheduledJob extends Pick<CloseUnpaidOrders, "orders" | "beforeClose"> {
  readonly leases: LeaseClient;
  /** Of the lock, and of its runs. @default "close-unpaid-orders" */
  readonly key?: string | undefined;
  /** Epoch milliseconds. @default Date.now */
  readonly now?: () => number;
  /** How long a dead run blocks its own retry. @default 45000 */
  readonly runLeaseMs?: number;
}

/**
 * Makes the handler of a schedule. Each scheduled time has one run, however often the trigger comes and on however
 * many instances. Two runs never work at the same time. Each run is in the run history.
 *
 * A run that loses its lease rejects and leaves its slot open: the trigger's retry, or the next tick, closes the
 * rest. A run whose time is over before its orders are says so, and the next tick goes on. A trigger for a time that
 * is still to come is refused with SlotNotDueError. A slot that has used up its attempts counts as done, and needs no
 * further retry.
 */
export function onSchedule({
  leases,
  key = closeUnpaidOrdersKey,
  runLeaseMs = usualLeaseMs,
  now = Date.now,
  ...shop
}: ScheduledJob): LeasedHandler<ScheduleEvent, TriggerOutcome> {
  const runs = openRuns(leases, { key, leaseDurationMs: runLeaseMs });
  const options = { client: leases, key, once: true, skipResult: skipped };
  return leased<ScheduleEvent, TriggerOutcome>(options, async (event, context, lock) => {
    const slot = new Date(event.scheduledTime ?? event.time ?? "");
    const work = { ...shop, now, remainingMs: () => context.getRemainingTimeInMillis() };
    // An earlier attempt has lost the lock, so it stops at its next order. A dead attempt's own lease ends by then.
    return await runSlot({ runs, work, lock }, slot, 2 * runLeaseMs);
  });
}

function skipped(_event: ScheduleEvent, _context: Context, reason: SkipReason): TriggerOutcome {
  if (reason instanceof SlotDoneError) return { result: "doneBefore", slot: reason.slot };
  return { result: "skipped", holder: reason?.holder, expiresAt: reason?.expiresAt };
}

const scheduled = once(() =>
  onSchedule({
    leases: leaseClient(documents()),
    orders: new OrderBook(documents(), required(tableVariable), closeAfterMs(optional(closeAfterVariable))),
    key: optional(environmentNames.key),
    runLeaseMs: wholeNumber(environmentNames.lockAtMostForMs, usualLeaseMs),
  }),
);

/**
 * Closes the orders that were to be paid before the scheduled time and gives their stock back.
 *
 *     { "scheduledTime": "2026-11-21T08:00:00.000Z" }
 *     → { "result": "ran", "fencingToken": 1795248000001, "closed": 3, "parked": 0, "isUnfinished": false }
 *     → { "result": "skipped", "holder": "…", "expiresAt": 1795248045000 }
 *     → { "result": "doneBefore", "slot": "2026-11-21T08:00:00.000Z" }
 *     → { "result": "exhausted", "slot": "2026-11-21T08:00:00.000Z", "attempts": 3 }
 *
 * When it dies at a point:
 *
 * - before it has acquired: the trigger's retry or the next tick runs.
 * - before its run has begun: the same, and the run history has no run.
 * - between two orders: closed orders stay closed, both leases end, and the run shows as lost. The next run closes the rest.
 * - within an order: its transaction has landed or not.
 * - after the last order and before the run's end: the retry runs once more and finds nothing to close.
 * - after the run's end and before the slot is marked as done: the retry answers `doneBefore` by the run history.
 *
 * When it is frozen for longer than its lease, its next write is refused.
 */
export const handler: Answering<TriggerOutcome> = answering((event, context) =>
  scheduled()(event as ScheduleEvent, context as Context),
);
