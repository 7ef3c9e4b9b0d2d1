import { InvalidOptionsError, type LeaseClient, type RetryStrategy } from "@leasehold/client";
import {
  type CacheFailedEvent,
  type GetOrComputeOptions,
  type RefreshFailedEvent,
  type ServedEvent,
  SingleFlight,
  type SingleFlightOptions,
  type ValueSource,
} from "@leasehold/client/single-flight";

/** One call for a resource. */
export interface CacheRequest<T>
  extends Required<Pick<GetOrComputeOptions<T>, "waitMs" | "retry" | "computeTimeoutMs">>,
    Pick<GetOrComputeOptions<T>, "forceRefresh"> {
  readonly flights: SingleFlight;
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

/** So long others wait for a call that died while it computed; one that lives renews. */
const leaseDurationMs = 10_000;

/** So long an old value may stand in for a new one. */
const staleForMs = 24 * 60 * 60 * 1000;

/** What a caller does not see: it has a value all the same, new or old. */
export type CacheTrouble = CacheFailedEvent | RefreshFailedEvent | ServedEvent;

/**
 * What all calls of an execution environment share: a cache in the lease table, with the locks beside it, and the values
 * in its memory. `onTrouble` hears where the cache or a refresh fails, and where an old value is given in place of an
 * error.
 */
export function resourceFlights(
  leases: LeaseClient,
  times: Pick<SingleFlightOptions, "freshForMs" | "inProcessForMs" | "refreshAheadMs">,
  onTrouble: (event: CacheTrouble) => void,
): SingleFlight {
  return new SingleFlight(leases, {
    ...times,
    staleForMs,
    leaseDurationMs,
    onEvent: (event) => {
      const isInPlaceOfError = event.type === "served" && event.error !== undefined;
      if (event.type === "cacheFailed" || event.type === "refreshFailed" || isInPlaceOfError)
        onTrouble(event);
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
  const { flights, key, compute, now = Date.now, ...limits } = request;
  const { value, source } = await flights.getOrComputeWithSource<Omit<CacheAnswer<T>, "source">>(key, {
    ...limits,
    compute: async ({ signal }) => {
      const beganAt = now();
      return { value: await compute(signal), computedAt: beganAt };
    },
  });
  return { ...value, source: sources[source] };
}

/** The ways to wait that an event can ask for, by name, with delays that suit a computation of seconds. */
export const rhythms = {
  untilExpiry: { strategy: "untilExpiry" },
  fixed: { strategy: "fixed", delayMs: 200 },
  linear: { strategy: "linear", delayMs: 100, maxDelayMs: 2_000 },
  exponential: { strategy: "exponential", delayMs: 50, maxDelayMs: 2_000 },
  fullJitter: { strategy: "fullJitter", delayMs: 100, maxDelayMs: 2_000 },
  random: { strategy: "random", minDelayMs: 150, maxDelayMs: 250, maxRetries: 5 },
} as const satisfies Record<RetryStrategy["strategy"], RetryStrategy>;

/** Gives a way to wait: by its name, or as the event has it, which the client checks. Throws InvalidOptionsError. */
export function rhythmOf(name: unknown): RetryStrategy {
  if (typeof name === "object" && name !== null) return name as RetryStrategy;
  const known = Object.values(rhythms).find(({ strategy }) => strategy === name);
  if (known === undefined)
    throw new InvalidOptionsError(
      "event.retry",
      name,
      `${Object.keys(rhythms).join(", ")}, or an object with strategy`,
    );
  return known;
}
