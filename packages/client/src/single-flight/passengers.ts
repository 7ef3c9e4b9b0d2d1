import type { LeaseUnavailableError } from "../errors/errors.ts";
import type { Clock } from "../time/clock.ts";
import type { ValueSource } from "./events.ts";
import type { CallTerms } from "./options.ts";

/** A value, and where it came from. */
export interface Served {
  readonly value: unknown;
  readonly source: ValueSource;
  /** What a stale value stands in for; absent where that is no error. */
  readonly error?: unknown;
}

/** A result that may stand in for a newer one, until a given time. */
export interface StandIn {
  readonly value: unknown;
  /** Epoch milliseconds. */
  readonly until: number;
}

interface Passenger {
  readonly takesStale: boolean;
  readonly takesStaleOnError: boolean;
  readonly leave: (settle: Settle) => void;
  /** Whether its time to wait for another process is over. */
  isDue: boolean;
}

type Settle = (resolve: (served: Served) => void, reject: (reason: unknown) => void) => void;

/** The callers that share one flight: each has its own patience and signal, and none disturbs the others. */
export class Passengers {
  readonly #clock: Clock;
  readonly #onEmpty: () => void;
  /** In the order of their coming. */
  readonly #aboard = new Set<Passenger>();
  #refusal: LeaseUnavailableError | undefined;
  /** For those that come while this process computes. */
  #standIn: StandIn | undefined;
  #lastResort: StandIn | undefined;

  constructor(clock: Clock, onEmpty: () => void) {
    this.#clock = clock;
    this.#onEmpty = onEmpty;
  }

  /** Gives what becomes of the flight, or of this caller's patience or signal if that comes first. */
  board(terms: CallTerms, signal: AbortSignal | undefined): Promise<Served> {
    const { waitMs, staleOnContention, staleOnError } = terms;
    const standIn = staleOnContention ? this.#usable(this.#standIn) : undefined;
    if (standIn !== undefined) return Promise.resolve({ value: standIn.value, source: "stale" });
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        passenger.leave((_, fail) => fail(signal?.reason));
        this.#closeIfEmpty();
      };
      const cancel = this.#clock.schedule(() => this.#due(passenger), waitMs, { background: true });
      const passenger: Passenger = {
        takesStale: staleOnContention,
        takesStaleOnError: staleOnError,
        isDue: waitMs === 0,
        leave: (settle) => {
          this.#aboard.delete(passenger);
          cancel();
          signal?.removeEventListener("abort", onAbort);
          settle(resolve, reject);
        },
      };
      this.#aboard.add(passenger);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  /** Another process computes: whoever has no patience left goes. */
  wait(refusal: LeaseUnavailableError): void {
    this.#refusal = refusal;
    for (const passenger of [...this.#aboard]) if (passenger.isDue) this.#due(passenger);
  }

  /** This process is about to compute, or to try: from now on patience is of no interest. */
  stopWaiting(): void {
    this.#refusal = undefined;
  }

  /** Gives a stale result to everybody who takes one. */
  serveStale({ value }: StandIn): void {
    giveStale([...this.#aboard], value);
    this.#closeIfEmpty();
  }

  /** Gives a stale result to everybody but the first, for whom the new one is computed, and to whoever comes later. */
  serveStaleToOthers(standIn: StandIn): void {
    const [, ...others] = this.#aboard;
    giveStale(others, standIn.value);
    this.#standIn = standIn;
  }

  /** Has a stale result ready in place of an error; undefined where the cache was found to have none. */
  keepReady(lastResort: StandIn | undefined): void {
    this.#lastResort = lastResort;
  }

  /** The flight has ended with a value. */
  land(served: Served): void {
    for (const { leave } of [...this.#aboard]) leave((resolve) => resolve(served));
  }

  /** The flight has ended with an error, for which a stale result may stand in or not. */
  fail(error: unknown, mayStandIn: boolean): void {
    for (const passenger of [...this.#aboard]) this.#fail(passenger, error, mayStandIn);
  }

  #fail({ takesStaleOnError, leave }: Passenger, error: unknown, mayStandIn: boolean): void {
    const standIn = mayStandIn && takesStaleOnError ? this.#usable(this.#lastResort) : undefined;
    leave((resolve, reject) => {
      if (standIn === undefined) reject(error);
      else resolve({ value: standIn.value, source: "stale", error });
    });
  }

  #usable(standIn: StandIn | undefined): StandIn | undefined {
    return standIn !== undefined && this.#clock.now() < standIn.until ? standIn : undefined;
  }

  #due(passenger: Passenger): void {
    passenger.isDue = true;
    const refusal = this.#refusal;
    if (refusal === undefined) return;
    this.#fail(passenger, refusal, true);
    this.#closeIfEmpty();
  }

  #closeIfEmpty(): void {
    if (this.#aboard.size === 0) this.#onEmpty();
  }
}

function giveStale(passengers: readonly Passenger[], value: unknown): void {
  for (const { takesStale, leave } of passengers) {
    if (takesStale) leave((resolve) => resolve({ value, source: "stale" }));
  }
}
