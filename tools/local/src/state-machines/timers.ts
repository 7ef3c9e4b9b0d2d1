// Waiting on the injected clock, for any length of time.

import type { Clock } from "@leasehold/client";
import { callAfter } from "@leasehold/client/internal";

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
    const cancel = callAfter(clock, delayMs, () => {
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
