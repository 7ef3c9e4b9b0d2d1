import { type Lease, type LeaseClient, LeaseError } from "@leasehold/client";
import { JobRuns, type RunWork } from "@leasehold/jobs";
import { warn } from "../support/log.ts";
import { isTaken, runAt } from "../support/unscheduled-runs.ts";
import { runFailedMessage, type TransferKind, transferKey } from "./schema.ts";

/** How far back the run history reaches; all who open it have to agree on it. */
const keepForMs = 30 * 86_400_000;

/** What became of a run. */
export type TransferOutcome =
  | {
      readonly result: "ran";
      readonly chunks: number;
      /** How many chunks could not be transferred, and were parked with the reason. */
      readonly parked: number;
      /** Whether it stopped for want of time: then the next run goes on. */
      readonly isUnfinished: boolean;
      readonly fencingToken: number;
    }
  /** Another import or export is running. Nothing was done. */
  | {
      readonly result: "skipped";
      readonly holder: string | undefined;
      readonly expiresAt: number | undefined;
    }
  /** Another holder took the lock over. What was transferred until then stays; the rest is the other's. */
  | { readonly result: "lost"; readonly chunks: number; readonly fencingToken: number };

/** A run whose lock was taken over: it has failed in the run history, and answers what it came to. */
export class RunLostError extends Error {
  readonly outcome: Extract<TransferOutcome, { readonly result: "lost" }>;

  constructor(chunk: string, outcome: RunLostError["outcome"]) {
    super(`another holder has the lock: chunk ${chunk} was fenced off`);
    this.name = "RunLostError";
    this.outcome = outcome;
  }
}

/** Opens the history of imports and exports: under the lock's key, next to the lock. */
export function openTransferRuns(leases: LeaseClient, leaseDurationMs?: number): JobRuns {
  const lasting = leaseDurationMs === undefined ? {} : { leaseDurationMs };
  // Nothing tries a run again: what it left is done by the next one, under its own name.
  return new JobRuns(leases, transferKey, { maxAttempts: 1, heartbeat: false, keepForMs, ...lasting });
}

/**
 * Does a run of the function under the lock, and has it in the run history from its begin to its end: 2 requests.
 *
 * Its name is the time at which it got the lock. One that dies shows as lost when its lease, as long as the lock's, has
 * ended; one that fails, as failed, with a log line that an alarm counts.
 */
export async function recordRun(
  leases: LeaseClient,
  { acquiredAt, expiresAt }: Lease,
  work: RunWork<TransferOutcome>,
): Promise<TransferOutcome> {
  const runs = openTransferRuns(leases, expiresAt - acquiredAt);
  return await runAt(runs, acquiredAt, async (run) => {
    try {
      return await work(run);
    } catch (error) {
      warnOfFailure(run.slot, error);
      throw error;
    }
  }).catch((error: unknown) => {
    if (error instanceof RunLostError) return error.outcome;
    throw error;
  });
}

/**
 * Has the end of a workflow's run in the run history, under the time at which the workflow got the lock: 2 requests. Its
 * begin, and what it is at, is in the workflow's own history.
 *
 * A record is no reason to fail: what the service refuses is logged.
 */
export async function recordEnd(
  leases: LeaseClient,
  { acquiredAt }: Lease,
  kind: TransferKind,
  error: unknown,
): Promise<void> {
  const slot = new Date(acquiredAt).toISOString();
  try {
    await openTransferRuns(leases).run(slot, (run) => {
      run.progress({ kind });
      if (error !== undefined) throw error;
    });
  } catch (failure) {
    if (failure === error) return warnOfFailure(slot, error);
    // The step came again after its answer was lost.
    if (isTaken(failure)) return;
    if (!(failure instanceof LeaseError)) throw failure;
    warn("the end of a run was not recorded", { job: transferKey, problem: String(failure) });
  }
}

function warnOfFailure(slot: string, error: unknown): void {
  warn(runFailedMessage, { job: transferKey, slot, problem: String(error) });
}
