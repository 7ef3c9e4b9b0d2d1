import { onAbort } from "./abort.ts";
import type { Moment } from "./clock.ts";
import { LeaseServiceError } from "./errors.ts";
import type { ServiceClock, ServiceTime } from "./service-clock.ts";
import type { CallOptions } from "./store.ts";

/** How long one call to the service may take. */
export interface CallBudget {
  /** In milliseconds, retries included. @default 10000 */
  readonly withinMs?: number;
  /** Ends it early; it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** The moment from which its time counts. @default - now */
  readonly since?: Moment;
}

/** How long one call waits for its answer, retries included, unless its caller sets a nearer limit. */
export const callBudgetMs = 10_000;

/** The least time for an answer: if an answer comes too late for its lease, a renewal corrects that. */
export const shortestBudgetMs = 1_000;

/** Within a call, the wall clock may be set by this much without making the request too old. */
const wallToleranceMs = 1_000;

/**
 * One call to the service. Its signal aborts when the time is over, or when the caller's signal aborts. Until then its
 * request is current by both clocks, whichever timer fires first after a freeze. `end` it when the call has settled.
 */
export class TimedCall implements CallOptions {
  readonly #clock: ServiceClock;
  readonly #withinMs: number;
  readonly #since: Moment;
  #lookedAt: Moment;
  readonly #controller = new AbortController();
  // Own properties, because a store may destructure the call.
  readonly signal: AbortSignal = this.#controller.signal;
  readonly #cancelTimer: () => void;
  readonly #ignoreOuter: () => void;

  /** Throws the reason of a signal that has aborted. */
  constructor(clock: ServiceClock, { withinMs = callBudgetMs, signal, since = clock.moment() }: CallBudget) {
    signal?.throwIfAborted();
    this.#clock = clock;
    this.#withinMs = withinMs;
    this.#since = since;
    this.#lookedAt = since;
    this.#ignoreOuter = onAbort(signal, (reason) => this.cut(reason));
    this.#cancelTimer = clock.schedule(() => {
      this.cut(new LeaseServiceError("LEASE_NO_ANSWER", `no answer within ${Math.round(withinMs)} ms`));
    }, withinMs);
  }

  readonly isCurrent = (): boolean => {
    const now = this.#clock.moment();
    this.#lookedAt = now;
    const isOld =
      now.monotonic - this.#since.monotonic > this.#withinMs ||
      now.wall - this.#since.wall > this.#withinMs + wallToleranceMs;
    return !this.signal.aborted && !isOld;
  };

  readonly timed = (): ((time: ServiceTime | undefined) => void) => {
    // The attempt is sent after that reading: an earlier moment only widens the bounds that the answer gives.
    const sentAt = this.#lookedAt;
    return (time) => this.#clock.note(time, sentAt);
  };

  /** Ends it before its time. */
  cut(reason: unknown): void {
    this.#controller.abort(reason);
  }

  end(): void {
    this.#cancelTimer();
    this.#ignoreOuter();
  }
}
