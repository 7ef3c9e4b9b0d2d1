import { untilAborted } from "../../base/abort.ts";
import { checkKey } from "../../base/check-values.ts";
import type { LeaseClient } from "../../core/client.ts";
import { coreOf } from "../../core/core.ts";
import { TableCache } from "./cache.ts";
import { CacheAccess } from "./cache-access.ts";
import { type CallPlan, type Compute, FlightCall, type FlightContext } from "./call.ts";
import type { CacheEntry } from "./entry.ts";
import { publishFlightEvent, type SingleFlightEvent, type ValueSource } from "./events.ts";
import {
  type CallerTerms,
  checkCallOptions,
  checkFlightOptions,
  type GetOrComputeOptions,
  type SingleFlightOptions,
} from "./options.ts";
import { ProcessMemory } from "./process-memory.ts";
import { RefreshTimes } from "./refresh-times.ts";

/** A value, and where it came from. */
export interface SourcedValue<Value> {
  readonly value: Value;
  readonly source: ValueSource;
}

/**
 * Gives values from a cache. One caller at a time computes each value, whatever the number of callers and processes.
 *
 * Make one for each kind of value and keep it. Callers of one SingleFlight in one process share one look, one attempt
 * at the lock and one computation. Processes that share a table and a cache wait for each other's results.
 *
 * Promised: while the cache works and no lease is lost, a value is computed once for each time that it is missing.
 * Exactly one other holder replaces a dead one. Not promised: that a computation stops when its signal aborts. One
 * that goes on may overlap the next one, and its result is dropped.
 *
 * ```ts
 * const reports = new SingleFlight(client, { freshForMs: 60_000, staleForMs: 600_000 });
 * const report = await reports.getOrCompute("report/today", {
 *   compute: ({ signal }) => buildReport({ signal }),
 * });
 * // A hot value: a process reads it once in 2 s, and the next one is computed while this one is fresh.
 * const times = { freshForMs: 60_000, inProcessForMs: 2_000, refreshAheadMs: 30_000, leaseDurationMs: 10_000 };
 * const hot = new SingleFlight(client, times);
 * ```
 */
