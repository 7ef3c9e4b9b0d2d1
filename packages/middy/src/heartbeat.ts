import type { Clock, Lease } from "@leasehold/client";
import { LeaseError } from "@leasehold/client/internal";

/** After a failed renewal the next one follows in this share of the time that is left... */
const retryShare = 0.2;
/** ...but no sooner than this. */
const shortestRetryMs = 50;

/**
 * Renews a lease every `intervalMs`, until it ends or the function that it returns is called.
 *
 * A renewal that the service fails is tried again; an error of another kind goes to `onBug`, and ends it.
 *
 * The client's own heartbeat ends only with the lease; a lease that is left to expire has to be left without one.
 */
export function keepRenewing(
  clock: Clock,
  lease: Lease,
  intervalMs: number,
  onBug: (error: unknown) => void,
): () => void {
  let isStopped = false;
  let cancel: () => void = () => undefined;
  const arm = (delayMs: number): void => {
    if (!isStopped && lease.held) cancel = clock.schedule(() => void beat(), delayMs, { background: true });
  };
  const beat = async (): Promise<void> => {
    try {
      await lease.renew();
      arm(intervalMs);
    } catch (error) {
      if (!(error instanceof LeaseError)) onBug(error);
      else arm(Math.max(lease.remainingMs() * retryShare, shortestRetryMs));
    }
  };
  arm(intervalMs);
  return () => {
    isStopped = true;
    cancel();
  };
}
