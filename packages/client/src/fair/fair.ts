import { check, checkKnown, isWhole } from "../options/check-values.ts";
import type { WaitOrder } from "../protocol/wait-order.ts";
import { queueLimits } from "./queue-ticket.ts";
import { QueueWaiter } from "./queue-waiter.ts";

/** Where a waiter stands in line. */
export interface QueuePosition {
  /** 1 for the waiter whose turn comes next. */
  readonly position: number;
  /**
   * When its turn comes, about, in milliseconds: how long the lease is typically held, times the position; undefined before
   * the first release.
   */
  readonly estimatedWaitMs: number | undefined;
}

/** Options of {@link fair}. */
export interface FairOptions {
  /**
   * How many may wait, in all processes together, before QueueFullError refuses more. From 1 to 500. Callers with different
   * numbers: each goes by its own. @default 100
   */
  readonly maxWaiters?: number;
  /**
   * Called when the caller has joined the line, and whenever one of its looks shows another position. What it throws ends
   * the wait.
   */
  readonly onPosition?: (position: QueuePosition) => void;
}

/** A caller's options, validated. */
export interface FairTerms {
  readonly maxWaiters: number;
  readonly onPosition: FairOptions["onPosition"];
}

const defaultMaxWaiters = 100;

/**
 * First come, first served: an order for the callers that wait for a lease. If your request to join the line was confirmed
 * before another caller started, you go first, as long as your ticket has not expired.
 *
 * 1 request while nobody holds the lease or waits for it. Otherwise 1 more to join the line, and looks. Callers that do not
 * ask for this order do not wait in line. The order has its own rhythm of waiting: it takes no `retry`.
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
  return { begin: (context, form, call) => new QueueWaiter(context, form, call, terms) };
}

/** Validates how many may wait. */
export function checkMaxWaiters(maxWaiters: number = defaultMaxWaiters): number {
  const { mostWaiters } = queueLimits;
  const isInRange = isWhole(maxWaiters) && maxWaiters >= 1 && maxWaiters <= mostWaiters;
  check(isInRange, "maxWaiters", maxWaiters, `a whole number from 1 to ${mostWaiters}`);
  return maxWaiters;
}
