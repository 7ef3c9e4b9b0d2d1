import { type BackoffOptions, backoffMs } from "../../base/backoff.ts";
import type { Randomness } from "../../base/clock.ts";
import { type Clock, sleep } from "../../base/clock.ts";

/** How often a computation is tried, and how long it rests in between. */
export interface AttemptTerms {
  readonly maxAttempts: number;
  readonly backoff: Required<BackoffOptions>;
}

/** What limits the attempts besides their number. */
export interface AttemptBounds {
  readonly clock: Clock;
  readonly randomness: Randomness;
  /**
   * Whether another attempt may begin in so many milliseconds. Asked before the wait and again after it, because the
   * wait may be long.
   */
  readonly mayBegin: (inMs: number) => boolean;
  readonly signal: AbortSignal;
  /** Called for each failure that another attempt follows. */
  readonly onFailed: (error: unknown) => void;
}

/**
 * Tries work until it succeeds, its attempts are used up, no other may begin, or its signal aborts.
 *
 * Rejects with the last attempt's error, or with the signal's reason when it aborts between two attempts.
 */
export async function attempted<T>(
  { maxAttempts, backoff }: AttemptTerms,
  { clock, randomness, mayBegin, signal, onFailed }: AttemptBounds,
  work: (attempt: number) => Promise<T> | T,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(attempt);
    } catch (error) {
      const delayMs = backoffMs(backoff, attempt, randomness);
      if (attempt >= maxAttempts || signal.aborted || !mayBegin(delayMs)) throw error;
      onFailed(error);
      await sleep(clock, delayMs, signal);
      if (!mayBegin(0)) throw error;
    }
  }
}
