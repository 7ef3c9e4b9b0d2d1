import type { Randomness } from "../protocol/context.ts";

/** How long something waits that has failed: a task, or a computation. */
export interface BackoffOptions {
  /** The wait after the first attempt, in milliseconds; it doubles with each attempt. 0 for none. @default 10000 */
  readonly delayMs?: number;
  /** The longest wait, in milliseconds; no shorter than `delayMs`. @default 900000 (15 minutes), or `delayMs` */
  readonly maxDelayMs?: number;
}

/**
 * Gives the wait after an attempt, in whole milliseconds: at least half of what its number asks, and the rest by chance,
 * so that tasks that have failed together do not come back together.
 */
export function backoffMs(
  { delayMs, maxDelayMs }: Required<BackoffOptions>,
  attempt: number,
  randomness: Randomness,
): number {
  const longest = Math.min(delayMs * 2 ** (attempt - 1), maxDelayMs);
  return Math.round(longest * (0.5 + randomness.fraction() / 2));
}