export class SingleFlight {
  readonly #context: FlightContext;
  readonly #calls = new Map<string, FlightCall>();
  /** Separate: callers that want no refresh get the old value meanwhile. */
  readonly #refreshes = new Map<string, FlightCall>();
  /**
   * Looks in the background, for values in the process's memory that are due. No caller joins one: its process may have
   * been frozen since.
   */
  readonly #looks = new Map<string, FlightCall>();
  /** Refreshes in the background, of values that are fresh. */
  readonly #refreshesAhead = new Map<string, FlightCall>();
  readonly #memory: ProcessMemory;
  readonly #refreshTimes: RefreshTimes;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, options: SingleFlightOptions) {
    const core = coreOf(client);
    const { given, terms } = checkFlightOptions(options, core.times);
    const { cache = new TableCache(client), onEvent } = given;
    const tell = (event: SingleFlightEvent): void => publishFlightEvent(event, onEvent);
    const access = new CacheAccess(cache, core, tell);
    this.#context = { core, terms, cache: access, tell };
    this.#memory = new ProcessMemory(core.clock, terms);
    this.#refreshTimes = new RefreshTimes(core, terms);
  }

  /**
   * Gives the key's value: from this process's memory, from the cache, from another process that is computing it, or
   * computed here.
   *
   * A value in the process's memory (`inProcessForMs`) costs nothing. A hit costs 1 read of the cache. A miss that is
   * computed here costs 2 reads of the cache, 1 acquisition, 1 write of the cache and 1 release. It costs one read less
   * when the old entry is still the last one, and one more before the write of a cache that is not a TableCache. A
   * waiting caller costs 1 query for each look with a TableCache, otherwise 1 read of the lock and 1 of the cache.
   *
   * With `refreshAheadMs`, a value near its end is given at the same cost, and computed again in the background: for 1
   * acquisition, 1 write of the cache and 1 release, and 1 read if it was in the process's memory. Another process that
   * wants to do the same makes 1 attempt at the lock.
   *
   * With `forceRefresh` the value is computed again, although it is fresh. Other callers get the old one until the
   * new one is stored.
   *
   * Callers that share a computation, or the process's memory, share the value as the same object: treat it as
   * read-only.
   *
   * With `staleOnError`, a stale value may replace an error. Otherwise rejects with the computation's error, the same
   * for every caller in this process, and with
   *
   * - LeaseUnavailableError: another process was still computing after `waitMs`.
   * - ComputationTimeoutError: this process's computation took longer than `computeTimeoutMs`.
   * - CachedFailureError: a computation has failed less than `failureForMs` ago.
   * - CacheUnreadableError: the cache threw, so it is not known whether the value is there.
   * - InvalidOptionsError: an option, a result of undefined, or a result that the cache can never hold.
   * - LeaseAbortedError: the caller's own `signal` has aborted.
   * - LeaseTableError, LeaseConfigurationError and LeaseServiceError.
   */
  async getOrCompute<Value>(key: string, options: GetOrComputeOptions<Value>): Promise<Value> {
    const { value } = await this.getOrComputeWithSource(key, options);
    return value;
  }

  /**
   * As `getOrCompute`, at the same cost and with the same errors, and tells where the value came from.
   *
   * ```ts
   * const reports = new SingleFlight(client, { freshForMs: 60_000, staleForMs: 600_000 });
   * const { value, source } = await reports.getOrComputeWithSource("report/today", {
   *   compute: ({ signal }) => buildReport({ signal }),
   * });
   * if (source === "stale") console.warn("an old report", value);
   * ```
   */
  async getOrComputeWithSource<Value>(
    key: string,
    options: GetOrComputeOptions<Value>,
  ): Promise<SourcedValue<Value>> {
    checkKey(key);
    const { clock } = this.#context.core;
    const { given, terms } = checkCallOptions(options, this.#context.terms);
    const { signal, compute, forceRefresh = false } = given;
    const startedAt = clock.monotonic();
    const { value, source, ...why } = await untilAborted(key, signal, () =>
      this.#join({ ...terms, key, compute: compute as Compute, forceRefresh }, terms, signal),
    );
    const waitedMs = Math.round(clock.monotonic() - startedAt);
    this.#context.tell({ type: "served", key, source, waitedMs, ...why });
    return { value: value as Value, source };
  }

  /**
   * Forgets the key's value, or its failure, so that the next call computes.
   *
   * After it has resolved, a call gets a value whose computation began after `invalidate` was called. An earlier
   * computation goes on for callers that wait for it already. Its result is not stored, and the event `cacheFailed`
   * says so with the reason `refused`. Later callers, in this process or in another, wait until it has released the
   * lock, and then one of them computes.
   *
   * Three exceptions. Another process gives what it has in its memory, for `inProcessForMs` at most. There, callers
   * that join an earlier computation may still get its value until it ends, and the value that it has found may be
   * given as `stale`. And a cache that is not a TableCache and cannot compare fencing tokens may keep the result of a
   * computation whose last check came before the invalidation and whose `set` came after it. Even a cache that can
   * compare may keep the value that a failure left.
   *
   * The mark and the lock are kept for the client's `retentionMs`. A computation that takes longer may be stored.
   *
   * 1 read of the lock and 1 write of the cache; 1 read of the cache more when the lock has never been used or ttl
   * has removed it, or when a later result is there, which stays. Repeating it is harmless. Rejects with
   * CacheUnwritableError, for a TableCache with LeaseServiceError, when it is not known whether the value is
   * forgotten: call it again. Rejects with InvalidOptionsError, LeaseTableError and LeaseConfigurationError as well.
   *
   * ```ts
   * const reports = new SingleFlight(client, { freshForMs: 60_000 });
   * await documents.send(new PutCommand({ TableName: "orders", Item: { pk: "orders#today", sk: "o-17", total: 12 } }));
   * await reports.invalidate("report/today");
   * ```
   */
  async invalidate(key: string): Promise<void> {
    checkKey(key);
    try {
      await this.#context.cache.forget(key);
    } finally {
      // They go on for their callers. A later caller must not join a computation that may have begun before.
      for (const calls of [this.#calls, this.#refreshes, this.#looks, this.#refreshesAhead])
        calls.delete(key);
      this.#memory.forget(key);
    }
  }

  #join(plan: CallPlan, terms: CallerTerms, signal: AbortSignal | undefined): ReturnType<FlightCall["join"]> {
    const { key, forceRefresh } = plan;
    this.#context.core.lifecycle.throwIfClosed();
    if (!forceRefresh) {
      const kept = this.#memory.get(key, terms.inProcessForMs);
      if (kept !== undefined) {
        // Another process may have refreshed it since: look first.
        if (!this.#looks.has(key) && this.#refreshTimes.isDue(key, kept))
          void this.#flight(this.#looks, plan).run();
        return Promise.resolve({ value: kept.value, source: "process" });
      }
      const ahead = this.#refreshesAhead.get(key);
      if (ahead?.isOpen) return ahead.join(terms, signal);
    }
    const calls = forceRefresh ? this.#refreshes : this.#calls;
    const underWay = calls.get(key);
    if (underWay?.isOpen) return underWay.join(terms, signal);
    const call = this.#flight(calls, plan);
    const joined = call.join(terms, signal);
    void call.run();
    return joined;
  }

  /** Makes a shared call, and takes note of it until it ends. A value that a caller asked for may begin a refresh ahead. */
  #flight(calls: Map<string, FlightCall>, plan: CallPlan): FlightCall {
    const { key } = plan;
    const call = new FlightCall(plan, this.#context, (ended, look) => {
      if (calls.get(key) !== ended) return;
      calls.delete(key);
      if (look === undefined) return;
      this.#memory.keep(key, look);
      const fresh = calls === this.#refreshesAhead ? undefined : look.entry;
      if (fresh !== undefined && this.#refreshTimes.isDue(key, fresh)) this.#refreshAhead(plan, fresh);
    });
    calls.set(key, call);
    return call;
  }

  #refreshAhead(plan: CallPlan, fresh: CacheEntry): void {
    const { key } = plan;
    this.#refreshTimes.begin(key, fresh);
    const refresh = this.#flight(this.#refreshesAhead, plan);
    void refresh.runAhead(fresh, (ms) => this.#refreshTimes.postpone(key, fresh, ms));
  }
}
