import type { LeaseClient } from "../client.ts";
import { internalsOf } from "../internals.ts";
import { checkKey } from "../validation.ts";
import { CacheAccess } from "./cache-access.ts";
import { publishFlightEvent, type SingleFlightEvent } from "./events.ts";
import { type Compute, Flight, type FlightDeck } from "./flight.ts";
import {
  checkCallOptions,
  checkFlightOptions,
  type GetOrComputeOptions,
  type SingleFlightOptions,
} from "./options.ts";
import { TableCache } from "./table-cache.ts";

/**
 * Gives values from a cache, and has each computed by one caller at a time, whatever the number of callers and
 * processes.
 *
 * Make one for each kind of value and keep it: callers of one SingleFlight in one process share a single look, a
 * single attempt at the lock and a single computation. Processes that share a table and a cache wait for each other's
 * results.
 *
 * Promised: while the cache works and no lease is lost, a value is computed once for each time that it is missing.
 * A holder that dies is replaced by exactly one other. Not promised: that a computation stops when its signal aborts;
 * one that goes on may overlap the next one, and its result is dropped.
 *
 * ```ts
 * const reports = new SingleFlight(client, { freshForMs: 60_000, staleForMs: 600_000 });
 * const report = await reports.getOrCompute("report/today", {
 *   compute: ({ signal }) => buildReport({ signal }),
 * });
 * ```
 */
export class SingleFlight {
  readonly #deck: FlightDeck;
  readonly #flights = new Map<string, Flight>();

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, options: SingleFlightOptions) {
    const parts = internalsOf(client);
    const terms = checkFlightOptions(options, parts.leaseDurationMs, parts.context);
    const { cache = new TableCache(client), onEvent } = options;
    const tell = (event: SingleFlightEvent): void => publishFlightEvent(event, onEvent);
    const access = new CacheAccess(cache, parts.context, tell);
    this.#deck = { internals: parts, terms, cache: access, tell };
  }

  /**
   * Gives the key's value: from the cache, from another process that is computing it, or computed here.
   *
   * A hit costs 1 read of the cache. A miss that is computed here costs 2 reads of the cache, 1 acquisition, 1 write
   * of the cache and 1 release; one read less where the entry that was found too old is still the last one. A
   * caller that waits costs 1 query for each look with a TableCache, otherwise 1 read of the lock and 1 of the cache.
   *
   * All callers of a flight share its value, as the same object: treat it as read-only.
   *
   * Rejects with whatever the computation rejects with, the same for every caller in this process, and with
   *
   * - LeaseUnavailableError: another process was still computing after `waitMs`;
   * - ComputationTimeoutError: this process's computation took longer than `computeTimeoutMs`;
   * - CachedFailureError: a computation has failed less than `failureForMs` ago;
   * - CacheUnreadableError: the cache threw, so nobody knows whether there is anything to compute;
   * - InvalidOptionsError: an option, a result of undefined, or one that the cache can never hold;
   * - the reason of the caller's own `signal`; LeaseTableError, LeaseConfigurationError and LeaseServiceError.
   */
  async getOrCompute<Value>(key: string, options: GetOrComputeOptions<Value>): Promise<Value> {
    checkKey(key);
    const { clock } = this.#deck.internals.context;
    const waitMs = checkCallOptions(options, this.#deck.terms);
    const { signal, compute } = options;
    signal?.throwIfAborted();
    const startedAt = clock.monotonic();
    const { value, from } = await this.#board(key, compute as Compute, waitMs, signal);
    const waitedMs = Math.round(clock.monotonic() - startedAt);
    this.#deck.tell({ type: "served", key, from, waitedMs });
    return value as Value;
  }

  #board(
    key: string,
    compute: Compute,
    waitMs: number,
    signal: AbortSignal | undefined,
  ): ReturnType<Flight["board"]> {
    const underWay = this.#flights.get(key);
    if (underWay !== undefined) return underWay.board(waitMs, signal);
    const flight = new Flight(key, compute, this.#deck, (ended) => {
      if (this.#flights.get(key) === ended) this.#flights.delete(key);
    });
    this.#flights.set(key, flight);
    const boarded = flight.board(waitMs, signal);
    void flight.depart();
    return boarded;
  }
}
