import { LeaseAbortedError, LeaseError } from "./errors.ts";

/**
 * Calls the listener with the reason when a signal aborts; at once if it has aborted. The returned function removes the
 * listener. A caller that does not call it leaks the listener.
 */
export function onAbort(signal: AbortSignal | undefined, listener: (reason: unknown) => void): () => void {
  if (signal === undefined) return () => undefined;
  const tell = (): void => listener(signal.reason);
  if (signal.aborted) tell();
  else signal.addEventListener("abort", tell, { once: true });
  return () => signal.removeEventListener("abort", tell);
}

/** The error of a wait that its caller has ended. */
export function aborted(): Error {
  return Object.assign(new Error("it was not awaited any longer"), { name: "AbortError" });
}

/** A promise's result; rejects as soon as the signal aborts. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const ignore = onAbort(signal, () => reject(aborted()));
    void promise.then(resolve, reject).then(ignore);
  });
}

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
