import { LeaseAbortedError, LeaseError } from "./errors.ts";

/**
 * Runs a call for a lock until the caller's signal aborts, whose reason comes back as the cause of a LeaseAbortedError
 * that names the lock. Nothing is run where the signal has aborted before.
 */
export async function untilAborted<T>(
  key: string,
  signal: AbortSignal | undefined,
  call: () => Promise<T>,
): Promise<T> {
  try {
    signal?.throwIfAborted();
    return await call();
  } catch (error) {
    throw nameAbort(key, signal, error);
  }
}

/**
 * Gives what a call for a lock rejects with: in place of the signal's bare reason, an error that names the lock. A reason
 * that is an error of this package, as the loss of another lease, says enough by itself.
 */
export function nameAbort(key: string, signal: AbortSignal | undefined, error: unknown): unknown {
  const isBare = signal?.aborted === true && error === signal.reason && !(error instanceof LeaseError);
  return isBare ? new LeaseAbortedError(key, error) : error;
}

/** Whether an error is merely how work ends whose signal has aborted: the signal's reason, or a call for a lock that it ended. */
export function isAbortOf(error: unknown, signal: AbortSignal | undefined): boolean {
  if (signal?.aborted !== true) return false;
  return error === signal.reason || (error instanceof LeaseAbortedError && error.cause === signal.reason);
}
