import { CloseIncompleteError } from "@leasehold/client/internal";
import type { Hold } from "./hold.ts";
import type { MiddlewareSettings } from "./settings.ts";
import { InvocationEndingError, type LockSignal } from "./signal.ts";

/** An attempt at an event, from before the wait for its lock to the end of its lease. */
export interface EventAttempt {
  readonly settings: Pick<MiddlewareSettings<never>, "client" | "ownsClient">;
  readonly signal: Pick<LockSignal, "signal" | "abort">;
  /** Its hold on the lock; undefined while it waits. */
  hold: Hold | undefined;
  /** Resolves when it has given up its wait, or has released its lease. */
  readonly ended: Promise<void>;
}

/** Lambda leaves a runtime 300 ms from SIGTERM to SIGKILL. */
const graceMs = 250;

const running = new Set<EventAttempt>();

/**
 * Informs an attempt of a SIGTERM while it runs: its signal aborts, and it has 250 ms to stop and to release its lease.
 * If it does not stop in time, its lease is not released but expires, because it works on until the end.
 *
 * A waiting attempt gives up at once, and the process lives until its ticket has left the queue, within the same 250
 * ms.
 *
 * A listener is registered only while something runs, so that an idle process still dies of SIGTERM. The returned
 * function ends it.
 */
export function stopOnShutdown(it: EventAttempt): () => void {
  // The first listener, so that it can count the others, even those that are called once.
  if (running.size === 0) process.prependListener("SIGTERM", onSigterm);
  running.add(it);
  return () => {
    running.delete(it);
    if (running.size === 0) process.off("SIGTERM", onSigterm);
  };
}

function onSigterm(): void {
  // Other listeners decide when the process ends, and may still need the clients.
  const isAlone = process.listenerCount("SIGTERM") === 1;
  const all = [...running];
  const waiting = all.filter(({ hold }) => hold === undefined);
  for (const { signal } of all) signal.abort(new InvocationEndingError("shutdown"));
  if (!isAlone) return;
  const die = (): void => {
    clearTimeout(grace);
    process.off("SIGTERM", onSigterm);
    process.kill(process.pid, "SIGTERM");
  };
  const grace = setTimeout(die, graceMs);
  void Promise.all(all.map(({ ended }) => ended))
    .then(() => Promise.all(waiting.map(settle)))
    .then((settled) => {
      // If the end of a wait cannot be seen, it has the whole time.
      if (!settled.includes(false)) die();
    });
}

/**
 * Waits until the items that a wait has left in the table are removed; false if that is not possible.
 *
 * It is not possible with the user's own client, which may hold other leases. Nor if a handler that outlived its
 * invocation may still run under a lease of the client, because closing the client would release that lease.
 */
async function settle({ settings: { client, ownsClient } }: EventAttempt): Promise<boolean> {
  if (!ownsClient || client.held().length > 0) return false;
  try {
    await client.close({ timeoutMs: graceMs });
  } catch (error) {
    // Leases and tickets that stay in the table end by themselves.
    if (!(error instanceof CloseIncompleteError)) throw error;
  }
  return true;
}
