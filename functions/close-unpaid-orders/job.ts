import {
  type Lease,
  type LeaseClient,
  LeaseLostError,
  type LeaseLostReason,
  SlotDoneError,
} from "@leasehold/client";
import { JobRuns, type JobRunsOptions, type RunContext, RunsExhaustedError } from "@leasehold/jobs";
import { warn } from "../support/leases.ts";
import { hasTimeLeft } from "../support/working-time.ts";
import type { FoundOrder, OrderBook } from "./orders.ts";
import { parkedMessage } from "./schema.ts";

/** The lock that lets one instance at a time close orders. */
export const closeUnpaidOrdersKey = "close-unpaid-orders";

/** What the job works with. */
export interface CloseUnpaidOrders {
  readonly orders: OrderBook;
  /** Milliseconds that are left for the whole run. A run begins no order when they are nearly over. */
  readonly remainingMs: () => number;
  /**
   * Called between the check of the lease and the write, with the number of orders that this run has closed so far.
   * For tests and demonstrations of incidents at that point.
   * @default - none
   */
  readonly beforeClose?: (order: FoundOrder, lease: Lease, closed: number) => Promise<void>;
}

/** The result of a run under the lock. */
export type JobOutcome =
  /** This instance had the lease to the end of its run. */
  | {
      readonly result: "ran";
      readonly fencingToken: number;
      readonly closed: number;
      /** How many orders could not be closed, and were parked with the reason. */
      readonly parked: number;
      /** Whether its time was over before its orders were: the next run goes on with the rest. */
      readonly isUnfinished: boolean;
    }
  /** The lease ended during the run. Closed orders stay closed; the next run does the rest. */
  | {
      readonly result: "lost";
      readonly fencingToken: number;
      readonly closed: number;
      readonly reason: LeaseLostReason;
      /** The order whose write came too late and was refused; undefined when the loss was noticed before a write. */
      readonly fencedOff: string | undefined;
    };

/** How far a run is. */
interface Progress {
  readonly closed: number;
  readonly parked: number;
}

/**
 * Closes the orders that were to be paid before `dueBefore` and were not, and gives their stock back, under the caller's
 * lease: it neither acquires nor releases. Calls `onProgress` with the progress of this run.
 *
 * Every order is closed once, even when instances die: each closing is one transaction, under the lease. Pass the tick's
 * scheduled time, not the time of its arrival, so that late triggers do the same work.
 *
 * Rejects with the error of a service that does not answer, and with the signal's reason when the signal aborts for
 * another cause than the loss of the lease. Closed orders stay closed.
 */
export async function closeOrdersUnder(
  lease: Lease,
  { orders, beforeClose, remainingMs }: CloseUnpaidOrders,
  dueBefore: number,
  signal?: AbortSignal,
  onProgress?: (progress: Progress) => void,
): Promise<JobOutcome> {
  const { fencingToken } = lease;
  let [closed, parked] = [0, 0];
  for await (const order of orders.unpaid(dueBefore)) {
    if (lease.signal.aborted) {
      return { result: "lost", fencingToken, closed, reason: lossReason(lease), fencedOff: undefined };
    }
    if (!hasTimeLeft(remainingMs())) {
      return { result: "ran", fencingToken, closed, parked, isUnfinished: true };
    }
    signal?.throwIfAborted();
    await beforeClose?.(order, lease, closed);
    const result = await orders.close(order, lease, remainingMs);
    if (result === "fencedOff") {
      return { result: "lost", fencingToken, closed, reason: lossReason(lease), fencedOff: order.orderId };
    }
    if (result === "notOpen") continue;
    if (result === "closed") closed += 1;
    else parked += 1;
    onProgress?.({ closed, parked });
  }
  return { result: "ran", fencingToken, closed, parked, isUnfinished: false };
}

/** A lease without heartbeat learns from a refused write that it was taken before its own time was over. */
function lossReason({ signal }: Lease): LeaseLostReason {
  return signal.reason instanceof LeaseLostError ? signal.reason.reason : "taken";
}

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
interface RunUnderLock {
  readonly work: CloseUnpaidOrders & {
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
