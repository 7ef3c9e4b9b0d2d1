import { type LeaseClient, LeaseLostError, SlotDoneError } from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import { type LeasedHandler, leased, type SkipReason } from "@leasehold/middy";
import type { Context } from "aws-lambda";
import { type Answering, answering } from "../support/answers.ts";
import { documents } from "../support/documents.ts";
import { optional, required } from "../support/environment.ts";
import { leaseClient } from "../support/leases.ts";
import { once } from "../support/once.ts";
import { type CloseUnpaidOrders, closeOrdersUnder, closeUnpaidOrdersKey, type JobOutcome } from "./job.ts";
import { OrderBook } from "./orders.ts";
import { tableVariable } from "./schema.ts";

/** What a schedule sends; an EventBridge rule sends `time` in place of `scheduledTime`. */
export interface ScheduleEvent {
  readonly scheduledTime?: string;
  readonly time?: string;
}

/** What became of a trigger. */
export type TriggerOutcome =
  | Extract<JobOutcome, { readonly result: "ran" | "skipped" }>
  /** This trigger, or a later one, has had its run. Nothing was done. */
  | { readonly result: "doneBefore"; readonly slot: string };

/** What the handler works with. */
export interface ScheduledJob extends Pick<CloseUnpaidOrders, "orders" | "beforeClose"> {
  readonly leases: LeaseClient;
  /** @default "close-unpaid-orders" */
  readonly key?: string | undefined;
}

/**
 * Makes the handler of a schedule: one run for each scheduled time, however often the trigger comes and on however many
 * instances, and never two at once.
 *
 * A run that loses its lease, or whose time is over, rejects and leaves its slot open: the trigger's retry, or the next
 * tick, closes the rest.
 */
export function onSchedule({
  leases,
  key,
  ...work
}: ScheduledJob): LeasedHandler<ScheduleEvent, TriggerOutcome> {
  const options = { client: leases, key: key ?? closeUnpaidOrdersKey, once: true, skipResult: skipped };
  return leased<ScheduleEvent, TriggerOutcome>(options, async (event, _context, { lease, signal }) => {
    const dueBefore = Date.parse(event.scheduledTime ?? event.time ?? "");
    const outcome = await closeOrdersUnder(lease, work, dueBefore, signal);
    if (outcome.result === "ran") return outcome;
    const { closed, reason, fencedOff } = outcome;
    const detail = fencedOff === undefined ? `after ${closed} orders` : `order ${fencedOff} was fenced off`;
    throw new LeaseLostError(lease.key, reason, detail);
  });
}

function skipped(_event: ScheduleEvent, _context: Context, reason: SkipReason): TriggerOutcome {
  if (reason instanceof SlotDoneError) return { result: "doneBefore", slot: reason.slot };
  return { result: "skipped", holder: reason?.holder, expiresAt: reason?.expiresAt };
}

const scheduled = once(() =>
  onSchedule({
    leases: leaseClient(documents()),
    orders: new OrderBook(documents(), required(tableVariable)),
    key: optional(environmentNames.key),
  }),
);

/**
 * Closes the orders that were to be paid before the scheduled time and gives their stock back.
 *
 * Dies before it has acquired: the trigger's retry or the next tick runs. Between two orders: what is closed stays
 * closed, the lease ends when the invocation would have ended, and whoever runs then closes the rest. Within an order:
 * its transaction has landed or not. After the last order and before the slot is marked as done: the retry runs once
 * more and finds nothing to close. Frozen for longer than its lease: its next write is refused.
 */
export const handler: Answering<TriggerOutcome> = answering((event, context) =>
  scheduled()(event as ScheduleEvent, context as Context),
);
