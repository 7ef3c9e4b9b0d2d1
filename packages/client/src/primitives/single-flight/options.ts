import { type ClientTimes, checkAcquireOptions, checkRetry } from "../../base/check-options.ts";
import {
  aFunction,
  check,
  checkDuration,
  checkOptions,
  checkSignal,
  countTo,
  duration,
  listeners,
  type Rule,
  type Rules,
  rule,
  trueOrFalse,
  unchecked,
} from "../../base/check-values.ts";
import { longestTimerMs } from "../../base/clock.ts";
import type { BackoffOptions, RetryStrategy } from "../../base/retry.ts";
import type { Lease } from "../../core/lease.ts";
import type { AttemptTerms } from "./attempts.ts";
import type { ResultCache } from "./cache.ts";
import type { Lifetimes } from "./entry.ts";
import type { SingleFlightListener } from "./events.ts";

/** What every call of one {@link SingleFlight} has in common. */
export interface SingleFlightOptions {
  /** For how long a result is given without a new computation, in milliseconds. From 1. */
  readonly freshForMs: number;
  /** For how much longer it may stand in for a newer one, in milliseconds. @default 0 */
  readonly staleForMs?: number;
  /**
   * Whether a result that is past `freshForMs` is given at once while another caller computes a newer one. The caller
   * that computes waits for the new one.
   * @default true if `staleForMs` is above 0
   */
  readonly staleOnContention?: boolean;
  /**
   * Whether a result that is past `freshForMs` is given in place of an error: when the computation fails or is cut
   * off, when the lock, the service or the cache fails, and when `waitMs` is over. The event `served` has the error.
   * Mistakes in the program are still errors, and so is the end by the caller's own `signal`.
   * @default staleOnContention
   */
  readonly staleOnError?: boolean;
  /**
   * For how long a failure is kept. Until then nothing is computed, and callers get a CachedFailureError. Its message
   * is stored. With 0 no failure is kept, and each waiter tries in its turn.
   * @default 0
   */
  readonly failureForMs?: number;
  /**
   * For how long a process gives a value again without a look at the cache, in milliseconds: never longer than the
   * value is fresh. For so long, a caller may get a value that another process has invalidated or replaced. A frozen
   * process counts the time that it was frozen. Failures are not kept. Callers share the value as the same object.
   * @default 0
   */
  readonly inProcessForMs?: number;
  /** How many values a process keeps; then the least recently used one goes. From 1 to 1,000,000. @default 1000 */
  readonly maxInProcess?: number;
  /**
   * How long before the end of `freshForMs` a caller's call begins a refresh in the background, in milliseconds below
   * `freshForMs`. That caller and all others get the fresh value at once, and one process computes the next. Give twice
   * the computation's time and `leaseDurationMs`, so that the next value is in time, also after a process has died.
   *
   * The refresh runs the caller's `compute` after the call has ended. Each process begins at a random time in the first
   * half, once for each value. If it fails, the value stays until its end, and the event `refreshFailed` has the error.
   * A refresh in Lambda freezes with its instance: its lease ends, and another process refreshes.
   * @default 0
   */
  readonly refreshAheadMs?: number;
  /** Where results are kept. @default - a TableCache on the client's table */
  readonly cache?: ResultCache;
  /**
   * How long a caller waits while another process computes; then it gets a LeaseUnavailableError. `computeTimeoutMs`
   * limits the computation of its own process. From 0 to 24 days.
   * @default 30000
   */
  readonly waitMs?: number;
  /** The rhythm of looking for another process's result. @default untilExpiry: after 0.25 s, then twice that, up to 5 s */
  readonly retry?: RetryStrategy;
  /**
   * How long a computation may take; then it is cut off with a ComputationTimeoutError. From 1 ms to 24 days;
   * Infinity for no limit. Without a limit, a computation that never ends holds its key's lock as long as its process
   * lives.
   * @default 300000
   */
  readonly computeTimeoutMs?: number;
  /**
   * How often a failing computation is tried: under the same lease, within `computeTimeoutMs` for all attempts, and
   * as long as a caller waits. From 1 to 1000.
   * @default 1
   */
  readonly maxAttempts?: number;
  /**
   * The pause before the next attempt: twice as long each time, of which a random half is left out.
   * @default 100 to 200 ms before the second attempt, up to 10 s
   */
  readonly backoff?: BackoffOptions;
  /**
   * Whether a result may be stored. A result that may not is still given to its callers; the cache's entry stays, and
   * the next call computes. Not asked about failures.
   * @default - every result but undefined
   */
  readonly isCacheable?: (value: unknown) => boolean;
  /**
   * How long the lease lasts unless it is renewed. It does not limit a computation: it limits how long others wait
   * for a dead process. Not below the client's `clockSkewMs`, if it was given one.
   * @default - the client's
   */
  readonly leaseDurationMs?: number;
  /** As for an acquisition. Without it a computation has to end within `leaseDurationMs`. @default true */
  readonly heartbeat?: boolean | number;
  /**
   * Receives every event; several listeners get them side by side. See also the diagnostics channel
   * `leasehold:single-flight`. @default - none
   */
  readonly onEvent?: SingleFlightListener | readonly SingleFlightListener[];
}

