import type { LeaseClient, RetryStrategy } from "@leasehold/client";
import { type CacheFailedEvent, SingleFlight, type ValueSource } from "@leasehold/client/single-flight";

/** One call for a resource. */
export interface CacheRequest<T> {
  readonly leases: LeaseClient;
  readonly key: string;
  /** Computes a value, which has to be plain JSON; it should stop when the signal aborts. */
  readonly compute: (signal: AbortSignal) => Promise<T>;
  /** For how long a value is good, in milliseconds. */
  readonly freshForMs: number;
  /** How long to wait for another call's value, in milliseconds. */
  readonly waitMs: number;
  /** The rhythm of waiting. */
  readonly retry: RetryStrategy;
  /** The computation is cut off after this, in milliseconds, and the lock let go. */
  readonly computeTimeoutMs: number;
  /** Hears that the cache could not be read or written. @default - nobody */
  readonly onCacheFailed?: (event: CacheFailedEvent) => void;
  /** Epoch milliseconds. @default Date.now */
  readonly now?: () => number;
}

/** A value, when its computation began, and where it comes from. */
export interface CacheAnswer<T> {
  readonly value: T;
  /** Epoch milliseconds. */
  readonly computedAt: number;
  /**
   * - `cache`: it was there.
   * - `computed`: this call has computed it.
   * - `otherCall`: another call computed it while this one waited.
   * - `stale`: too old, and the best there is while somebody computes a new one, or nobody can.
   */
  readonly source: "cache" | "computed" | "otherCall" | "stale";
}

const sources = {
  cache: "cache",
  computation: "computed",
  otherProcess: "otherCall",
  stale: "stale",
} as const satisfies Record<ValueSource, CacheAnswer<unknown>["source"]>;

/** So long others wait for a call that died while it computed; one that lives renews. */
const leaseDurationMs = 10_000;

/** So long an old value may stand in for a new one. */
const staleForMs = 24 * 60 * 60 * 1000;

/**
 * Gives a resource: from the cache, from another call that is computing it, or computed here.
 *
 * Each call has a SingleFlight of its own. Calls in one process share nothing by it, but an execution environment has
 * one invocation at a time; and so each has its own time limit, and learns where its value came from.
 *
 * Rejects as `SingleFlight.getOrCompute` does: with LeaseUnavailableError when somebody else computes for longer than
 * `waitMs` and there is no old value, with ComputationTimeoutError, or with the computation's own error.
 */
export async function cached<T>(request: CacheRequest<T>): Promise<CacheAnswer<T>> {
  const { leases, key, compute, freshForMs, waitMs, retry, computeTimeoutMs } = request;
  const { onCacheFailed, now = Date.now } = request;
  let from: ValueSource = "cache";
  const flight = new SingleFlight(leases, {
    freshForMs,
    staleForMs,
    leaseDurationMs,
    computeTimeoutMs,
    waitMs,
    retry,
    onEvent: (event) => {
      if (event.type === "served") from = event.from;
      if (event.type === "cacheFailed") onCacheFailed?.(event);
    },
  });
  const { value, computedAt } = await flight.getOrCompute<Omit<CacheAnswer<T>, "source">>(key, {
    compute: async ({ signal }) => {
      const beganAt = now();
      return { value: await compute(signal), computedAt: beganAt };
    },
  });
  return { value, computedAt, source: sources[from] };
}
