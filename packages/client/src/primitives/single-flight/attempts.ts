/** The attempts of a computation: how often, with which pauses, and for how long each. */
import { onAbort } from "../../base/abort.ts";
import { type Clock, pause, type Randomness } from "../../base/clock.ts";
import { type BackoffOptions, backoffMs } from "../../base/retry.ts";

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
 * Tries work until it succeeds, its attempts are used up, no other may begin, or its signal aborts. Then it rejects with
 * the last attempt's error.
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
      await pause(clock, delayMs, signal);
      if (signal.aborted || !mayBegin(0)) throw error;
    }
  }
}

/** What ends the wait for a promise of the user's code. */
export interface Timeout {
  /** Infinity for none. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** The error at the end of the time. */
  readonly timeoutError: () => Error;
}

/**
 * Waits for work that may never end: rejects when the time is over, and with the signal's reason.
 *
 * The work itself goes on; its outcome is ignored.
 */
export function withTimeout<T>(clock: Clock, timeout: Timeout, work: () => Promise<T> | T): Promise<T> {
  const { timeoutMs, signal, timeoutError } = timeout;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const cancel =
      timeoutMs === Number.POSITIVE_INFINITY
        ? () => undefined
        : clock.schedule(() => end(() => reject(timeoutError())), timeoutMs);
    const end = (settle: () => void): void => {
      cancel();
      ignore();
      settle();
    };
    const ignore = onAbort(signal, (reason) => end(() => reject(reason)));
    // Made within a promise, so that work that throws at once rejects too.
    new Promise<T>((resolveWork) => resolveWork(work())).then(
      (value) => end(() => resolve(value)),
      (error: unknown) => end(() => reject(error)),
    );
  });
}