/** What a computation gets. */
export interface ComputeContext<Value> {
  readonly key: string;
  /** Held while it computes; its fencing token protects the computation's own writes. */
  readonly lease: Lease;
  /** Aborts when the lease is lost, when `computeTimeoutMs` is over, and when no caller waits any more. */
  readonly signal: AbortSignal;
  /** The result that is past its time, or that a refresh ahead replaces, if `staleForMs` lets it stand in. */
  readonly stale: Value | undefined;
}

/** One call of {@link SingleFlight.getOrCompute}. */
export interface GetOrComputeOptions<Value> {
  /**
   * Computes the result. It must not give undefined (null is a result) unless `isCacheable` refuses that, and should
   * stop when the signal aborts. Callers that share a computation run that of the first one.
   */
  readonly compute: (context: ComputeContext<Value>) => Promise<Value> | Value;
  /** Ends this caller's wait; the computation goes on while another caller wants it. @default - none */
  readonly signal?: AbortSignal;
  /** How long this caller waits while another process computes. @default - that of the SingleFlight */
  readonly waitMs?: number;
  /**
   * Whether this caller takes a result that is past `freshForMs` while another caller computes; true needs a
   * `staleForMs`.
   * @default - that of the SingleFlight
   */
  readonly staleOnContention?: boolean;
  /**
   * Whether this caller takes a result that is past `freshForMs` in place of an error; true needs a `staleForMs`.
   * @default - this call's `staleOnContention` if it has one, otherwise that of the SingleFlight
   */
  readonly staleOnError?: boolean;
  /**
   * How old this caller's value may be since the last look at the cache: 0 looks. At most that of the SingleFlight, and
   * 0 beside `forceRefresh`.
   * @default - that of the SingleFlight
   */
  readonly inProcessForMs?: number;
  /** As of the SingleFlight. Of callers that share a computation, the first one's counts. @default - that of the SingleFlight */
  readonly retry?: RetryStrategy;
  /** As of the SingleFlight. Of callers that share a computation, the first one's counts. @default - that of the SingleFlight */
  readonly computeTimeoutMs?: number;
  /** As of the SingleFlight. Of callers that share a computation, the first one's counts. @default - that of the SingleFlight */
  readonly maxAttempts?: number;
  /** As of the SingleFlight. Of callers that share a computation, the first one's counts. @default - that of the SingleFlight */
  readonly backoff?: BackoffOptions;
  /**
   * Whether the value is computed again even if it is fresh. Such a call gets a value whose computation began after
   * the call, its own or another's, or an error, and no stale value. Other callers get the old value until the new
   * one is stored. A refresh that fails stores nothing.
   * @default false
   */
  readonly forceRefresh?: boolean;
}

const defaultWaitMs = 30_000;
const defaultComputeTimeoutMs = 300_000;
const defaultBackoff = { delayMs: 200, maxDelayMs: 10_000 };
const mostAttempts = 1_000;
const defaultMaxInProcess = 1_000;
const mostInProcess = 1_000_000;

/** Infinity is no limit. */
const upToTimers: Rule<number> = (option, value) =>
  value === Number.POSITIVE_INFINITY ? value : checkDuration(option, value, 1, longestTimerMs);

const backoffRules: Rules<BackoffOptions> = { delayMs: duration(0, longestTimerMs), maxDelayMs: unchecked };

/** The options that a call may have different from its SingleFlight. */
const sharedRules = {
  waitMs: duration(0, longestTimerMs),
  staleOnContention: trueOrFalse,
  staleOnError: trueOrFalse,
  inProcessForMs: duration(0),
  retry: checkRetry,
  computeTimeoutMs: upToTimers,
  maxAttempts: countTo(mostAttempts),
  backoff: (where: string, value: unknown) => checkOptions(value as BackoffOptions, backoffRules, where),
};
const flightRules: Rules<SingleFlightOptions> = {
  ...sharedRules,
  freshForMs: duration(1),
  staleForMs: duration(0),
  failureForMs: duration(0),
  maxInProcess: countTo(mostInProcess),
  refreshAheadMs: duration(0),
  cache: rule("an object with get(key) and set(key, entry, ttlMs)", (value) =>
    isCache(value as Partial<ResultCache> | null),
  ),
  isCacheable: aFunction,
  leaseDurationMs: unchecked,
  heartbeat: unchecked,
  onEvent: listeners,
};
const callRules: Rules<GetOrComputeOptions<unknown>> = {
  ...sharedRules,
  compute: aFunction,
  signal: checkSignal,
  forceRefresh: trueOrFalse,
};

