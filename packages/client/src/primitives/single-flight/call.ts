import { onAbort } from "../../base/abort.ts";
import { check } from "../../base/check-values.ts";
import type { Moment } from "../../base/clock.ts";
import { LeaseUnavailableError } from "../../base/errors.ts";
import { isOperational } from "../../base/operational.ts";
import { acquireAt } from "../../core/client.ts";
import type { Core } from "../../core/core.ts";
import type { Lease } from "../../core/lease.ts";
import { ClientClosedError } from "../../core/lifecycle.ts";
import { runTraced } from "../../core/work-trace.ts";
import { type AttemptTerms, attempted, withTimeout } from "./attempts.ts";
import type { CacheAccess } from "./cache-access.ts";
import { Callers, type Served } from "./callers.ts";
import {
  type CacheEntry,
  failureEntry,
  flightSortKey,
  isFresh,
  resultEntry,
  type Stale,
  staleIn,
} from "./entry.ts";
import { CachedFailureError, ComputationTimeoutError } from "./errors.ts";
import type { SingleFlightEvent, ValueSource } from "./events.ts";
import { HolderWatch } from "./holder-watch.ts";
import type { CallerTerms, ComputeContext, FlightTerms } from "./options.ts";
import type { CacheLook } from "./process-memory.ts";

/** What every shared call of one SingleFlight works with. */
export interface FlightContext {
  readonly core: Core;
  readonly terms: FlightTerms;
  readonly cache: CacheAccess;
  readonly tell: (event: SingleFlightEvent) => void;
}

/** A computation of any type: callers of one key agree on it. */
export type Compute = (context: ComputeContext<unknown>) => unknown;

/** What a shared call does, and how. Its first caller decides. */
export interface CallPlan extends Pick<CallerTerms, "retry" | "computeTimeoutMs" | keyof AttemptTerms> {
  readonly key: string;
  readonly compute: Compute;
  /** Whether a cached result is used only if its computation began after every caller's call. */
  readonly forceRefresh: boolean;
}

/** A value for the callers, and what the cache held, if that is known. */
interface Obtained extends Served {
  readonly look?: CacheLook;
}

/**
 * One process's way to the value of one key, for all its callers at once:
 *
 *     look ──fresh──▶ settle
 *      │ missing or old
 *      ▼            free, or its holder's time is up
 *     try the lock ◀───────────────────── look at the cache and the lock, ever more rarely ──usable──▶ settle
 *      │     └──held──▶ give out what is stale, if there is something ──▲
 *      ▼ won
 *     look again, unless the fencing token says that nobody can have computed since ──fresh──▶ release, settle
 *      ▼
 *     compute ▶ store ▶ release ▶ settle
 *
 * A forced refresh goes the same way. It takes only a result that was computed by a holder after the one that it has
 * seen: such a computation began after the look, and so after its callers asked.
 *
 * A refresh ahead begins at the lock, while the value is fresh and without callers. It does not wait for the lock.
 * Callers may join it when the value's time is over.
 */
export class FlightCall {
  readonly #key: string;
  readonly #plan: CallPlan;
  readonly #context: FlightContext;
  /** Aborts when no caller waits any more. */
  readonly #abandoned = new AbortController();
  readonly #callers: Callers;
  readonly #watch: HolderWatch;
  readonly #onEnd: (call: FlightCall, look?: CacheLook) => void;
  /** The fresh entry that a refresh ahead replaces. */
  #ahead: CacheEntry | undefined;
  #retryAfter: (ms: number) => void = () => undefined;
  /** Of the computation, once it begins. */
  #lease: Lease | undefined;
  #lookedAt: Moment;
  #hasFailedComputation = false;
  #isDecided = false;
  #isWatching = false;
  #hasLateCallers = false;
  /** A refresh takes results with a later fencing token than this. */
  #takesAfter = Number.POSITIVE_INFINITY;

