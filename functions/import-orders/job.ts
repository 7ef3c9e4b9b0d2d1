import {
  InvalidOptionsError,
  type Lease,
  type LeaseClient,
  type LeaseHandle,
  LeaseLostError,
  LeaseUnavailableError,
} from "@leasehold/client";
import type { RunContext } from "@leasehold/jobs";
import { choiceIn, durationIn, type Fields, fieldsOf, nameIn } from "../support/input.ts";
import { checkKeyIs } from "../support/key-policy.ts";
import { hasTimeLeft, leaseForInvocation, waitWithin } from "../support/working-time.ts";
import { RunLostError, recordEnd, recordRun, type TransferOutcome } from "./run-history.ts";
import { type TransferKind, transferKey, transferKinds } from "./schema.ts";
import type { ChunkResult, OrderTransfer } from "./transfer.ts";

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
  const fields = fieldsOf(event, ["kind", "waitMs", "timeoutMs", "lease", "chunk", "putBack"]);
  const kind = choiceIn(fields, "kind", transferKinds);
  if (fields.putBack !== undefined) {
    fieldsOf(event, ["kind", "putBack"]);
    const chunk = nameIn(fields, "putBack");
    return { chunk, isPutBack: await job.transfer.putBack(kind, chunk, job.remainingMs) };
  }
  if (fields.lease === undefined) {
    if (fields.chunk !== undefined) {
      throw new InvalidOptionsError("event.chunk", fields.chunk, "nothing without the workflow's lease");
    }
    return await runTransfer(job, kind, {
      waitMs: durationIn(fields, "waitMs", 0),
      timeoutMs: fields.timeoutMs === undefined ? undefined : timeoutIn(fields),
    });
  }
  for (const field of ["waitMs", "timeoutMs"]) {
    if (fields[field] === undefined) continue;
    const allowed = "nothing beside a lease, which the workflow has taken";
    throw new InvalidOptionsError(`event.${field}`, fields[field], allowed);
  }
  const chunk = fields.chunk === undefined ? undefined : nameIn(fields, "chunk");
  return await transferStep(job, kind, fields.lease as LeaseHandle, chunk);
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
export interface RunLimits {
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
export async function transferStep(
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
