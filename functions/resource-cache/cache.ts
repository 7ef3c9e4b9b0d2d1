import type { LeaseClient } from "@leasehold/client";
import {
  type CacheFailedEvent,
  type GetOrComputeOptions,
  type ServedEvent,
  SingleFlight,
  type ValueSource,
} from "@leasehold/client/single-flight";

/** One call for a resource. */
export interface CacheRequest<T>
  extends Required<Pick<GetOrComputeOptions<T>, "waitMs" | "retry" | "computeTimeoutMs">>,
    Pick<GetOrComputeOptions<T>, "forceRefresh"> {
  readonly flights: SingleFlight;
  /** Values that this process has had a moment ago. @default - none: each call looks in the table */
  readonly recent?: RecentValues;
  readonly key: string;
  /** Computes a value, which has to be plain JSON; it should stop when the signal aborts. */
  readonly compute: (signal: AbortSignal) => Promise<T>;
  /** Epoch milliseconds. @default Date.now */
  readonly now?: () => number;
}

/** A value, when its computation began, and where it comes from. */
export interface CacheAnswer<T> {
  readonly value: T;
  /** Epoch milliseconds. */
  readonly computedAt: number;
  /**
   * - `process`: this process had it a moment ago; nothing was sent.
   * - `cache`: it was in the cache.
   * - `computed`: this call has computed it, or another call of the same process.
   * - `otherCall`: another call computed it while this one waited.
   * - `stale`: too old, and the best value while another caller computes a new one, or none can.
   */
  readonly source: "process" | "cache" | "computed" | "otherCall" | "stale";
}

const sources = {
  process: "process",
  cache: "cache",
  computation: "computed",
  otherProcess: "otherCall",
  stale: "stale",
} as const satisfies Record<ValueSource, CacheAnswer<unknown>["source"]>;

/** As many resources are kept in a process; then the one that was put first goes. */
const mostRecent = 1_000;

/**
 * What a process has read or computed, in front of the table: for a short time, and never longer than a value is fresh.
 * Within that time it may be older than what another process has computed since.
 */
export class RecentValues {
  readonly #keptForMs: number;
  readonly #freshForMs: number;
  readonly #values = new Map<string, { readonly answer: CacheAnswer<unknown>; readonly at: number }>();

  /** `keptForMs`: 0 keeps nothing. */
  constructor(keptForMs: number, freshForMs: number) {
    this.#keptForMs = keptForMs;
    this.#freshForMs = freshForMs;
  }

  /** Gives a key's value if it is still good at a time, in epoch milliseconds. */
  get(key: string, now: number): CacheAnswer<unknown> | undefined {
    const { answer, at } = this.#values.get(key) ?? {};
    if (answer === undefined || at === undefined) return undefined;
    const isGood = now >= at && now < at + this.#keptForMs && now < answer.computedAt + this.#freshForMs;
    return isGood ? answer : undefined;
  }

  /** Keeps an answer of this moment; an old value that stands in for a new one is not kept. */
  keep(key: string, answer: CacheAnswer<unknown>, now: number): void {
    this.#values.delete(key);
    if (answer.source === "stale") return;
    this.#values.set(key, { answer, at: now });
    const [oldest] = this.#values.keys();
    if (this.#values.size > mostRecent && oldest !== undefined) this.#values.delete(oldest);
  }
}

/** So long others wait for a call that died while it computed; one that lives renews. */
const leaseDurationMs = 10_000;

/** So long an old value may stand in for a new one. */
const staleForMs = 24 * 60 * 60 * 1000;

/**
 * What all calls of an execution environment share: a cache in the lease table, with the locks beside it. `onTrouble`
 * hears where the cache fails, and where an old value is given in place of an error.
 */
export function resourceFlights(
  leases: LeaseClient,
  freshForMs: number,
  onTrouble: (event: CacheFailedEvent | ServedEvent) => void,
): SingleFlight {
  return new SingleFlight(leases, {
    freshForMs,
    staleForMs,
    leaseDurationMs,
    onEvent: (event) => {
      const isInPlaceOfError = event.type === "served" && event.error !== undefined;
      if (event.type === "cacheFailed" || isInPlaceOfError) onTrouble(event);
    },
  });
}

/**
 * Gives a resource: from this process, from the cache, from another call that is computing it, or computed here.
 *
 * Without an old value, rejects as `SingleFlight.getOrCompute` does: with LeaseUnavailableError when another caller
 * computes for longer than `waitMs`, with ComputationTimeoutError, or with the computation's own error.
 */
export async function cached<T>(request: CacheRequest<T>): Promise<CacheAnswer<T>> {
  const { flights, recent, key, compute, now = Date.now, ...limits } = request;
  const kept = limits.forceRefresh ? undefined : recent?.get(key, now());
  if (kept !== undefined) return { ...(kept as CacheAnswer<T>), source: "process" };
  const { value, source } = await flights.getOrComputeWithSource<Omit<CacheAnswer<T>, "source">>(key, {
    ...limits,
    compute: async ({ signal }) => {
      const beganAt = now();
      return { value: await compute(signal), computedAt: beganAt };
    },
  });
  const answer = { ...value, source: sources[source] };
  recent?.keep(key, answer, now());
  return answer;
}
