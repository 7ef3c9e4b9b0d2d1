import { brandClass, LeaseError, LeaseServiceError } from "@leasehold/client";
import type { HoldTerms } from "./hold.ts";

/** Between two tries to record a slot, at first... */
const shortestPauseMs = 50;
/** ...and at last; each pause is twice as long as the one before. */
const longestPauseMs = 2_000;

/** The handler has succeeded, and the service did not confirm that its slot is done: a retry may run it once more. */
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
        `record (${cause.code}): unless it was recorded, a retry will do the work again`,
      { cause, mayHaveLanded: cause.mayHaveLanded, key, slot },
    );
  }
}

/**
 * Releases a lease whose work is done, and records its slot; false where the lock was no longer the lease's.
 *
 * Without a slot nothing has to be recorded, and 1 request is made, whatever becomes of it. With a slot the service has
 * to confirm: what it throttles, fails or does not answer is tried again until the signal's margin before the
 * invocation's end; where no end is known, until the lease's. Then an event and an error tell.
 */
export async function complete({ lease, invocation, settings }: HoldTerms): Promise<boolean> {
  const { clock, timeoutMarginMs } = settings;
  const { slot } = lease;
  const remainingMs = invocation.remainingMs();
  const leftMs =
    remainingMs === undefined
      ? lease.remainingMs()
      : remainingMs - Math.min(timeoutMarginMs, remainingMs / 4);
  const deadline = clock.monotonic() + leftMs;
  const failed = (error: LeaseError, name: string): CompletionFailedError => {
    lease.tellCompletionFailed(name, error.code);
    return new CompletionFailedError(lease.key, name, error);
  };
  let uncertain: LeaseError | undefined;
  for (let pauseMs = shortestPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    try {
      const isConfirmed = await lease.complete();
      // An earlier try may have recorded the slot, and another holder may have come since.
      if (!isConfirmed && slot !== undefined && uncertain !== undefined) throw failed(uncertain, slot);
      return isConfirmed;
    } catch (error) {
      if (!(error instanceof LeaseError) || error instanceof CompletionFailedError) throw error;
      if (slot === undefined) return true;
      const isHopeless = !(error instanceof LeaseServiceError && error.retryable);
      if (isHopeless || clock.monotonic() + pauseMs >= deadline) throw failed(error, slot);
      if (error.mayHaveLanded) uncertain = error;
    }
    await new Promise<void>((resolve) => clock.schedule(resolve, pauseMs));
  }
}
