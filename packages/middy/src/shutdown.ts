import { CloseIncompleteError } from "@leasehold/client/internal";
import type { Hold } from "./hold.ts";
import type { Settings } from "./settings.ts";
import { InvocationEndingError } from "./signal.ts";

/** An attempt at an event, from before it waits for its lock to the end of its lease. */
export interface Attempt {
  readonly settings: Pick<Settings<never>, "client" | "ownsClient">;
  readonly signal: { abort(reason: unknown): void };
  /** Its hold on the lock; undefined while it waits. */
  hold: Hold | undefined;
  /** Resolves once it has given its wait up, or its lease has been let go. */
  readonly ended: Promise<void>;
}

/** Lambda leaves a runtime 300 ms from SIGTERM to SIGKILL. */
const graceMs = 250;

const running = new Set<Attempt>();

/**
 * Tells it of a SIGTERM while it runs: its signal aborts, and it has 250 ms to stop and to release its lease. What
 * does not stop in time is not released, for it works on until the very end; its lease expires.
 *
 * A wait is given up at once, and the process lives until its ticket has left the queue, within the same 250 ms.
 *
 * A listener is registered only while something runs, so that an idle process dies of SIGTERM as it always did.
 * Returns the function that ends it.
 */
export function stopOnShutdown(it: Attempt): () => void {
  // The first listener, so that it can count the others, also the ones that are called once.
  if (running.size === 0) process.prependListener("SIGTERM", onSigterm);
  running.add(it);
  return () => {
    running.delete(it);
    if (running.size === 0) process.off("SIGTERM", onSigterm);
  };
}

function onSigterm(): void {
  // Other listeners decide themselves when the process ends, and may still need the clients.
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
      // A wait whose end cannot be seen has the whole time.
      if (!settled.includes(false)) die();
    });
}

/**
 * Waits until what a wait has left in the table is removed; false where that cannot be waited for.
 *
 * That is where the client is the user's, who may have other leases in it, and where a handler that outlived its
 * invocation may still run under a lease of the client's, which closing would release.
 */
async function settle({ settings: { client, ownsClient } }: Attempt): Promise<boolean> {
  if (!ownsClient || client.held().length > 0) return false;
  try {
    await client.close({ timeoutMs: graceMs });
  } catch (error) {
    // Leases and tickets that stay in the table end by themselves.
    if (!(error instanceof CloseIncompleteError)) throw error;
  }
  return true;
}
