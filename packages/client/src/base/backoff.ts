import type { Randomness } from "./clock.ts";

/** How long a failed task or computation waits before its next attempt. */
export interface BackoffOptions {
  /** The wait after the first attempt, in milliseconds; it doubles with each attempt. 0 for none. @default 10000 */
  readonly delayMs?: number;
  /** The longest wait, in milliseconds; no shorter than `delayMs`. @default 900000 (15 minutes), or `delayMs` */
  readonly maxDelayMs?: number;
}

/**
 * Returns the wait after an attempt, in whole milliseconds: at least half of the full wait, and a random part of the
 * rest. So tasks that have failed together do not return together.
 */
export function backoffMs(
  { delayMs, maxDelayMs }: Required<BackoffOptions>,
  attempt: number,
  randomness: Randomness,
): number {
  const longest = Math.min(delayMs * 2 ** (attempt - 1), maxDelayMs);
  return Math.round(longest * (0.5 + randomness.fraction() / 2));
}
