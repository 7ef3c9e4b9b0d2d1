import { LeaseAbortedError, LeaseError } from "./errors.ts";

/**
 * Runs a call for a lock until the caller's signal aborts. Then it rejects with a LeaseAbortedError that names the
 * lock and has the signal's reason as its cause. When the signal has aborted before, the call is not made.
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
 * Gives the error of a call for a lock: in place of the signal's bare reason, an error that names the lock. A reason
 * that is an error of this package, such as the loss of another lease, stays as it is.
 */
export function nameAbort(key: string, signal: AbortSignal | undefined, error: unknown): unknown {
  const isBare = signal?.aborted === true && error === signal.reason && !(error instanceof LeaseError);
  return isBare ? new LeaseAbortedError(key, error) : error;
}

/**
 * Whether an error only shows that the signal has aborted: it is the signal's reason, or of a call that the signal
 * ended.
 */
export function isAbortOf(error: unknown, signal: AbortSignal | undefined): boolean {
  if (signal?.aborted !== true) return false;
  return error === signal.reason || (error instanceof LeaseAbortedError && error.cause === signal.reason);
}
