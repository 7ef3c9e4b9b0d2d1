import { LeaseServiceError } from "../errors/errors.ts";
import type { Moment } from "./clock.ts";
import type { ServiceClock, ServiceTime } from "./service-clock.ts";

/** What bounds one call to a store. */
export interface CallOptions {
  /** Once it aborts, the call rejects promptly with a {@link LeaseServiceError}; its write may have landed. */
  readonly signal: AbortSignal;
  /**
   * To be asked before every attempt is sent: a request that is too old must not be sent any more.
   *
   * A process that was frozen for days wakes with its retry due. By then ttl may have removed the item, and the
   * fencing tokens with it.
   */
  readonly isCurrent: () => boolean;
  /**
   * To be called when an attempt is sent; what it gives, when its answer has arrived, with what the answer says of the
   * service's time, or undefined. @default - the caller does not want to know the time
   */
  readonly timed?: () => (time: ServiceTime | undefined) => void;
}

/** A wall clock may be set by this much within a call without making its request too old. */
const wallToleranceMs = 1_000;

/**
 * Runs a call within `budgetMs`, counted from `since`: its signal aborts then, or when the outer signal does, and its
 * request is current until then by both clocks, whichever timer fires first after a freeze.
 *
 * The call has to settle promptly once its signal aborts.
 */
export async function withBudget<T>(
  clock: ServiceClock,
  budgetMs: number,
  outer: AbortSignal | undefined,
  task: (call: CallOptions) => Promise<T>,
  since: Moment = clock.moment(),
): Promise<T> {
  outer?.throwIfAborted();
  const controller = new AbortController();
  const { signal } = controller;
  const isCurrent = (): boolean => {
    const now = clock.moment();
    const isOld =
      now.monotonic - since.monotonic > budgetMs || now.wall - since.wall > budgetMs + wallToleranceMs;
    return !signal.aborted && !isOld;
  };
  const timed = (): ((time: ServiceTime | undefined) => void) => {
    const sentAt = clock.moment();
    return (time) => clock.note(time, sentAt);
  };
  const onOuterAbort = (): void => controller.abort(outer?.reason);
  outer?.addEventListener("abort", onOuterAbort, { once: true });
  const cancel = clock.schedule(() => {
    const message = `no answer within ${Math.round(budgetMs)} ms`;
    controller.abort(new LeaseServiceError("LEASE_NO_ANSWER", message));
  }, budgetMs);
  try {
    return await task({ signal, isCurrent, timed });
  } finally {
    cancel();
    outer?.removeEventListener("abort", onOuterAbort);
  }
}
