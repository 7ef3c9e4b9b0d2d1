import { LeaseLostError, type LeaseLostReason } from "../errors/errors.ts";
import type { Moment } from "../time/clock.ts";
import type { ServiceClock } from "../time/service-clock.ts";

/** For how long a holder believes in a lease after the moment of the request that won or renewed it. */
export interface Belief {
  readonly since: Moment;
  readonly forMs: number;
}

/**
 * How long a holder may believe that its lease protects it.
 *
 * Its deadline is on the holder's own clocks, and counts from before the request was sent that won or renewed the lease.
 * Nothing that the service does, or fails to do, moves it but a confirmed renewal.
 */
export class LeaseDeadline {
  readonly #key: string;
  readonly #clock: ServiceClock;
  readonly #onLost: (reason: LeaseLostReason) => void;
  readonly #controller = new AbortController();
  #belief: Belief | undefined;
  #expiresAt: number;
  #cancelTimer: () => void = () => undefined;

  /** Starts unconfirmed: it protects nothing until the first `confirm`. */
  constructor(
    key: string,
    clock: ServiceClock,
    expiresAt: number,
    onLost: (reason: LeaseLostReason) => void,
  ) {
    this.#key = key;
    this.#clock = clock;
    this.#expiresAt = expiresAt;
    this.#onLost = onLost;
  }

  /** When the lease ends in the table's terms, in epoch milliseconds. */
  get expiresAt(): number {
    return this.#expiresAt;
  }

  /** Aborts with a LeaseLostError when the lease ends. Reading it looks at the clock. */
  get signal(): AbortSignal {
    this.remainingMs();
    return this.#controller.signal;
  }

  /** Why the lease protects nothing any more, as far as has been noticed. */
  get lost(): LeaseLostError | undefined {
    return this.#controller.signal.reason as LeaseLostError | undefined;
  }

  /** From now on the holder believes this, and the table shows that expiry. */
  confirm(belief: Belief, expiresAt: number): void {
    if (this.lost !== undefined) return;
    this.#belief = belief;
    this.#expiresAt = expiresAt;
    this.#arm();
  }

  /** How much longer the lease protects its holder, in milliseconds; 0 once it does not. */
  remainingMs(): number {
    if (this.lost !== undefined || this.#belief === undefined) return 0;
    const { since, forMs } = this.#belief;
    const remaining = forMs - this.#clock.elapsedSince(since);
    if (remaining > 0) return remaining;
    this.end("expired");
    return 0;
  }

  /** Ends it for good. Only the first reason counts. */
  end(reason: LeaseLostReason, detail?: string, options?: ErrorOptions): void {
    if (this.lost !== undefined) return;
    this.#cancelTimer();
    // The listener hears of the loss before the user's own abort handlers run.
    this.#onLost(reason);
    this.#controller.abort(new LeaseLostError(this.#key, reason, detail, options));
  }

  #arm(): void {
    this.#cancelTimer();
    const remaining = this.remainingMs();
    if (remaining <= 0) return;
    // Timers may fire a little early and cannot be set for longer than 24 days: whatever is left is waited for.
    this.#cancelTimer = this.#clock.schedule(() => this.#arm(), Math.ceil(remaining), { background: true });
  }
}
