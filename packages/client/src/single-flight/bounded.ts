import type { Clock } from "../time/clock.ts";

/** What ends the wait for somebody else's promise. */
export interface Bounds {
  /** Infinity for no limit. */
  readonly limitMs: number;
  readonly signal: AbortSignal;
  /** What the wait ends with at the limit. */
  readonly overdue: () => Error;
}

/**
 * Waits for work that nobody can be sure will ever end: rejects at the limit, and with the signal's reason.
 *
 * The work itself goes on; what becomes of it after that is of no interest.
 */
export function bounded<T>(clock: Clock, bounds: Bounds, work: () => Promise<T> | T): Promise<T> {
  const { limitMs, signal, overdue } = bounds;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const onAbort = (): void => end(() => reject(signal.reason));
    const cancel =
      limitMs === Number.POSITIVE_INFINITY
        ? () => undefined
        : clock.schedule(() => end(() => reject(overdue())), limitMs);
    const end = (settle: () => void): void => {
      cancel();
      signal.removeEventListener("abort", onAbort);
      settle();
    };
    signal.addEventListener("abort", onAbort, { once: true });
    // Made within a promise, so that work that throws at once rejects too.
    new Promise<T>((resolveWork) => resolveWork(work())).then(
      (value) => end(() => resolve(value)),
      (error: unknown) => end(() => reject(error)),
    );
  });
}
