/** How long a waiter expects to wait, and how long it sleeps between looks. */
import { type HoldEstimate, longestLookMs, lookStepMs, nextLookMs } from "../../core/hold-estimate.ts";

/** What a waiter's estimates are based on. */
export interface QueueEstimate {
  /** 1 for the head of the line. */
  readonly position: number;
  /** Number of hand-overs until this waiter's turn; 1 if the next one is its own. */
  readonly round: number;
  readonly holds: HoldEstimate | undefined;
  /** How long the current lease has been held; undefined while the lock is free. */
  readonly heldMs: number | undefined;
}

/**
 * A waiter behind the head sleeps until its turn is near if all holds take equally long. It sleeps half of that time if
 * holds vary by as much as they last. A larger share leaves the lease idle for longer, and a smaller one costs reads.
 */
const shareForSpread = 0.6;

/** About when its turn comes, in milliseconds; undefined while no hold is known. */
export function estimatedWaitMs(estimate: QueueEstimate): number | undefined {
  const { round, holds } = estimate;
  return holds && Math.round(remainingMs(estimate, holds) + (round - 1) * holds.typicalMs);
}

/** How long a waiter sleeps before it looks again, in milliseconds. */
export function pollIntervalMs(estimate: QueueEstimate): number {
  const { round, holds, heldMs = 0 } = estimate;
  const soonest = nextLookMs(holds, heldMs);
  const ahead = round - 1;
  if (ahead === 0) return soonest;
  const longest = longestLookMs(heldMs);
  if (holds === undefined) return Math.min(soonest * 2 * ahead, longest);
  const step = lookStepMs(holds);
  // On average, half a step of the head passes between two holds. The last hold need not be watched from its beginning.
  const headInMs = remainingMs(estimate, holds) + (ahead - 1) * (holds.typicalMs + step / 2);
  const calmMs = Math.max(0, holds.typicalMs - 2 * holds.spreadMs);
  const share = 1 - shareForSpread * Math.min(1, holds.spreadMs / Math.max(1, holds.typicalMs));
  const wakeInMs = (headInMs + calmMs) * share;
  return Math.min(Math.max(wakeInMs, 2 * step), longest);
}

/** The rest of the current hold; 0 while the lock is free. */
function remainingMs({ heldMs }: QueueEstimate, { typicalMs }: HoldEstimate): number {
  return heldMs === undefined ? 0 : Math.max(0, typicalMs - heldMs);
}
