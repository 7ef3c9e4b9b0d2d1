import type { LeaseEvent } from "../events.ts";
import type { CallOptions, LeaseStore } from "../store.ts";
import { withBudget } from "../time/budget.ts";
import type { Clock } from "../time/clock.ts";
import type { ClockOffset } from "../time/skew.ts";

/** Where tokens and jitter come from. */
export interface Randomness {
  /** A new unique token. */
  token(): string;
  /** A number from 0 (included) to 1 (excluded). */
  fraction(): number;
}

/** What every part of the protocol works with; one for each client. */
export interface ProtocolContext {
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly randomness: Randomness;
  readonly clockSkewMs: number;
  readonly retentionMs: number;
  readonly publish: (event: LeaseEvent) => void;
  /** Takes note of what an answer said about the service's clock. */
  readonly noteOffset: (offset: ClockOffset | undefined) => void;
}

/** How long one call waits for its answer, retries included, when its caller sets no nearer bound. */
export const callBudgetMs = 10_000;

/** An answer is given at least this much time: one that comes too late for its lease is made good by a renewal. */
export const shortestBudgetMs = 1_000;

/** Makes one call to the store that nothing but its own budget bounds. */
export function callStore<T>(
  { clock, store }: ProtocolContext,
  task: (store: LeaseStore, call: CallOptions) => Promise<T>,
): Promise<T> {
  return withBudget(clock, callBudgetMs, undefined, (call) => task(store, call));
}
