import type { CallOptions, LeaseStore } from "@leasehold/client";
import {
  callStore,
  LeaseServiceError,
  type ProtocolContext,
  retryDelayMs,
  sleep,
} from "@leasehold/client/internal";

/** The SDK has tried several times in each of these. */
const mostTries = 3;
const rhythm = { strategy: "fullJitter", delayMs: 200, maxDelayMs: 2_000 } as const;

/**
 * Makes a call that recognises its own earlier effect, and repeats it where the service failed or did not answer.
 *
 * `onDoubt` is told of every write whose fate is unknown.
 */
export async function persist<T>(
  context: ProtocolContext,
  task: (store: LeaseStore, call: CallOptions) => Promise<T>,
  onDoubt: () => void = () => undefined,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await callStore(context, task);
    } catch (error) {
      if (!(error instanceof LeaseServiceError) || !error.retryable) throw error;
      if (error.mayHaveLanded) onDoubt();
      if (attempt >= mostTries) throw error;
      const fraction = context.randomness.fraction();
      await sleep(context.clock, retryDelayMs(rhythm, { attempt, claimableInMs: 0, fraction }));
    }
  }
}
