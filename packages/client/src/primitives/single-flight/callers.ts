import { onAbort } from "../../base/abort.ts";
import type { Clock } from "../../base/clock.ts";
import type { LeaseUnavailableError } from "../../base/errors.ts";
import type { ValueSource } from "./events.ts";
import type { CallerTerms } from "./options.ts";

/** A value, and where it came from. */
export interface Served {
  readonly value: unknown;
  readonly source: ValueSource;
  /** The error that a stale value stands in for; absent when there is none. */
  readonly error?: unknown;
}

/** A result that may stand in for a newer one, until a given time. */
export interface StaleValue {
  readonly value: unknown;
  /** Epoch milliseconds. */
  readonly until: number;
}

interface Caller {
  readonly takesStale: boolean;
  readonly takesStaleOnError: boolean;
  readonly leave: (settle: Settle) => void;
  /** Whether its time to wait for another process is over. */
  isDue: boolean;
}

type Settle = (resolve: (served: Served) => void, reject: (reason: unknown) => void) => void;

/** The callers that share one call: each has its own wait budget and signal, and none disturbs the others. */
export class Callers {
  readonly #clock: Clock;
  readonly #onEmpty: () => void;
  /** In the order of arrival. */
  readonly #waiting = new Set<Caller>();
  #refusal: LeaseUnavailableError | undefined;
  /** For callers that come while this process computes. */
  #staleValue: StaleValue | undefined;
  #lastResort: StaleValue | undefined;

  constructor(clock: Clock, onEmpty: () => void) {
    this.#clock = clock;
    this.#onEmpty = onEmpty;
  }

  /** Whether no caller waits. */
  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /**
   * Gives the outcome of the shared call, or of this caller's wait budget or signal if that comes first. The signal has not
   * aborted yet.
   */
  join(terms: CallerTerms, signal: AbortSignal | undefined): Promise<Served> {
    const { waitMs, staleOnContention, staleOnError } = terms;
    const stale = staleOnContention ? this.#usable(this.#staleValue) : undefined;
    if (stale !== undefined) return Promise.resolve({ value: stale.value, source: "stale" });
    return new Promise((resolve, reject) => {
      const cancel = this.#clock.schedule(() => this.#due(caller), waitMs, { background: true });
      const caller: Caller = {
        takesStale: staleOnContention,
        takesStaleOnError: staleOnError,
        isDue: waitMs === 0,
        leave: (settle) => {
          this.#waiting.delete(caller);
          cancel();
          ignore();
          settle(resolve, reject);
        },
      };
      this.#waiting.add(caller);
      const ignore = onAbort(signal, (reason) => {
        caller.leave((_, fail) => fail(reason));
        this.#closeIfEmpty();
      });
    });
  }

  /** Another process computes: a caller whose wait budget is over leaves. */
  wait(refusal: LeaseUnavailableError): void {
    this.#refusal = refusal;
    for (const caller of [...this.#waiting]) if (caller.isDue) this.#due(caller);
  }

  /** This process is about to compute, or to try: from now on wait budgets do not count. */
  stopWaiting(): void {
    this.#refusal = undefined;
  }

  /** Gives a stale result to every caller that takes one. */
  serveStale({ value }: StaleValue): void {
    giveStale([...this.#waiting], value);
    this.#closeIfEmpty();
  }

  /**
   * Gives a stale result to later callers, and to every caller except the first. The new one is computed for the
   * first.
   */
  serveStaleToOthers(stale: StaleValue): void {
    const [, ...others] = this.#waiting;
    giveStale(others, stale.value);
    this.#staleValue = stale;
  }

  /** Keeps a stale result ready in place of an error; undefined when the cache has none. */
  keepReady(lastResort: StaleValue | undefined): void {
    this.#lastResort = lastResort;
  }

  /** The shared call has ended with a value. */
  settle(served: Served): void {
    for (const { leave } of [...this.#waiting]) leave((resolve) => resolve(served));
  }

  /** The shared call has ended with an error, which a stale result may or may not replace. */
  fail(error: unknown, allowsStale: boolean): void {
    for (const caller of [...this.#waiting]) this.#fail(caller, error, allowsStale);
  }

  #fail({ takesStaleOnError, leave }: Caller, error: unknown, allowsStale: boolean): void {
    const stale = allowsStale && takesStaleOnError ? this.#usable(this.#lastResort) : undefined;
    leave((resolve, reject) => {
      if (stale === undefined) reject(error);
      else resolve({ value: stale.value, source: "stale", error });
    });
  }

  #usable(stale: StaleValue | undefined): StaleValue | undefined {
    return stale !== undefined && this.#clock.now() < stale.until ? stale : undefined;
  }

  #due(caller: Caller): void {
    caller.isDue = true;
    const refusal = this.#refusal;
    if (refusal === undefined) return;
    this.#fail(caller, refusal, true);
    this.#closeIfEmpty();
  }

  #closeIfEmpty(): void {
    if (this.isEmpty) this.#onEmpty();
  }
}

function giveStale(callers: readonly Caller[], value: unknown): void {
  for (const { takesStale, leave } of callers) {
    if (takesStale) leave((resolve) => resolve({ value, source: "stale" }));
  }
}
