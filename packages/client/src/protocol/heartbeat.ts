import type { ProtocolContext } from "./context.ts";
import type { Tenancy } from "./tenancy.ts";
import { UpdateBatch } from "./update-batch.ts";

interface Beat {
  readonly tenancy: Tenancy;
  intervalMs: number;
  /** On the monotonic clock; infinite while a renewal is under way. */
  dueAt: number;
}

/** Intervals are shortened by up to this share, so that many processes do not beat in step. */
const jitterShare = 0.1;
/** A beat that is due this soon, as a share of its interval, comes along with one that is due now. */
const gatheringShare = 0.25;
/** After a failed renewal the next one follows in this share of the time that is left... */
const retryShare = 0.2;
/** ...but no sooner than this, which bounds their number. */
const shortestRetryMs = 50;

/**
 * Renews all of a client's leases that want a heartbeat, with one timer.
 *
 * Leases that are due together travel together. A failed renewal is repeated until the lease's own deadline; the
 * timer does not keep the process alive.
 */
export class Heartbeat {
  readonly #context: ProtocolContext;
  readonly #beats = new Set<Beat>();
  #cancelTimer: () => void = () => undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(context: ProtocolContext) {
    this.#context = context;
  }

  /**
   * Renews a tenancy every `intervalMs` until it ends; sooner the first time, if little of it is left. One that is renewed
   * already, for another of its handles, is renewed at the shorter of both intervals.
   */
  start(tenancy: Tenancy, intervalMs: number): void {
    for (const known of this.#beats) {
      if (known.tenancy !== tenancy) continue;
      known.intervalMs = Math.min(known.intervalMs, intervalMs);
      return;
    }
    const halfway = this.#context.clock.monotonic() + tenancy.validity.remainingMs() / 2;
    const beat: Beat = { tenancy, intervalMs, dueAt: Math.min(this.#nextDue(intervalMs), halfway) };
    this.#beats.add(beat);
    tenancy.onEnd(() => {
      this.#beats.delete(beat);
      if (this.#beats.size === 0) this.#disarm();
    });
    this.#arm();
  }

  #nextDue(intervalMs: number): number {
    const jitter = intervalMs * jitterShare * this.#context.randomness.fraction();
    return this.#context.clock.monotonic() + intervalMs - jitter;
  }

  #arm(): void {
    const dueAt = Math.min(...[...this.#beats].map((beat) => beat.dueAt));
    if (dueAt === this.#timerAt) return;
    this.#disarm();
    if (!Number.isFinite(dueAt)) return;
    this.#timerAt = dueAt;
    const delay = Math.max(0, dueAt - this.#context.clock.monotonic());
    this.#cancelTimer = this.#context.clock.schedule(() => this.#fire(), delay, { background: true });
  }

  #disarm(): void {
    this.#cancelTimer();
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #fire(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.#context.clock.monotonic();
    const batch = new UpdateBatch(this.#context.store);
    for (const beat of this.#beats) {
      if (beat.dueAt <= now + beat.intervalMs * gatheringShare) void this.#renew(beat, batch);
    }
    batch.send();
    this.#arm();
  }

  /** Hands its request to the batch before it first gives way. */
  async #renew(beat: Beat, batch: UpdateBatch): Promise<void> {
    const { tenancy, intervalMs } = beat;
    beat.dueAt = Number.POSITIVE_INFINITY;
    try {
      await tenancy.renew((request, options) => batch.update(request, options));
      beat.dueAt = this.#nextDue(intervalMs);
    } catch {
      // Whatever it was may pass before the deadline, credentials that have run out included.
      const left = tenancy.validity.remainingMs();
      const jitter = 1 - jitterShare * this.#context.randomness.fraction();
      const retryInMs = Math.max(left * retryShare * jitter, shortestRetryMs);
      if (retryInMs < left) beat.dueAt = this.#context.clock.monotonic() + retryInMs;
    }
    if (this.#beats.has(beat)) this.#arm();
  }
}
