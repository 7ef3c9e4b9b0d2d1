/**
 * How long holders keep a lease, learnt from earlier holds, and how often a waiting caller looks.
 *
 * Only the rhythm of waiting depends on it: a wrong estimate costs reads or idle time, never order or exclusion.
 */
import type { LeaseRecord } from "../base/lease-record.ts";
import { LeaseMemory } from "./lease-memory.ts";

/** The expected duration of a hold, learnt from earlier holds. */
export interface HoldEstimate {
  readonly typicalMs: number;
  /** How far holds differ from the typical one, on average. */
  readonly spreadMs: number;
}

/**
 * Shorter holds count sooner: a caller that looks too late leaves the lease idle, and a caller that looks too early
 * only looks again.
 */
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

/** The shortest time between two looks. */
const shortestLookMs = 25;
/** The first look while no hold is known. */
const firstLookMs = 250;
/** If a hold lasts longer than expected, the next look comes after this share of the excess. */
const overdueShare = 1 / 16;
/** Around the expected end of a hold, looks are this share of a typical hold apart. */
const stepShare = 1 / 10;

/** The longest time between two looks; it grows a little during a hold of many minutes. */
export function longestLookMs(heldMs: number): number {
  return Math.min(6_500 + heldMs / 300, 9_000);
}

/** The time between two looks around the end of a hold. */
export function lookStepMs({ typicalMs }: HoldEstimate): number {
  return Math.max(shortestLookMs, typicalMs * stepShare);
}

/**
 * Milliseconds until the next look of a caller that wants to be next: seldom until the expected end is near, then in
 * steps, then less and less often.
 */
export function nextLookMs(estimate: HoldEstimate | undefined, heldMs: number): number {
  const longest = longestLookMs(heldMs);
  if (estimate === undefined) return Math.min(Math.max(firstLookMs, heldMs * overdueShare), longest);
  const { typicalMs, spreadMs } = estimate;
  const step = lookStepMs(estimate);
  const nearInMs = typicalMs - Math.max(2 * spreadMs, step / 2) - heldMs;
  return Math.min(Math.max(step, nearInMs, (heldMs - typicalMs) * overdueShare), longest);
}

/** Callers without an order look after this share of a typical hold. More often they would only hinder one another. */
const unorderedStepShare = 0.35;

/**
 * Learns how long holders keep a lease from the records that looks show anyway. It assumes that a hold begins when the
 * last one ended.
 */
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
   * Milliseconds until the next look for a release; undefined until a look has shown that the lease changed hands.
   * `fraction`, from 0 to 1, keeps callers out of step. A `crowd` that shares its looks takes smaller steps.
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

/** What each client has learnt of the leases that it waits for without an order. */
export const holdWatches: LeaseMemory<HoldWatch> = new LeaseMemory(() => new HoldWatch());
