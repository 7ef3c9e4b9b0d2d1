import { InvocationEndingError } from "./signal.ts";

/** Something that runs under a lock. */
interface Running {
  readonly signal: { abort(reason: unknown): void };
  /** Resolves once it has ended and its lease has been let go. */
  readonly ended: Promise<void>;
}

/** Lambda leaves a runtime 300 ms from SIGTERM to SIGKILL. */
const graceMs = 250;

const running = new Set<Running>();

/**
 * Tells it of a SIGTERM while it runs: its signal aborts, and it has 250 ms to stop and to release its lease. What
 * does not stop in time is not released, for it works on until the very end; its lease expires.
 *
 * A listener is registered only while something runs, so that an idle process dies of SIGTERM as it always did.
 * Returns the function that ends it.
 */
export function stopOnShutdown(it: Running): () => void {
  // First in line, so that it sees who else listens, those that listen once included.
  if (running.size === 0) process.prependListener("SIGTERM", onSigterm);
  running.add(it);
  return () => {
    running.delete(it);
    if (running.size === 0) process.off("SIGTERM", onSigterm);
  };
}

function onSigterm(): void {
  // Where others listen too, it is they who decide when the process ends.
  const isAlone = process.listenerCount("SIGTERM") === 1;
  const ends = [...running].map(({ signal, ended }) => {
    signal.abort(new InvocationEndingError("shutdown"));
    return ended;
  });
  const die = (): void => {
    clearTimeout(grace);
    if (!isAlone) return;
    process.off("SIGTERM", onSigterm);
    process.kill(process.pid, "SIGTERM");
  };
  const grace = setTimeout(die, graceMs);
  void Promise.all(ends).then(die);
}
