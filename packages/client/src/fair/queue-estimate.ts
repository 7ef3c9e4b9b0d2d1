/** How long a waiter has to wait by what is known, and how long it sleeps before it looks again. */
import { type HoldEstimate, longestLookMs, lookStepMs, nextLookMs } from "../protocol/hold-estimate.ts";

/** What a waiter goes by. */
export interface QueueEstimate {
  /** 1 for the head of the line. */
  readonly position: number;
  /** 1 for a waiter whose turn comes when the lease ends that is looked at, 2 for the next one after that. */
  readonly round: number;
  readonly holds: HoldEstimate | undefined;
  /** For how long the lease that is looked at has been held; undefined while there is none. */
  readonly heldMs: number | undefined;
}

/**
 * A waiter behind the head sleeps until its turn comes near where holds are all alike, and for half of that time where they
 * differ as much as they last: a larger share leaves the lease idle for longer, a smaller one costs reads.
 */
const shareForSpread = 0.6;

/** When its turn comes, about, in milliseconds; undefined while nothing is known of the holds. */
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
  // Between two holds passes half a step of the head's, on average; the last one need not be watched from its beginning.
  const headInMs = remainingMs(estimate, holds) + (ahead - 1) * (holds.typicalMs + step / 2);
  const calmMs = Math.max(0, holds.typicalMs - 2 * holds.spreadMs);
  const share = 1 - shareForSpread * Math.min(1, holds.spreadMs / Math.max(1, holds.typicalMs));
  const wakeInMs = (headInMs + calmMs) * share;
  return Math.min(Math.max(wakeInMs, 2 * step), longest);
}

/** Between two uses nothing remains of a hold. */
function remainingMs({ heldMs }: QueueEstimate, { typicalMs }: HoldEstimate): number {
  return heldMs === undefined ? 0 : Math.max(0, typicalMs - heldMs);
}
