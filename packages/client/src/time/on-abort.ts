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
