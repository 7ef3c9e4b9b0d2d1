import type { Lease } from "../lease.ts";
import { type ClientTimes, checkAcquireOptions, checkRetry } from "../options-check.ts";
import type { RetryStrategy } from "../retry.ts";
import { check, checkDuration, checkKnown } from "../validation.ts";
import type { ResultCache } from "./cache.ts";
import type { Lifetimes } from "./entry.ts";
import type { SingleFlightEvent } from "./events.ts";

/** What every call of one {@link SingleFlight} has in common. */
export interface SingleFlightOptions {
  /** For how long a result is given without a thought, in milliseconds. From 1. */
  readonly freshForMs: number;
  /** For how much longer it is kept to stand in for a newer one, in milliseconds. @default 0 */
  readonly staleForMs?: number;
  /**
   * Whether a result that is past `freshForMs` is given at once where a newer one is being computed by somebody else,
   * and where the lock or the service cannot be had. Whoever computes waits for the new one.
   * @default true if `staleForMs` is above 0
   */
  readonly staleOnContention?: boolean;
  /**
   * For how long a failure is kept: until then nobody computes, and callers get a CachedFailureError. Its message is
   * stored. 0 keeps none: then each waiter tries in its turn. @default 0
   */
  readonly failureForMs?: number;
  /** Where results are kept. @default - a TableCache on the client's table */
  readonly cache?: ResultCache;
  /**
   * How long a caller waits while another process computes; then it gets a LeaseUnavailableError. Its own process's
   * computation is bounded by `computeTimeoutMs`. From 0 to 24 days. @default 30000
   */
  readonly waitMs?: number;
  /** The rhythm of looking for another process's result. @default untilExpiry: after 0.25 s, then twice that, up to 5 s */
  readonly retry?: RetryStrategy;
  /**
   * How long a computation may take; then it is cut off with a ComputationTimeoutError. From 1 ms to 24 days; Infinity
   * for no limit: then one that never ends keeps its key closed for as long as its process lives. @default 300000
   */
  readonly computeTimeoutMs?: number;
  /**
   * How long the lease is, which says not how long a computation may take, but how long others wait for one that
   * died. Not below the client's `clockSkewMs`, if it was given one. @default - the client's
   */
  readonly leaseDurationMs?: number;
  /** As of an acquisition. Without it a computation has to end within `leaseDurationMs`. @default true */
  readonly heartbeat?: boolean | number;
  /** Receives every event; see also the diagnostics channel `leasehold:single-flight`. @default - nobody */
  readonly onEvent?: (event: SingleFlightEvent) => void;
}

/** What a computation is given. */
export interface ComputeContext<Value> {
  readonly key: string;
  /** Held while it computes; its fencing token protects whatever the computation writes itself. */
  readonly lease: Lease;
  /** Aborts when the lease is lost, when `computeTimeoutMs` is over, and when no caller waits any more. */
  readonly signal: AbortSignal;
  /** The result that is past its time, where there is one. */
  readonly stale: Value | undefined;
}

/** One call of {@link SingleFlight.getOrCompute}. */
export interface GetOrComputeOptions<Value> {
  /**
   * Computes the result. It must not give undefined (null is a result), and should stop when the signal aborts. Of
   * callers that share a flight, the first one's is run.
   */
  readonly compute: (context: ComputeContext<Value>) => Promise<Value> | Value;
  /** Lets this caller go; the computation goes on while another wants it. @default - none */
  readonly signal?: AbortSignal;
  /** How long this caller waits while another process computes. @default - that of the SingleFlight */
  readonly waitMs?: number;
  /**
   * Whether this caller takes a result that is past `freshForMs`; true needs a `staleForMs`.
   * @default - that of the SingleFlight
   */
  readonly staleOnContention?: boolean;
  /** As of the SingleFlight. Of callers that share a flight, the first one's counts. @default - that of the SingleFlight */
  readonly retry?: RetryStrategy;
  /** As of the SingleFlight. Of callers that share a flight, the first one's counts. @default - that of the SingleFlight */
  readonly computeTimeoutMs?: number;
}

