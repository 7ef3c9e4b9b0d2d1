import { LeaseServiceError } from "../errors/errors.ts";
import type { Clock } from "./clock.ts";

/** Runs an attempt that is given up as unanswered when its time is over, or when the caller's signal aborts. */
export async function bounded<T>(
  clock: Clock,
  budgetMs: number,
  signal: AbortSignal | undefined,
  attempt: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const bound = new AbortController();
  const cancel = clock.schedule(() => {
    const message = `no answer within ${Math.round(budgetMs)} ms, when the time to wait was over`;
    bound.abort(new LeaseServiceError("LEASE_NO_ANSWER", message));
  }, budgetMs);
  try {
    return await attempt(signal ? AbortSignal.any([signal, bound.signal]) : bound.signal);
  } finally {
    cancel();
  }
}
