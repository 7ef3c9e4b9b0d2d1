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
/** A beat that is due this soon, as a share of its interval, comes along with one that is due now. */
const gatheringShare = 0.25;
/** After a failed renewal the next one follows in this share of the time that is left... */
const retryShare = 0.2;
/** ...but no sooner than this, which bounds their number. */
const shortestRetryMs = 50;

/**
 * Renews all of a client's leases that want a heartbeat, with one timer.
 *
 * Leases that are due together travel together, those that end first in the first request. A failed renewal is repeated
 * after a pause, until the lease's own deadline. The timer does not keep the process alive. The work for each renewal
 * grows with the logarithm of the number of leases.
 */
export class Heartbeat {
  readonly #context: ProtocolContext;
  readonly #beats = new Map<HeldLease, Beat>();
  /** Beats to come, by when they are due on the monotonic clock. */
  readonly #scheduled = new PriorityQueue<Beat>();
  /** Beats that are due and have not been sent, by the deadlines of their leases. */
  readonly #due = new PriorityQueue<Beat>();
  #isWaitingForGate = false;
  #cancelTimer: () => void = () => undefined;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(context: ProtocolContext) {
    this.#context = context;
  }

  /**
   * Renews a lease every `intervalMs` until it ends; sooner the first time, if little of it is left. One that is renewed
   * already, for another of its handles, is renewed at the shorter of both intervals.
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

  /** A timer that is set too early finds nothing due and sets itself again, which is cheaper than setting it each time. */
  #arm(): void {
    const { first } = this.#scheduled;
    if (first === undefined || first.priority >= this.#timerAt) return;
    this.#disarm();
    this.#timerAt = first.priority;
    // In whole milliseconds: a clock may not tell a time that is nearer than its numbers are apart.
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
      // To look at the time that is left can be what ends it.
      if (this.#beats.has(lease)) this.#due.set(beat, deadline);
    } catch (error) {
      lease.fail(error);
    }
  }

  /** Sends what is due, as far as the gate has room: at most one request waits, and takes along what is most urgent then. */
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
    // A request that is sent anyway takes along beats that are due soon, as many as it has room for.
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

  /** Hands its request to the batch before it first gives way. Rejects with what is no failure of the service's. */
  async #renew(beat: Beat, batch: UpdateBatch): Promise<void> {
    const { lease, intervalMs } = beat;
    try {
      await lease.renew((write, bounds) => batch.update(write, bounds));
      this.#schedule(beat, this.#nextDue(intervalMs));
    } catch (error) {
      if (!isOperational(error)) throw error;
      // Whatever it was may pass before the deadline, credentials that have run out included.
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
