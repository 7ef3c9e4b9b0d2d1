import {
  type Lease,
  type LeaseClient,
  LeaseLostError,
  type LeaseLostReason,
  LeaseUnavailableError,
} from "@leasehold/client";
import { hasTimeLeft } from "../support/working-time.ts";
import type { FoundOrder } from "./order.ts";
import type { OrderBook } from "./orders.ts";

/** The lock that lets one instance at a time close orders. */
export const closeUnpaidOrdersKey = "close-unpaid-orders";

/** What the job works with. */
export interface CloseUnpaidOrders {
  readonly leases: LeaseClient;
  readonly orders: OrderBook;
  /** Longer than a run takes, and shorter than a tick, so that the next tick can take over from a dead run. */
  readonly leaseDurationMs: number;
  /**
   * How long the lock is held after it was acquired, however short the run. Longer than the triggers of one tick can
   * be apart; shorter than a tick, by more than the clocks differ.
   */
  readonly lockAtLeastForMs: number;
  /** Milliseconds that are left for the whole run. A run begins no order when they are nearly over. */
  readonly remainingMs: () => number;
  /**
   * Called between the check of the lease and the write, with the number of orders that this run has closed so far.
   * For tests and demonstrations of incidents at that point.
   * @default - none
   */
  readonly beforeClose?: (order: FoundOrder, lease: Lease, closed: number) => Promise<void>;
}

/** The result of one trigger. */
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
  /** Another instance runs, or the lock is in its cooldown after a run. Nothing was done. */
  | {
      readonly result: "skipped";
      /** Undefined when the lock was released at that moment. */
      readonly holder: string | undefined;
      /** Epoch milliseconds. */
      readonly expiresAt: number | undefined;
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

/**
 * Closes the orders that were to be paid before `dueBefore` and were not, and gives their stock back.
 *
 * Of many instances that are triggered at once, one runs and the others skip, also when a trigger comes twice. Every
 * order is closed once, even when instances die: each closing is one transaction, under the lease. Pass the tick's
 * scheduled time, not the time of its arrival, so that late triggers do the same work.
 *
 * Rejects with the error of a service that does not answer; the lock is released then, and the next tick goes on.
 *
 * ```ts
 * const outcome = await closeUnpaidOrders(job, Date.parse(event.time));
 * ```
 */
export async function closeUnpaidOrders(job: CloseUnpaidOrders, dueBefore: number): Promise<JobOutcome> {
  const { leases, leaseDurationMs, lockAtLeastForMs } = job;
  try {
    await using lease = await leases.acquire(closeUnpaidOrdersKey, { leaseDurationMs, lockAtLeastForMs });
    return await closeOrdersUnder(lease, job, dueBefore);
  } catch (error) {
    if (!(error instanceof LeaseUnavailableError)) throw error;
    return { result: "skipped", holder: error.holder, expiresAt: error.expiresAt };
  }
}

/** How far a run is. */
export interface Progress {
  readonly closed: number;
  readonly parked: number;
}

/**
 * The work of {@link closeUnpaidOrders} under the caller's lease: it neither acquires nor releases. Calls
 * `onProgress` with the progress of this run.
 *
 * Rejects with the signal's reason when the signal aborts for another cause than the loss of the lease. Closed orders
 * stay closed.
 */
export async function closeOrdersUnder(
  lease: Lease,
  { orders, beforeClose, remainingMs }: Pick<CloseUnpaidOrders, "orders" | "beforeClose" | "remainingMs">,
  dueBefore: number,
  signal?: AbortSignal,
  onProgress?: (progress: Progress) => void,
): Promise<Exclude<JobOutcome, { readonly result: "skipped" }>> {
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
