import { type Clock, type Moment, moment } from "./clock.ts";

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
  clock: Clock,
  budgetMs: number,
  outer: AbortSignal | undefined,
  task: (call: CallOptions) => Promise<T>,
  since: Moment = moment(clock),
): Promise<T> {
  outer?.throwIfAborted();
  const controller = new AbortController();
  const { signal } = controller;
  const isCurrent = (): boolean => {
    const now = moment(clock);
    const isOld =
      now.monotonic - since.monotonic > budgetMs || now.wall - since.wall > budgetMs + wallToleranceMs;
    return !signal.aborted && !isOld;
  };
  const onOuterAbort = (): void => controller.abort(outer?.reason);
  outer?.addEventListener("abort", onOuterAbort, { once: true });
  const cancel = clock.schedule(
    () => controller.abort(new Error(`no answer within ${Math.round(budgetMs)} ms`)),
    budgetMs,
  );
  try {
    return await task({ signal, isCurrent });
  } finally {
    cancel();
    outer?.removeEventListener("abort", onOuterAbort);
  }
}
