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