  /**
   * Calls `onEnd` as soon as no other caller may join, before the callers get the outcome; with what the cache holds, if
   * that is known.
   */
  constructor(plan: CallPlan, context: FlightContext, onEnd: (call: FlightCall, look?: CacheLook) => void) {
    const { core, cache } = context;
    const { key } = plan;
    this.#key = key;
    this.#plan = plan;
    this.#context = context;
    this.#onEnd = onEnd;
    this.#watch = new HolderWatch(core, cache, plan);
    this.#lookedAt = core.clock.moment();
    this.#callers = new Callers(core.clock, () => {
      // A refresh ahead is for callers to come. One without its lease will not be stored for them.
      if (this.#ahead !== undefined && this.#lease?.held === true) return;
      onEnd(this);
      this.#abandoned.abort(new Error(`nobody waits for ${JSON.stringify(key)} any more`));
    });
  }

  /**
   * Whether one more caller may join. A forced refresh is closed to a caller that asked after its computation may have
   * begun. A refresh ahead is open to callers that would have to compute, unless it was frozen for too long.
   */
  get isOpen(): boolean {
    const ahead = this.#ahead;
    if (ahead !== undefined)
      return this.#lease?.held === true && !isFresh(ahead, this.#context.core.clock.now());
    return !(this.#plan.forceRefresh && this.#isDecided);
  }

  /** One more caller wants the value. */
  join(terms: CallerTerms, signal: AbortSignal | undefined): Promise<Served> {
    if (this.#isWatching) {
      // A look may have begun before this caller asked.
      this.#hasLateCallers = true;
      this.#takesAfter = Number.POSITIVE_INFINITY;
    }
    return this.#callers.join(terms, signal);
  }

  /** Obtains the value, and gives it to the callers. Without callers it only looks. Never rejects. */
  async run(): Promise<void> {
    await this.#give(() => this.#obtain());
  }

  /**
   * Computes the next value while this one is fresh. Calls `retryAfter` with a time in milliseconds when the lock is
   * another process's until then, or when its own lease is lost. Never rejects.
   */
  async runAhead(fresh: CacheEntry, retryAfter: (ms: number) => void): Promise<void> {
    this.#ahead = fresh;
    this.#retryAfter = retryAfter;
    await this.#give(async () => {
      const won = await this.#tryLock();
      if (!(won instanceof LeaseUnavailableError)) return await this.#hold(won, fresh);
      retryAfter(won.retryAfterMs);
      return { value: fresh.value, source: "cache" };
    });
  }

  async #give(obtain: () => Promise<Obtained>): Promise<void> {
    let leave = (): void => undefined;
    try {
      leave = this.#context.core.lifecycle.enter((reason) => this.#abandoned.abort(reason));
      const { look, ...served } = await obtain();
      this.#onEnd(this, look);
      this.#callers.settle(served);
    } catch (error) {
      this.#onEnd(this);
      if (this.#ahead !== undefined && !(error instanceof ClientClosedError))
        this.#context.tell({ type: "refreshFailed", key: this.#key, error });
      this.#callers.fail(error, this.#allowsStale(error));
    } finally {
      leave();
    }
  }

  /** Mistakes in the program must be seen. A failure of the computation has its own event. */
  #allowsStale(error: unknown): boolean {
    return !this.#abandoned.signal.aborted && (this.#hasFailedComputation || isOperational(error));
  }

  async #obtain(): Promise<Obtained> {
    let seen = await this.#read();
    let source: ValueSource = "cache";
    for (;;) {
      const served = this.#served(seen, source);
      if (served !== undefined) return served;
      if (this.#callers.isEmpty)
        return { value: undefined, source, look: { entry: undefined, at: this.#lookedAt } };
      const won = await this.#tryLock();
      if (!(won instanceof LeaseUnavailableError)) return await this.#hold(won, seen);
      this.#isWatching = true;
      this.#contended(won, seen);
      seen = (await this.#waitForHolder(won)) ?? seen;
      this.#callers.stopWaiting();
      source = "otherProcess";
    }
  }

  #read(): Promise<CacheEntry | undefined> {
    const { core, cache } = this.#context;
    this.#lookedAt = core.clock.moment();
    return cache.read(this.#key, this.#abandoned.signal);
  }

  /** The value that all callers can get; undefined when it has to be computed. Throws a cached failure. */
  #served(entry: CacheEntry | undefined, source: ValueSource): Obtained | undefined {
    const answer = this.#answer(entry);
    if (answer === undefined) return undefined;
    this.#isDecided = true;
    const { value, failure, freshUntil } = answer;
    if (failure !== undefined) throw new CachedFailureError(this.#key, failure, freshUntil);
    return { value, source, look: { entry: answer, at: this.#lookedAt } };
  }

  async #tryLock(): Promise<Lease | LeaseUnavailableError> {
    const { leaseDurationMs, heartbeat } = this.#context.terms;
    const options = { leaseDurationMs, heartbeat, signal: this.#abandoned.signal };
    try {
      return await acquireAt(this.#context.core, this.#key, flightSortKey, options);
    } catch (error) {
      if (error instanceof LeaseUnavailableError) return error;
      throw error;
    }
  }

  #contended(refusal: LeaseUnavailableError, seen: CacheEntry | undefined): void {
    const stale = this.#stale(seen);
    if (stale !== undefined) this.#callers.serveStale(stale);
    this.#callers.wait(refusal);
  }

  #waitForHolder(refusal: LeaseUnavailableError): Promise<CacheEntry | undefined> {
    const isUsable = (entry: CacheEntry | undefined): boolean => this.#answer(entry) !== undefined;
    return this.#watch.next(refusal, this.#abandoned.signal, isUsable, (latest, holder, entry) => {
      if (this.#takesAfter === Number.POSITIVE_INFINITY && !this.#hasLateCallers)
        this.#takesAfter = Math.max(holder.fencingToken, entry?.fencingToken ?? 0);
      this.#contended(latest, entry);
    });
  }

  /** The entry, if its outcome is what the callers get. A stale value is kept ready in place of an error. */
  #answer(entry: CacheEntry | undefined): CacheEntry | undefined {
    this.#callers.keepReady(this.#stale(entry));
    if (entry === undefined || !isFresh(entry, this.#context.core.clock.now())) return undefined;
    return this.#mayTake(entry) ? entry : undefined;
  }

  #stale(entry: CacheEntry | undefined): Stale | undefined {
    return staleIn(entry, this.#context.core.clock.now());
  }

  #mayTake(entry: CacheEntry): boolean {
    if (this.#ahead !== undefined) return entry.fencingToken > this.#ahead.fencingToken;
    return !this.#plan.forceRefresh || entry.fencingToken > this.#takesAfter;
  }

  async #hold(lease: Lease, seen: CacheEntry | undefined): Promise<Obtained> {
    try {
      let entry = seen;
      // Every holder's token is one above the last one's. Without a holder in between, the entry that was seen is
      // still the latest computed one. It may have been invalidated; then a new one is needed too.
      if (entry === undefined || entry.fencingToken + 1 !== lease.fencingToken) {
        entry = await this.#read();
        const served = this.#served(entry, "otherProcess");
        if (served !== undefined) return served;
      }
      // What a refresh ahead replaces will be past its time when callers join.
      const earlier =
        this.#ahead === undefined ? this.#stale(entry) : entry && staleIn(entry, entry.freshUntil);
      if (earlier !== undefined) this.#callers.serveStaleToOthers(earlier);
      this.#callers.keepReady(earlier);
      this.#isDecided = true;
      this.#lease = lease;
      return { ...(await this.#computeAndStore(lease, earlier)), source: "computation" };
    } finally {
      // Ignored: the outcome comes first, a lock that cannot be released now frees itself when its lease ends, and
      // the `error` event tells of a mistake.
      await lease.release().catch(() => undefined);
    }
  }

  async #computeAndStore(lease: Lease, earlier: Stale | undefined): Promise<Omit<Obtained, "source">> {
    const { core, terms, tell } = this.#context;
    const { clock } = core;
    const { fencingToken } = lease;
    let startedAt = 0;
    /** The attempt under way; 0 between two, when the last one has been told. */
    let attempt = 0;
    const computed = (outcome: { readonly error?: unknown }): void => {
      if (attempt === 0) return;
      const tookMs = Math.round(clock.monotonic() - startedAt);
      tell({ type: "computed", key: this.#key, fencingToken, attempt, tookMs, ...outcome });
      attempt = 0;
    };
    const onAttempt = (number: number): void => {
      startedAt = clock.monotonic();
      attempt = number;
    };
    let value: unknown;
    try {
      value = await this.#computeInTime(lease, earlier, onAttempt, (error) => computed({ error }));
    } catch (error) {
      computed({ error });
      this.#hasFailedComputation = true;
      // A computation that was cut off has not failed: it may succeed elsewhere.
      const isOwnFailure = !this.#abandoned.signal.aborted && lease.held;
      const isRefresh = this.#plan.forceRefresh || this.#ahead !== undefined;
      if (isOwnFailure && terms.failureForMs > 0 && !isRefresh) {
        const failure = failureEntry(error, clock.now(), terms, fencingToken);
        await this.#store(lease, failure, earlier);
      }
      throw error;
    }
    computed({});
    if (!this.#isCacheable(value)) return { value };
    const allowed = "anything but undefined, which a cache cannot tell from nothing; null for no result";
    check(value !== undefined, "compute's result", value, allowed);
    const at = clock.moment();
    const entry = resultEntry(value, clock.timeOf(at), terms, fencingToken);
    return (await this.#store(lease, entry)) ? { value, look: { entry, at } } : { value };
  }

  #isCacheable(value: unknown): boolean {
    const { isCacheable = () => true } = this.#context.terms;
    const answer: unknown = isCacheable(value);
    check(typeof answer === "boolean", "isCacheable's answer", answer, "true or false, and no promise");
    return answer === true;
  }

  async #computeInTime(
    lease: Lease,
    earlier: Stale | undefined,
    onAttempt: (attempt: number) => void,
    onFailed: (error: unknown) => void,
  ): Promise<unknown> {
    const { compute, computeTimeoutMs } = this.#plan;
    const { clock, randomness } = this.#context.core;
    const endsAt = clock.monotonic() + computeTimeoutMs;
    // Not AbortSignal.any: on Node 24.21 one without listeners forgets a source that was collected, and of two sources
    // that have aborted it names the first in its list as the reason (nodejs/node#65995).
    const cut = new AbortController();
    const timeout = {
      timeoutMs: computeTimeoutMs,
      signal: this.#abandoned.signal,
      timeoutError: () => new ComputationTimeoutError(this.#key, computeTimeoutMs),
    };
    const ignoreLoss = onAbort(lease.signal, (reason) => {
      cut.abort(reason);
      // Nobody waits for this value, and it will not be stored.
      if (this.#ahead === undefined || !this.#callers.isEmpty) return;
      this.#retryAfter(0);
      this.#abandoned.abort(reason);
    });
    const context = { key: this.#key, lease, signal: cut.signal, stale: earlier?.value };
    const attempts = {
      clock,
      randomness,
      mayBegin: (inMs: number) => lease.held && clock.monotonic() + inMs < endsAt,
      signal: cut.signal,
      onFailed,
    };
    const work = async (attempt: number): Promise<unknown> => {
      onAttempt(attempt);
      return await runTraced(lease, () => compute(context));
    };
    try {
      return await withTimeout(clock, timeout, () => attempted(this.#plan, attempts, work));
    } catch (error) {
      // No effect on a computation that has ended by itself.
      cut.abort(error);
      throw error;
    } finally {
      // The release that follows is expected.
      ignoreLoss();
    }
  }

  async #store(lease: Lease, entry: CacheEntry, earlier?: Stale): Promise<boolean> {
    if (lease.held) return await this.#context.cache.write(this.#key, entry, this.#abandoned.signal, earlier);
    this.#context.tell({ type: "cacheFailed", key: this.#key, operation: "write", reason: "leaseLost" });
    return false;
  }
}