const flightOptionNames: readonly (keyof SingleFlightOptions)[] = [
  "freshForMs",
  "staleForMs",
  "staleOnContention",
  "failureForMs",
  "cache",
  "waitMs",
  "retry",
  "computeTimeoutMs",
  "leaseDurationMs",
  "heartbeat",
  "onEvent",
];
const callOptionNames: readonly (keyof GetOrComputeOptions<unknown>)[] = [
  "compute",
  "signal",
  "waitMs",
  "staleOnContention",
  "retry",
  "computeTimeoutMs",
];

const defaultWaitMs = 30_000;
const defaultComputeTimeoutMs = 300_000;
/** The longest delay that Node's timers take. */
const longestTimerMs = 2 ** 31 - 1;

/** What one call may have otherwise than its SingleFlight, validated and complete. */
export interface CallTerms {
  readonly waitMs: number;
  readonly staleOnContention: boolean;
  readonly retry: RetryStrategy;
  readonly computeTimeoutMs: number;
}

/** A SingleFlight's options, validated and complete. */
export interface FlightTerms extends Lifetimes, CallTerms {
  readonly leaseDurationMs: number;
  readonly heartbeat: boolean | number;
}

/** Validates a SingleFlight's options. */
export function checkFlightOptions(options: SingleFlightOptions, times: ClientTimes): FlightTerms {
  checkKnown(options, flightOptionNames, "options");
  const { freshForMs, staleForMs = 0, failureForMs = 0, cache, onEvent, heartbeat = true } = options;
  const { computeTimeoutMs = defaultComputeTimeoutMs, staleOnContention = staleForMs > 0 } = options;
  const { waitMs = defaultWaitMs, retry = { strategy: "untilExpiry" } } = options;
  const { leaseDurationMs = times.leaseDurationMs } = options;
  checkDuration("freshForMs", freshForMs, 1);
  checkDuration("failureForMs", failureForMs, 0);
  const call = checkCallTerms({ waitMs, staleOnContention, retry, computeTimeoutMs });
  checkDuration("staleForMs", staleForMs, staleOnContention ? 1 : 0);
  const isCache =
    cache === undefined || (typeof cache?.get === "function" && typeof cache.set === "function");
  check(isCache, "cache", cache, "an object with get(key) and set(key, entry, ttlMs)");
  check(onEvent === undefined || typeof onEvent === "function", "onEvent", onEvent, "a function");
  checkAcquireOptions({ leaseDurationMs, heartbeat }, false, "", times);
  return { freshForMs, staleForMs, failureForMs, ...call, leaseDurationMs, heartbeat };
}

/** Validates one call's options; what it leaves out is the SingleFlight's. */
export function checkCallOptions<Value>(options: GetOrComputeOptions<Value>, terms: FlightTerms): CallTerms {
  checkKnown(options, callOptionNames, "options");
  const { compute, signal, waitMs = terms.waitMs, staleOnContention = terms.staleOnContention } = options;
  const { retry = terms.retry, computeTimeoutMs = terms.computeTimeoutMs } = options;
  check(typeof compute === "function", "compute", compute, "a function");
  check(signal === undefined || signal instanceof AbortSignal, "signal", signal, "an AbortSignal");
  const call = checkCallTerms({ waitMs, staleOnContention, retry, computeTimeoutMs });
  const hasStale = !staleOnContention || terms.staleForMs > 0;
  check(hasStale, "staleOnContention", true, "false where the SingleFlight has no staleForMs");
  return call;
}

function checkCallTerms({ waitMs, staleOnContention, retry, computeTimeoutMs }: CallTerms): CallTerms {
  checkDuration("waitMs", waitMs, 0, longestTimerMs);
  check(typeof staleOnContention === "boolean", "staleOnContention", staleOnContention, "true or false");
  checkRetry(retry);
  if (computeTimeoutMs !== Number.POSITIVE_INFINITY) {
    checkDuration("computeTimeoutMs", computeTimeoutMs, 1, longestTimerMs);
  }
  return { waitMs, staleOnContention, retry, computeTimeoutMs };
}
