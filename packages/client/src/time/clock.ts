/**
 * Time as the lock sees it: a wall clock, a monotonic clock and timers.
 *
 * Inject one to control time in tests (`ManualClock` of `@leasehold/client/testing`).
 */
export interface Clock {
  /** Wall-clock time in epoch milliseconds. May jump, and may differ from other machines' clocks. */
  now(): number;
  /** Milliseconds since an arbitrary point. Never runs backwards. */
  monotonic(): number;
  /**
   * Calls back once after `delayMs`, unless the function that it returns is called before.
   *
   * A `background` timer does not keep the process alive.
   */
  schedule(callback: () => void, delayMs: number, options?: { readonly background?: boolean }): () => void;
}

/** The longest delay that Node's timers take; a longer one would fire at once. */
const longestTimerMs = 2 ** 31 - 1;

/** The machine's own clocks and timers. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  schedule(callback, delayMs, options) {
    // Node cuts fractions off, and a timer that fires early finds nothing due.
    const timer = setTimeout(callback, Math.min(Math.ceil(Math.max(delayMs, 0)), longestTimerMs));
    if (options?.background) timer.unref();
    return () => clearTimeout(timer);
  },
};

/** One moment on both clocks. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

/**
 * Reads both clocks.
 *
 * The monotonic clock is read first: should the process freeze between the two, the deadline that is counted
 * from it falls before the expiry that the table shows, and never after.
 */
export function moment(clock: Clock): Moment {
  const monotonic = clock.monotonic();
  return { monotonic, wall: clock.now() };
}

/** Sleeps; rejects with the signal's reason as soon as it aborts. Keeps the process alive. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = clock.schedule(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, delayMs);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}