function isCache(cache: Partial<ResultCache> | null): boolean {
  return typeof cache?.get === "function" && typeof cache.set === "function";
}

/** The settings that one call may have different from its SingleFlight, validated and complete. */
export interface CallerTerms extends AttemptTerms {
  readonly waitMs: number;
  readonly staleOnContention: boolean;
  readonly staleOnError: boolean;
  readonly inProcessForMs: number;
  readonly retry: RetryStrategy;
  readonly computeTimeoutMs: number;
}

/** A SingleFlight's options, validated and complete. */
export interface FlightTerms extends Lifetimes, CallerTerms {
  readonly maxInProcess: number;
  readonly refreshAheadMs: number;
  readonly leaseDurationMs: number;
  readonly heartbeat: boolean | number;
  readonly isCacheable: ((value: unknown) => boolean) | undefined;
}

/** Validates a SingleFlight's options. */
export function checkFlightOptions(
  options: SingleFlightOptions,
  times: ClientTimes,
): { readonly given: SingleFlightOptions; readonly terms: FlightTerms } {
  const given = checkOptions(options, flightRules, "options", ["freshForMs"]);
  const { freshForMs, staleForMs = 0, failureForMs = 0, isCacheable, heartbeat = true } = given;
  const { waitMs = defaultWaitMs, retry = { strategy: "untilExpiry" }, maxAttempts = 1 } = given;
  const { computeTimeoutMs = defaultComputeTimeoutMs, staleOnContention = staleForMs > 0 } = given;
  const { leaseDurationMs = times.leaseDurationMs, staleOnError = staleOnContention } = given;
  const { inProcessForMs = 0, maxInProcess = defaultMaxInProcess, refreshAheadMs = 0 } = given;
  checkDuration("staleForMs", staleForMs, staleOnContention ? 1 : 0);
  checkDuration("refreshAheadMs", refreshAheadMs, 0, freshForMs - 1);
  check(!staleOnError || staleForMs > 0, "staleOnError", true, "false without a staleForMs");
  checkAcquireOptions({ leaseDurationMs, heartbeat }, false, "", times);
  const backoff = backoffOf(given.backoff, defaultBackoff);
  const call = { waitMs, staleOnContention, staleOnError, retry, computeTimeoutMs, maxAttempts, backoff };
  const lifetimes = { freshForMs, staleForMs, failureForMs, inProcessForMs, maxInProcess, refreshAheadMs };
  return { given, terms: { ...lifetimes, ...call, leaseDurationMs, heartbeat, isCacheable } };
}

/** Validates one call's options; what it leaves out is the SingleFlight's. */
export function checkCallOptions<Value>(
  options: GetOrComputeOptions<Value>,
  terms: FlightTerms,
): { readonly given: GetOrComputeOptions<Value>; readonly terms: CallerTerms } {
  const given = checkOptions(options, callRules as Rules<GetOrComputeOptions<Value>>, "options", ["compute"]);
  const { waitMs = terms.waitMs, retry = terms.retry, forceRefresh = false } = given;
  const { computeTimeoutMs = terms.computeTimeoutMs, maxAttempts = terms.maxAttempts } = given;
  const { staleOnContention = !forceRefresh && terms.staleOnContention } = given;
  const { staleOnError = given.staleOnContention ?? (!forceRefresh && terms.staleOnError) } = given;
  const allowed = "false beside forceRefresh, and where the SingleFlight has no staleForMs";
  const takesStale = !forceRefresh && terms.staleForMs > 0;
  check(!staleOnContention || takesStale, "staleOnContention", true, allowed);
  check(!staleOnError || takesStale, "staleOnError", true, allowed);
  const { inProcessForMs = forceRefresh ? 0 : terms.inProcessForMs } = given;
  checkDuration("inProcessForMs", inProcessForMs, 0, forceRefresh ? 0 : terms.inProcessForMs);
  const backoff = backoffOf(given.backoff, terms.backoff);
  const stale = { staleOnContention, staleOnError };
  const call = { waitMs, ...stale, inProcessForMs, retry, computeTimeoutMs, maxAttempts, backoff };
  return { given, terms: call };
}

function backoffOf(
  backoff: BackoffOptions | undefined,
  otherwise: AttemptTerms["backoff"],
): AttemptTerms["backoff"] {
  if (backoff === undefined) return otherwise;
  const { delayMs = defaultBackoff.delayMs } = backoff;
  const { maxDelayMs = Math.max(delayMs, defaultBackoff.maxDelayMs) } = backoff;
  return { delayMs, maxDelayMs: checkDuration("backoff.maxDelayMs", maxDelayMs, delayMs, longestTimerMs) };
}
