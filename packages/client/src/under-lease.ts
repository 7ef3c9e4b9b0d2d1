import { LeaseLostError } from "./errors/errors.ts";
import { ifOperational } from "./errors/operational.ts";
import type { Lease } from "./lease.ts";

/**
 * Runs work under a lease, and lets the lease go whatever becomes of the work.
 *
 * The work's own error comes first: a mistake in the program that the release meets then is told by an `error` event
 * alone. A result is given only if the lease protected it to its end, which completes the lease's slot, or was revoked; else
 * LeaseLostError. A release that fails, or of which nobody knows whether it has landed, does not hide a result: what it
 * leaves frees itself when the lease ends.
 */
export async function runUnder<T>(lease: Lease, work: (lease: Lease) => Promise<T> | T): Promise<T> {
  let isComplete = false;
  try {
    const result = await work(lease);
    const { loss } = lease;
    if (loss !== undefined && loss.reason !== "revoked") throw loss;
    // What was revoked has perhaps stopped half-way: its slot stays open.
    isComplete = loss === undefined;
    if (isComplete) {
      const wasOurs = await lease.complete().catch(ifOperational(undefined));
      // Broken or taken while it had time left, which nothing has told the work.
      if (wasOurs === false) throw new LeaseLostError(lease.key, "taken");
    }
    return result;
  } finally {
    // Ignored: the work's own error comes first, and the `error` event tells of a mistake.
    if (!isComplete) await lease.release().catch(() => false);
  }
}
