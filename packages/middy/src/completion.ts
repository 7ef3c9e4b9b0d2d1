import type { Clock, Lease } from "@leasehold/client";
import { brandClass, LeaseError, mayPass, sleep } from "@leasehold/client/internal";
import type { Invocation } from "./invocation.ts";

/** The first pause between two tries to record a slot... */
const shortestCompletionPauseMs = 50;
/** ...and the longest; each pause is twice as long as the one before. */
const longestCompletionPauseMs = 2_000;

/** The handler has succeeded, but the service did not confirm that its slot is done. A retry may run it once more. */
export class CompletionFailedError extends LeaseError {
  static {
    brandClass(CompletionFailedError, "CompletionFailedError");
  }
  declare readonly key: string;
  declare readonly slot: string;

  constructor(key: string, slot: string, cause: LeaseError) {
    super(
      "LEASE_COMPLETION_FAILED",
      `the work of slot ${JSON.stringify(slot)} of ${JSON.stringify(key)} is done, but the service did not confirm its ` +
        `record (${cause.code}): a retry may do the work again`,
      { cause, mayHaveLanded: cause.mayHaveLanded, key, slot },
    );
  }
}

/**
 * Releases a lease whose work is done, and records its slot; false if the lease no longer held the lock.
 *
 * Without a slot there is nothing to record, and it makes 1 request, whatever the result. With a slot the service has
 * to confirm. It repeats a throttled, failed or unanswered request until the signal's margin before the invocation's
 * end; if no end is known, until the lease's end. After that an event and an error report the failure.
 */
export async function complete(lease: Lease, invocation: Invocation, clock: Clock): Promise<boolean> {
  const { key, slot } = lease;
  const deadline = clock.monotonic() + (invocation.workMs() ?? lease.remainingMs());
  let uncertain: LeaseError | undefined;
  for (let pauseMs = shortestCompletionPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestCompletionPauseMs)) {
    let failure: LeaseError | undefined;
    try {
      const isConfirmed = await lease.complete();
      // An earlier try may have recorded the slot, and another holder may have come since.
      if (!isConfirmed) failure = uncertain;
      if (failure === undefined) return isConfirmed;
    } catch (error) {
      if (!(error instanceof LeaseError)) throw error;
      if (slot === undefined) return true;
      if (!mayPass(error) || clock.monotonic() + pauseMs >= deadline) failure = error;
      if (error.mayHaveLanded) uncertain = error;
    }
    if (failure !== undefined && slot !== undefined) {
      lease.tellCompletionFailed(slot, failure.code);
      throw new CompletionFailedError(key, slot, failure);
    }
    await sleep(clock, pauseMs);
  }
}
