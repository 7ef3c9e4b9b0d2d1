import type { Moment } from "../base/clock.ts";
import { LeaseLostError, type LeaseLostReason } from "../base/errors.ts";
import type { LeaseRecord } from "../base/lease-record.ts";
import type { ServiceClock } from "../base/service-clock.ts";

/** For how long a holder believes in a lease, from the moment before it sent the acquiring or renewing request. */
export interface Belief {
  readonly since: Moment;
  readonly forMs: number;
  /**
   * Whether the expiry in the table comes from this machine's own clock: then it cannot be compared with the service's
   * time.
   * @default false
   */
  readonly ownClock?: boolean | undefined;
}

const background = { background: true };

/**
 * How long a holder may believe that its lease protects it.
 *
 * The deadline is on the holder's own clocks. It counts from before the holder sent the request that won or renewed the
 * lease. Only a confirmed renewal moves it, whatever else the service does or fails to do.
 *
 * The signal and the error are created on first use: most leases end by a release that nobody watches.
 */
export abstract class LeaseDeadline {
  readonly #clock: ServiceClock;
  readonly #key: string;
  #belief: Belief | undefined;
  #expiresAt: number;
  #ownClock: boolean | undefined;
  #cancelTimer: (() => void) | undefined;
  #loss: ConstructorParameters<typeof LeaseLostError> | undefined;
  #error: LeaseLostError | undefined;
  #controller: AbortController | undefined;
  /** Made anew by `concat`: an array that grows would keep room for sixteen more, in every held lease. */
  #endListeners: readonly (() => void)[] | undefined;

  /** Starts unconfirmed: it protects nothing until the first `confirm`. */
  constructor(clock: ServiceClock, { key, expiresAt, ownClock }: LeaseRecord) {
    this.#clock = clock;
    this.#key = key;
    this.#expiresAt = expiresAt;
    this.#ownClock = ownClock;
  }

  /** Called when the lease has ended, before its signal aborts. */
  protected abstract ended(reason: LeaseLostReason): void;

  /** When the lease ends in the table's terms, in epoch milliseconds. */
  get expiresAt(): number {
    return this.#expiresAt;
  }

  /** Whether `expiresAt` comes from this machine's own clock. */
  get ownClock(): boolean | undefined {
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

  /** Why the lease protects nothing any more; undefined until the end has been noticed. */
  get lost(): LeaseLostReason | undefined {
    return this.#loss?.[1];
  }

  /** The loss as an error, the same for all callers; undefined until the end has been noticed. */
  get error(): LeaseLostError | undefined {
    if (this.#loss !== undefined) this.#error ??= new LeaseLostError(...this.#loss);
    return this.#error;
  }

  /** How much longer the lease protects its holder, in milliseconds; 0 once it does not. */
  remainingMs(): number {
    if (this.#loss !== undefined || this.#belief === undefined) return 0;
    const { since, forMs } = this.#belief;
    const now = this.#clock.moment();
    const leftMs = forMs - this.#clock.elapsedSince(since, now);
    // Another call's answer may have told the service's time since, and so a suspension that these clocks do not show.
    if (leftMs > 0 && (this.#ownClock || !this.#clock.isPast(this.#expiresAt, now))) return leftMs;
    this.over("expired");
    return 0;
  }

  /** Calls the listener when the lease ends, for whatever reason; at once if it has ended. */
  onEnd(listener: () => void): void {
    if (this.#loss !== undefined) listener();
    else this.#endListeners = this.#endListeners?.concat(listener) ?? [listener];
  }

  /** Ends the holder's belief for good. Only the first reason counts. The lease may stay in the table. */
  over(reason: LeaseLostReason, detail?: string, options?: ErrorOptions): void {
    if (this.#loss !== undefined) return;
    this.#loss = [this.#key, reason, detail, options];
    this.#cancelTimer?.();
    // All that belongs to the lease learns it before the user's own abort handlers run.
    for (const listener of this.#endListeners ?? []) listener();
    this.ended(reason);
    this.#controller?.abort(this.error);
  }

  /** Sets the holder's belief and the expiry that the table shows. Revives nothing that has ended. */
  confirm(belief: Belief, expiresAt: number): void {
    this.#belief = belief;
    this.#expiresAt = expiresAt;
    this.#ownClock = belief.ownClock;
    this.#arm();
  }

  #arm(): void {
    this.#cancelTimer?.();
    const leftMs = this.remainingMs();
    if (leftMs <= 0) return;
    // Timers may fire a little early: the timer is set again for the rest.
    this.#cancelTimer = this.#clock.schedule(() => this.#arm(), Math.ceil(leftMs), background);
  }
}
