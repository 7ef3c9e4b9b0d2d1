/**
 * Calls back with the reason when a signal aborts, at once where it has; returns what ends that. Who forgets to end it
 * keeps a listener.
 */
export function onAbort(signal: AbortSignal | undefined, listener: (reason: unknown) => void): () => void {
  if (signal === undefined) return () => undefined;
  const tell = (): void => listener(signal.reason);
  if (signal.aborted) tell();
  else signal.addEventListener("abort", tell, { once: true });
  return () => signal.removeEventListener("abort", tell);
}
