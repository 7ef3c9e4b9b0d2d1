import { type Lease, type LeaseClient, LeaseLostError, SlotDoneError } from "@leasehold/client";
import { JobRuns, type JobRunsOptions, type RunContext, RunsExhaustedError } from "@leasehold/jobs";
import { warn } from "../support/log.ts";
import { type CloseUnpaidOrders, closeOrdersUnder, type JobOutcome, type Progress } from "./job.ts";
import { parkedMessage } from "./schema.ts";

/**
 * Lambda invokes for an event and for its two retries. So a slot has the attempts of one trigger, however often it is
 * delivered.
 */
export const attemptsOfTrigger = 3;

/** How long the lock and a run last unless they are renewed, by default. */
export const usualLeaseMs = 45_000;

/** How far back the run history reaches; all programs that run the job have to use the same value. */
const keepForMs = 30 * 86_400_000;

type Ran = Extract<JobOutcome, { readonly result: "ran" }>;

/** The result of a slot under the lock. */
export type SlotOutcome =
  | Ran
  /** This slot, or a later one, has had its run. Nothing was done. */
  | { readonly result: "doneBefore"; readonly slot: string }
  /** The slot has had all its attempts and none succeeded. Nothing was done; an operator may give it more. */
  | { readonly result: "exhausted"; readonly slot: string; readonly attempts: number };

/** What a run needs: the orders, and the lock that it runs under. */
export interface RunUnderLock {
  readonly work: Pick<CloseUnpaidOrders, "orders" | "beforeClose" | "remainingMs"> & {
    /** Epoch milliseconds. */
    readonly now: () => number;
  };
  readonly lock: { readonly lease: Lease; readonly signal: AbortSignal };
}

/** Opens the history of the job's runs: under the lock's key, next to the lock. */
export function openRuns(
  leases: LeaseClient,
  { key, ...options }: { readonly key: string } & Pick<JobRunsOptions, "leaseDurationMs" | "maxAttempts">,
): JobRuns {
  return new JobRuns(leases, key, { maxAttempts: attemptsOfTrigger, keepForMs, ...options });
}

/**
 * Runs a slot under the lock, once: 2 requests of the run history, to begin and to end, and those of the orders.
 *
 * Waits for an earlier attempt at the slot that has neither ended nor expired. Rejects with the work's error and with
 * LeaseLostError; the run history then has the run as failed or lost. Rejects with LeaseUnavailableError when the
 * wait is over, and with the signal's reason.
 */
export async function runSlot(
  { runs, work, lock }: RunUnderLock & { readonly runs: JobRuns },
  slot: Date,
  waitMs: number,
): Promise<SlotOutcome> {
  try {
    const { signal, lease } = lock;
    // The lock's owner is the invocation, and Lambda's retry has the same one: the dead attempt is taken over like
    // its lock.
    const terms = { waitMs, signal, owner: lease.owner, reentrant: true };
    return await runs.run(slot, (run) => closeInRun(run, { work, lock }), terms);
  } catch (error) {
    if (error instanceof SlotDoneError) return { result: "doneBefore", slot: error.slot };
    if (!(error instanceof RunsExhaustedError)) throw error;
    return { result: "exhausted", slot: error.slot, attempts: error.attempts };
  }
}

/**
 * The work of one run. Each order checks the lock's lease alone, not the run's. A slot begins only under the lock, so
 * an attempt with a successor has lost the lock before, and a second check would double the cost.
 *
 * A run whose time is over before its orders are has succeeded so far: the next slot's run closes everything that was
 * due before its own time, and so the rest. Orders that are not due yet stay open, whatever the slot says.
 *
 * Rejects with LeaseLostError when it is fenced off or notices that the lock is lost.
 */
export async function closeInRun(run: RunContext, { work, lock }: RunUnderLock): Promise<Ran> {
  const { lease } = lock;
  const report = (progress: Progress): void => run.progress(progress);
  report({ closed: 0, parked: 0 });
  const dueBefore = Math.min(Date.parse(run.slot), work.now());
  const outcome = await closeOrdersUnder(lease, work, dueBefore, run.signal, report);
  if (outcome.result === "ran") {
    const { parked, isUnfinished } = outcome;
    const remarks = [
      ...(isUnfinished ? ["unfinished: the next run goes on"] : []),
      ...(parked > 0 ? [`${parked} orders could not be closed, and are parked`] : []),
    ];
    if (remarks.length > 0) run.remark(remarks.join("; "));
    if (parked > 0) warn(parkedMessage, { slot: run.slot, parked });
    return outcome;
  }
  const { closed, reason, fencedOff } = outcome;
  const detail = fencedOff === undefined ? `after ${closed} orders` : `order ${fencedOff} was fenced off`;
  throw new LeaseLostError(lease.key, reason, detail);
}
