import { check, checkKnown } from "../../base/check-values.ts";
import { isWhole } from "../../base/item-values.ts";
import type { WaitOrder } from "../../base/options.ts";
import type { Order } from "../../core/order.ts";
import { queueLimits } from "./queue-ticket.ts";
import { type FairTerms, type QueuePosition, QueueWaiter } from "./queue-waiter.ts";

/** Options of {@link fair}. */
export interface FairOptions {
  /**
   * How many callers may wait, in all processes together, before QueueFullError refuses more. From 1 to 500. Callers
   * may have different limits: each applies its own.
   * @default 100
   */
  readonly maxWaiters?: number;
  /**
   * Called when the caller has joined the line, and whenever a look shows another position. If it throws, the wait
   * ends.
   */
  readonly onPosition?: (position: QueuePosition) => void;
}

const defaultMaxWaiters = 100;

/**
 * First come, first served: an order for the callers that wait for a lease. If your request to join the line was confirmed
 * before another caller started, you go first, as long as your ticket has not expired.
 *
 * 1 request while nobody holds the lease or waits for it. Otherwise 1 more to join the line, and looks. Callers without
 * this order do not wait in line. The order has its own rhythm of waiting: it takes no `retry`.
 *
 * Throws InvalidOptionsError. Sends nothing.
 *
 * ```ts
 * const order = fair({ maxWaiters: 20, onPosition: ({ position }) => console.log(`number ${position} in line`) });
 * await client.withLease("label-printer", { order, waitMs: 60_000 }, async ({ signal }) => printLabels({ signal }));
 * ```
 */
export function fair(options: FairOptions = {}): WaitOrder {
  const { maxWaiters, onPosition } = checkKnown(options, ["maxWaiters", "onPosition"], "options");
  check(onPosition === undefined || typeof onPosition === "function", "onPosition", onPosition, "a function");
  const terms: FairTerms = { maxWaiters: checkMaxWaiters(maxWaiters), onPosition };
  const order: Order = { begin: (core, form, call) => new QueueWaiter(core, form, call, terms) };
  return order;
}

/** Validates `maxWaiters`. */
export function checkMaxWaiters(maxWaiters: number = defaultMaxWaiters): number {
  const { mostWaiters } = queueLimits;
  const isInRange = isWhole(maxWaiters) && maxWaiters >= 1 && maxWaiters <= mostWaiters;
  check(isInRange, "maxWaiters", maxWaiters, `a whole number from 1 to ${mostWaiters}`);
  return maxWaiters;
}
