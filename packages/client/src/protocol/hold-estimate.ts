/**
 * How long holders keep a lease, learnt from their holds, and how often a caller that wants it next looks.
 *
 * Only the rhythm of waiting depends on it: a wrong estimate costs reads or idle time, never order or exclusion.
 */
import type { LeaseRecord } from "../record.ts";
import { LeaseMemory } from "./lease-memory.ts";

/** What the holds so far let expect. */
export interface HoldEstimate {
  readonly typicalMs: number;
  /** How far holds differ from the typical one, on average. */
  readonly spreadMs: number;
}

/** Shorter holds count sooner: a caller that expects its turn too late leaves the lease idle, one too early looks once more. */
const shareOfShorter = 0.5;
const shareOfLonger = 0.3;
const shareOfSpread = 0.25;

/** The estimate after one more hold. */
export function estimateAfter(before: HoldEstimate | undefined, heldMs: number): HoldEstimate {
  if (before === undefined) return { typicalMs: heldMs, spreadMs: heldMs / 16 };
  const error = heldMs - before.typicalMs;
  const share = error < 0 ? shareOfShorter : shareOfLonger;
  return {
    typicalMs: before.typicalMs + error * share,
    spreadMs: before.spreadMs + (Math.abs(error) - before.spreadMs) * shareOfSpread,
  };
}

/** Looks come no closer to one another than this. */
const shortestLookMs = 25;
/** The first look where nothing is known of the holds. */
const firstLookMs = 250;
/** A hold that outlasts what was expected is looked at after this share of the time that it has lasted longer. */
const overdueShare = 1 / 16;
/** The looks around the expected end of a hold come after this share of a typical one. */
const stepShare = 1 / 10;

/** The longest time between two looks; it grows a little in a hold of many minutes. */
export function longestLookMs(heldMs: number): number {
  return Math.min(6_500 + heldMs / 300, 9_000);
}

/** The time between two looks around the end of a hold. */
export function lookStepMs({ typicalMs }: HoldEstimate): number {
  return Math.max(shortestLookMs, typicalMs * stepShare);
}

/**
 * In how many milliseconds a caller looks that wants to be next when this hold ends: rarely until its end comes near, then
 * in steps, then less and less often.
 */
export function nextLookMs(estimate: HoldEstimate | undefined, heldMs: number): number {
  const longest = longestLookMs(heldMs);
  if (estimate === undefined) return Math.min(Math.max(firstLookMs, heldMs * overdueShare), longest);
  const { typicalMs, spreadMs } = estimate;
  const step = lookStepMs(estimate);
  const nearInMs = typicalMs - Math.max(2 * spreadMs, step / 2) - heldMs;
  return Math.min(Math.max(step, nearInMs, (heldMs - typicalMs) * overdueShare), longest);
}

/** Callers that do not wait in line look after this share of a typical hold: more often, they would only hinder one another. */
const unorderedStepShare = 0.35;

/** Learns how long holders keep a lease from the records that looks show anyway: a use begins about when the last one ended. */
export class HoldWatch {
  #estimate: HoldEstimate | undefined;
  #last: Pick<LeaseRecord, "fencingToken" | "acquiredAt"> | undefined;

  see(record: Pick<LeaseRecord, "fencingToken" | "acquiredAt">): void {
    const uses = record.fencingToken - (this.#last?.fencingToken ?? record.fencingToken);
    if (this.#last !== undefined && uses > 0) {
      const heldMs = Math.max(0, (record.acquiredAt - this.#last.acquiredAt) / uses);
      this.#estimate = estimateAfter(this.#estimate, heldMs);
    }
    if (uses >= 0) this.#last = record;
  }

  /**
   * In how many milliseconds to look whether the lease was let go; `fraction`, from 0 to 1, keeps callers out of step; a
   * `crowd` that shares its looks takes smaller steps. Undefined until a look has shown that the lease changed hands.
   */
  nextLookMs(now: number, fraction: number, crowd = 1): number | undefined {
    if (this.#estimate === undefined || this.#last === undefined) return undefined;
    const { typicalMs, spreadMs } = this.#estimate;
    const heldMs = Math.max(0, now - this.#last.acquiredAt);
    const step = Math.max(firstLookMs, typicalMs * unorderedStepShare) / crowd;
    const nearInMs = typicalMs - 2 * spreadMs - heldMs;
    const overdueMs = (heldMs - typicalMs) * overdueShare;
    return Math.max(step, nearInMs, Math.min(overdueMs, longestLookMs(heldMs))) + step * fraction * 0.7;
  }
}

/** What each client has learnt of leases that it waits for without an order. */
export const holdWatches: LeaseMemory<HoldWatch> = new LeaseMemory(() => new HoldWatch());
