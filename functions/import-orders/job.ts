import {
  InvalidOptionsError,
  type Lease,
  type LeaseClient,
  LeaseError,
  type LeaseHandle,
  LeaseLostError,
  LeaseUnavailableError,
} from "@leasehold/client";
import { JobRuns, type RunContext, type RunWork } from "@leasehold/jobs";
import { checkKeyIs, choiceIn, durationIn, type Fields, fieldsOf, nameIn } from "../support/input.ts";
import { warn } from "../support/leases.ts";
import { isTaken, runAt } from "../support/unscheduled-runs.ts";
import { hasTimeLeft, leaseForInvocation, waitWithin } from "../support/working-time.ts";
import { runFailedMessage, type TransferKind, transferKey, transferKinds } from "./schema.ts";
import type { ChunkResult, OrderTransfer } from "./transfer.ts";

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

/** What the job works with. */
export interface TransferJob {
  readonly leases: LeaseClient;
  /** For the leases of workflows, which go on when the step is over. */
  readonly adopting: LeaseClient;
  readonly transfer: Pick<OrderTransfer, "nextChunk" | "transfer" | "putBack">;
  /** Milliseconds until the invocation ends. */
  readonly remainingMs: () => number;
}

/** What became of a step of a workflow. */
export interface StepOutcome {
  /** `nothingLeft` when no chunk was named and none was waiting. */
  readonly result: Exclude<ChunkResult, "fencedOff"> | "nothingLeft";
  readonly chunk?: string;
}

/** Whether a parked chunk waits again; not when there was none. */
export interface PutBack {
  readonly chunk: string;
  readonly isPutBack: boolean;
}

/** The fields of each form of event, besides its kind. */
const fieldsOfForm = {
  run: ["waitMs", "timeoutMs"],
  step: ["lease", "chunk"],
  putBack: ["putBack"],
} as const;

/**
 * Does what an event asks for: a run of its own, or one step of a workflow that holds the lock.
 *
 *     { "kind": "import", "waitMs": 0, "timeoutMs": 60000 }           a run; both limits are optional
 *     { "kind": "import", "lease": handle }                         the next chunk, for a loop
 *     { "kind": "import", "lease": handle, "chunk": "2026-03-01/7" }  this chunk, for a Map
 *     { "kind": "import", "putBack": "2026-03-01/7" }                 a parked chunk waits again
 *
 * Rejects with InvalidOptionsError and KeyNotAllowedError before anything is sent.
 */
export async function transferOrders(
  job: TransferJob,
  event: unknown,
): Promise<TransferOutcome | StepOutcome | PutBack> {
  const given = fieldsOf(event);
  const own = given.lease === undefined ? "run" : "step";
  const form = given.putBack === undefined ? own : "putBack";
  const fields = fieldsOf(event, ["kind", ...fieldsOfForm[form]]);
  const kind = choiceIn(fields, "kind", transferKinds);
  switch (form) {
    case "putBack": {
      const chunk = nameIn(fields, "putBack");
      return { chunk, isPutBack: await job.transfer.putBack(kind, chunk, job.remainingMs) };
    }
    case "step": {
      const chunk = fields.chunk === undefined ? undefined : nameIn(fields, "chunk");
      return await transferStep(job, kind, fields.lease as LeaseHandle, chunk);
    }
    case "run":
      return await runTransfer(job, kind, {
        waitMs: durationIn(fields, "waitMs", 0),
        timeoutMs: fields.timeoutMs === undefined ? undefined : timeoutIn(fields),
      });
  }
}

/** The shortest time that a run may be given. */
const shortestTimeoutMs = 3_000;

function timeoutIn(fields: Fields): number {
  const timeoutMs = durationIn(fields, "timeoutMs", 0);
  if (timeoutMs >= shortestTimeoutMs) return timeoutMs;
  throw new InvalidOptionsError(
    "event.timeoutMs",
    timeoutMs,
    `a whole number of milliseconds from ${shortestTimeoutMs} to 86400000`,
  );
}

