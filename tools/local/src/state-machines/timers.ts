// Waiting on the injected clock, for any length of time.

import type { Clock } from "@leasehold/client";

/** Timers of a day each: Step Functions waits for years, Node's timers for at most 24 days. */
const longestTimerMs = 24 * 60 * 60 * 1000;

/** Calls back once after a delay of any length; returns how to cancel it. */
export function after(clock: Clock, delayMs: number, callback: () => void): () => void {
  const deadline = clock.monotonic() + delayMs;
  let cancel = (): void => {};
  const arm = (): void => {
    const left = deadline - clock.monotonic();
    cancel =
      left > longestTimerMs
        ? clock.schedule(arm, longestTimerMs)
        : clock.schedule(callback, Math.max(0, left));
  };
  arm();
  return () => cancel();
}

/** Waits; rejects with the signal's reason as soon as it aborts. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = (): void => {
      cancel();
      reject(signal.reason);
    };
    const cancel = after(clock, delayMs, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** The clock's time as Step Functions writes it. */
export function isoTime(clock: Clock): string {
  return new Date(clock.now()).toISOString();
}
