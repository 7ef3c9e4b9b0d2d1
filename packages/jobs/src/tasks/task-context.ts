import { type Core, mayPass, retryPauses, sleep } from "@leasehold/client/internal";
import type { TaskSetTerms } from "./options.ts";

/** The parts that one task set uses. */
export interface TaskContext {
  readonly core: Core;
  /** The set's name, and the partition key of its items. */
  readonly set: string;
  readonly terms: TaskSetTerms;
}

/** Each of these tries is several requests of the SDK. */
const mostTries = 3;
const delays = { strategy: "fullJitter", delayMs: 200, maxDelayMs: 2_000 } as const;

/**
 * Makes a call to the table, and repeats it when the service failed or did not reply.
 *
 * The call has to recognise the effect of its own earlier copy.
 */
export async function callWithRetry<T>(core: Core, call: () => Promise<T>): Promise<T> {
  const nextPauseMs = retryPauses(core, delays);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await call();
    } catch (error) {
      if (!mayPass(error) || attempt >= mostTries) throw error;
      await sleep(core.clock, nextPauseMs());
    }
  }
}