/** The limits of a run. */
interface RunLimits {
  /** How long it waits for the lock, and at most half of the invocation's time. @default 0 */
  readonly waitMs?: number;
  /**
   * How long it may take once it has the lock. Its lease is as long, so another run can take over from then on. It begins
   * no chunk in the last 2 seconds. @default - as long as the invocation
   */
  readonly timeoutMs?: number | undefined;
}

/**
 * Transfers whatever is pending, under a lease that lasts as long as the invocation, or as long as its timeout.
 *
 * Stops in time and leaves the rest to the next run. One that dies, or is frozen beyond its lease, is taken over at its
 * end: its successor goes on with the chunks that are still pending, and the gate keeps late writes out. The run is in the
 * run history, from its first look to its end.
 */
export async function runTransfer(
  job: TransferJob,
  kind: TransferKind,
  { waitMs = 0, timeoutMs = Number.POSITIVE_INFINITY }: RunLimits = {},
): Promise<TransferOutcome> {
  const { leases, remainingMs } = job;
  const options = {
    leaseDurationMs: leaseForInvocation(Math.min(remainingMs(), timeoutMs)),
    waitMs: waitWithin(waitMs, remainingMs()),
  };
  try {
    await using lease = await leases.acquire(transferKey, options);
    // Without a timeout it is the invocation that ends the run.
    const leftMs = Number.isFinite(timeoutMs)
      ? () => Math.min(remainingMs(), lease.remainingMs())
      : remainingMs;
    const limited = { ...job, remainingMs: leftMs };
    return await recordRun(leases, lease, (run) => transferPending(limited, kind, lease, run));
  } catch (error) {
    if (!(error instanceof LeaseUnavailableError)) throw error;
    return { result: "skipped", holder: error.holder, expiresAt: error.expiresAt };
  }
}

async function transferPending(
  { transfer, remainingMs }: TransferJob,
  kind: TransferKind,
  lease: Lease,
  run: RunContext,
): Promise<Exclude<TransferOutcome, { readonly result: "skipped" }>> {
  const { fencingToken } = lease;
  for (let [chunks, parked] = [0, 0]; ; ) {
    run.progress({ kind, chunks, parked });
    const chunk = await transfer.nextChunk(kind);
    if (chunk === undefined) return { result: "ran", chunks, parked, isUnfinished: false, fencingToken };
    if (!hasTimeLeft(remainingMs())) {
      run.remark("unfinished: the next run goes on");
      return { result: "ran", chunks, parked, isUnfinished: true, fencingToken };
    }
    // Not `held`: the fence keeps late writes out, and a lease without a successor is still valid for it.
    const result = await transfer.transfer(kind, chunk, lease, remainingMs);
    if (result === "fencedOff") throw new RunLostError(chunk, { result: "lost", chunks, fencingToken });
    if (result === "transferred") chunks += 1;
    if (result === "parked") parked += 1;
  }
}

/**
 * Does one chunk for a workflow that holds the lock and whose heartbeat keeps it.
 *
 * The handle may be as old as the workflow: the fence alone decides. A step that is repeated after its answer was lost
 * finds its chunk done. The step that finds nothing left, or fails, is the workflow's last: the run history has its end.
 * Rejects with LeaseLostError when a later holder has written.
 */
async function transferStep(
  { leases, adopting, transfer, remainingMs }: TransferJob,
  kind: TransferKind,
  handle: LeaseHandle,
  named: string | undefined,
): Promise<StepOutcome> {
  const lease = adopting.adopt(handle);
  checkKeyIs(lease.key, transferKey);
  try {
    const chunk = named ?? (await transfer.nextChunk(kind));
    if (chunk === undefined) {
      await recordEnd(leases, lease, kind, undefined);
      return { result: "nothingLeft" };
    }
    const result = await transfer.transfer(kind, chunk, lease, remainingMs);
    if (result === "fencedOff") throw new LeaseLostError(lease.key, "taken", `chunk ${chunk} was fenced off`);
    return { result, chunk };
  } catch (error) {
    await recordEnd(leases, lease, kind, error);
    throw error;
  }
}

/** How far back the run history reaches; all who open it have to agree on it. */
const keepForMs = 30 * 86_400_000;

/** A run whose lock was taken over: it has failed in the run history, and answers what it came to. */
class RunLostError extends Error {
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
async function recordRun(
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
async function recordEnd(
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
