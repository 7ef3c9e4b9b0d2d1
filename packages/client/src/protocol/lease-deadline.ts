import { LeaseLostError, type LeaseLostReason } from "../errors/errors.ts";
import type { LeaseRecord } from "../record.ts";
import type { Moment } from "../time/clock.ts";
import type { ServiceClock } from "../time/service-clock.ts";

/** For how long a holder believes in a lease after the moment of the request that won or renewed it. */
export interface Belief {
  readonly since: Moment;
  readonly forMs: number;
  /** Whether the expiry in the table is of this machine's own clock: then the service's time says nothing of it. @default false */
  readonly ownClock?: boolean | undefined;
}

const background = { background: true };

/** Why a lease has ended. */
type Loss = ConstructorParameters<typeof LeaseLostError>;

/**
 * How long a holder may believe that its lease protects it.
 *
 * Its deadline is on the holder's own clocks, and counts from before the request was sent that won or renewed the lease.
 * Nothing that the service does, or fails to do, moves it but a confirmed renewal.
 *
 * The signal and the error are made when they are read: most leases end by a release that nobody watches.
 */
export class LeaseDeadline {
  readonly #key: string;
  readonly #clock: ServiceClock;
  readonly #lease: { ended(reason: LeaseLostReason): void };
  #controller: AbortController | undefined;
  #loss: Loss | undefined;
  #error: LeaseLostError | undefined;
  #belief: Belief | undefined;
  #expiresAt: number;
  #ownClock: boolean;
  #cancelTimer: (() => void) | undefined;

  /** Starts unconfirmed: it protects nothing until the first `confirm`. */
  constructor(
    key: string,
    clock: ServiceClock,
    { expiresAt, ownClock = false }: Pick<LeaseRecord, "expiresAt" | "ownClock">,
    lease: { ended(reason: LeaseLostReason): void },
  ) {
    this.#key = key;
    this.#clock = clock;
    this.#expiresAt = expiresAt;
    this.#ownClock = ownClock;
    this.#lease = lease;
  }

  /** When the lease ends in the table's terms, in epoch milliseconds. */
  get expiresAt(): number {
    return this.#expiresAt;
  }

  /** Whether that time is of this machine's own clock. */
  get ownClock(): boolean {
    return this.#ownClock;
  }

  /** Aborts with a LeaseLostError when the lease ends. Reading it looks at the clock. */
  get signal(): AbortSignal {
    this.remainingMs();
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#loss !== undefined) this.#controller.abort(this.error);
    }
    return this.#controller.signal;
  }

  /** Why the lease protects nothing any more, as far as has been noticed. */
  get lost(): LeaseLostReason | undefined {
    return this.#loss?.[1];
  }

  /** The same as an error, one for all who ask; undefined while the lease has not been noticed to have ended. */
  get error(): LeaseLostError | undefined {
    if (this.#loss !== undefined) this.#error ??= new LeaseLostError(...this.#loss);
    return this.#error;
  }

  /** From now on the holder believes this, and the table shows that expiry. */
  confirm(belief: Belief, expiresAt: number): void {
    if (this.#loss !== undefined) return;
    this.#belief = belief;
    this.#expiresAt = expiresAt;
    this.#ownClock = belief.ownClock ?? false;
    this.#arm();
  }

  /** How much longer the lease protects its holder, in milliseconds; 0 once it does not. */
  remainingMs(): number {
    if (this.#loss !== undefined || this.#belief === undefined) return 0;
    const { since, forMs } = this.#belief;
    const now = this.#clock.moment();
    const remaining = forMs - this.#clock.elapsedSince(since, now);
    // An answer to another call may have told the service's time since: of a suspension that these clocks do not show.
    if (remaining > 0 && (this.#ownClock || !this.#clock.isPast(this.#expiresAt, now))) return remaining;
    this.end("expired");
    return 0;
  }

  /** Ends it for good. Only the first reason counts. */
  end(reason: LeaseLostReason, detail?: string, options?: ErrorOptions): void {
    if (this.#loss !== undefined) return;
    this.#loss = [this.#key, reason, detail, options];
    this.#cancelTimer?.();
    // The lease hears of it before the user's own abort handlers run.
    this.#lease.ended(reason);
    this.#controller?.abort(this.error);
  }

  #arm(): void {
    this.#cancelTimer?.();
    const remaining = this.remainingMs();
    if (remaining <= 0) return;
    // Timers may fire a little early and cannot be set for longer than 24 days: whatever is left is waited for.
    this.#cancelTimer = this.#clock.schedule(() => this.#arm(), Math.ceil(remaining), background);
  }
}
