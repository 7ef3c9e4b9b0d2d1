import { isOperational } from "../errors/operational.ts";
import { mostUpdatesTogether } from "../store.ts";
import type { ProtocolContext } from "./context.ts";
import type { HeldLease } from "./held-lease.ts";
import { PriorityQueue } from "./priority-queue.ts";
import { UpdateBatch } from "./update-batch.ts";

interface Beat {
  readonly lease: HeldLease;
  intervalMs: number;
}

/** Intervals are shortened by up to this share, so that many processes do not beat in step. */
const jitterShare = 0.1;
/** A beat that is due within this share of its interval is sent together with a beat that is due now. */
const gatheringShare = 0.25;
/** A failed renewal is repeated after this share of the time that is left... */
const retryShare = 0.2;
/** ...but no sooner than this, which bounds the number of retries. */
const shortestRetryMs = 50;

/**
 * Renews all of a client's leases that have a heartbeat, with one timer.
 *
 * It renews leases that are due together in one request; the leases that end first go first. It repeats a failed
 * renewal after a pause, until the lease's own deadline. The timer does not keep the process alive. The work for each
 * renewal grows with the logarithm of the number of leases.
 */
export class Heartbeat {
  readonly #context: ProtocolContext;
  readonly #beats = new Map<HeldLease, Beat>();
  /** Beats to come, by their due time on the monotonic clock. */
  readonly #scheduled = new PriorityQueue<Beat>();
  /** Due beats that have not been sent, by the deadlines of their leases. */
  readonly #due = new PriorityQueue<Beat>();
  #isWaitingForGate = false;
  #cancelTimer: () => void = () => undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(context: ProtocolContext) {
    this.#context = context;
  }

  /**
   * Renews a lease every `intervalMs` until it ends. The first renewal comes sooner if little time is left. If another
   * handle renews the lease already, the shorter of both intervals counts.
   */
  start(lease: HeldLease, intervalMs: number): void {
    const known = this.#beats.get(lease);
    if (known !== undefined) {
      known.intervalMs = Math.min(known.intervalMs, intervalMs);
      return;
    }
    const beat: Beat = { lease, intervalMs };
    this.#beats.set(lease, beat);
    lease.onEnd(() => this.#forget(beat));
    const halfway = this.#context.clock.monotonic() + lease.deadline.remainingMs() / 2;
    this.#schedule(beat, Math.min(this.#nextDue(intervalMs), halfway));
  }

  #forget(beat: Beat): void {
    this.#beats.delete(beat.lease);
    this.#scheduled.delete(beat);
    this.#due.delete(beat);
    if (this.#beats.size === 0) this.#disarm();
  }

  #nextDue(intervalMs: number): number {
    const jitter = intervalMs * jitterShare * this.#context.randomness.fraction();
    return this.#context.clock.monotonic() + intervalMs - jitter;
  }

  #schedule(beat: Beat, dueAt: number): void {
    if (!this.#beats.has(beat.lease)) return;
    this.#scheduled.set(beat, dueAt);
    this.#arm();
  }

  /**
   * A timer that fires too early finds nothing due and is set again. This costs less than setting the timer for each
   * change.
   */
  #arm(): void {
    const { first } = this.#scheduled;
    if (first === undefined || first.priority >= this.#timerAt) return;
    this.#disarm();
    this.#timerAt = first.priority;
    // In whole milliseconds: a clock cannot resolve a time that is nearer than its own steps.
    const delay = Math.ceil(Math.max(0, first.priority - this.#context.clock.monotonic()));
    this.#cancelTimer = this.#context.clock.schedule(() => this.#fire(), delay, { background: true });
  }

  #disarm(): void {
    this.#cancelTimer();
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #fire(): void {
    this.#timerAt = Number.POSITIVE_INFINITY;
    const now = this.#context.clock.monotonic();
    for (let { first } = this.#scheduled; first !== undefined && first.priority <= now; ) {
      this.#makeDue(first.item, now);
      first = this.#scheduled.first;
    }
    this.#renewDue();
    this.#arm();
  }

  #makeDue(beat: Beat, now: number): void {
    const { lease } = beat;
    this.#scheduled.delete(beat);
    try {
      const deadline = now + lease.deadline.remainingMs();
      // Reading the time that is left can end the lease.
      if (this.#beats.has(lease)) this.#due.set(beat, deadline);
    } catch (error) {
      lease.fail(error);
    }
  }

  /** Sends the due beats if the gate has room. At most one request waits, and it takes along the most urgent beats. */
  #renewDue(): void {
    const { first } = this.#due;
    if (first === undefined || this.#isWaitingForGate) return;
    this.#isWaitingForGate = true;
    void this.#context.gate.renew(first.priority, undefined, () => {
      this.#isWaitingForGate = false;
      const sent = this.#sendMostUrgent();
      this.#renewDue();
      return sent;
    });
  }

  async #sendMostUrgent(): Promise<void> {
    const now = this.#context.clock.monotonic();
    // A request that is sent anyway takes along beats that are due soon, up to its limit.
    for (let { first } = this.#scheduled; first !== undefined && this.#due.size < mostUpdatesTogether; ) {
      const { item: beat, priority: dueAt } = first;
      if (dueAt > now + beat.intervalMs * gatheringShare) break;
      this.#makeDue(beat, now);
      first = this.#scheduled.first;
    }
    const batch = new UpdateBatch(this.#context, this.#due.first?.priority ?? now);
    for (let count = 0; count < mostUpdatesTogether; count += 1) {
      const beat = this.#due.take();
      if (beat === undefined) break;
      void this.#renew(beat, batch).catch((error: unknown) => beat.lease.fail(error));
    }
    await batch.send();
  }

  /**
   * Hands its request to the batch before its first await. Rejects with every error that is no failure of the service.
   */
  async #renew(beat: Beat, batch: UpdateBatch): Promise<void> {
    const { lease, intervalMs } = beat;
    try {
      await lease.renew((write, bounds) => batch.update(write, bounds));
      this.#schedule(beat, this.#nextDue(intervalMs));
    } catch (error) {
      if (!isOperational(error)) throw error;
      // Any failure may pass before the deadline, even expired credentials.
      this.#schedule(beat, this.#retryAt(lease));
    }
  }

  #retryAt(lease: HeldLease): number {
    const { clock, randomness } = this.#context;
    // A lease that no renewal has confirmed yet has no deadline.
    const leftMs = lease.deadline.remainingMs() || lease.terms.leaseDurationMs;
    const jitter = 1 - jitterShare * randomness.fraction();
    return clock.monotonic() + Math.max(leftMs * retryShare * jitter, shortestRetryMs);
  }
}
