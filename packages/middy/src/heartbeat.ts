import type { Clock, Lease } from "@leasehold/client";
import { LeaseError } from "@leasehold/client/internal";

/** A failed renewal is repeated after this share of the time that is left... */
const retryShare = 0.2;
/** ...but no sooner than this. */
const shortestRetryMs = 50;

/**
 * Renews a lease every `intervalMs`, until the lease ends or the returned function is called.
 *
 * It repeats a renewal that the service has failed. Any other error goes to `onBug`, and ends the renewals.
 *
 * The client's own heartbeat ends only with the lease, so a lease that has to expire must not have one.
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
