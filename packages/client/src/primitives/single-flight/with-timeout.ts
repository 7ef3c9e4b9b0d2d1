import type { Clock } from "../../base/clock.ts";
import { onAbort } from "../../base/on-abort.ts";

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
