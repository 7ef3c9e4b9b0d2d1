import type { Clock } from "../time/clock.ts";

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

/**
 * A clock that stands still until it is told to move on.
 *
 * ```ts
 * const clock = new ManualClock();
 * await clock.advance(30_000); // timers fire on the way, each at its own time
 * clock.jump(-2_000); // the wall clock is set back; the monotonic clock does not notice
 * ```
 */
export class ManualClock implements Clock {
  readonly #timers = new Set<Timer>();
  #monotonic = 0;
  #offset: number;

  /** @param now where the wall clock starts, in epoch milliseconds. @default 1 January 2026 */
  constructor(now: number = Date.UTC(2026, 0, 1)) {
    this.#offset = now;
  }

  now(): number {
    return Math.floor(this.#monotonic + this.#offset);
  }

  monotonic(): number {
    return this.#monotonic;
  }

  schedule(callback: () => void, delayMs: number): () => void {
    const timer = { at: this.#monotonic + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** How many timers are waiting. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Moves both clocks on, and fires the timers that come due, one by one, letting promises settle in between. */
  async advance(ms: number): Promise<void> {
    const target = this.#monotonic + ms;
    for (;;) {
      await settled();
      const next = this.#nextTimer();
      if (next === undefined || next.at > target) break;
      this.#timers.delete(next);
      this.#monotonic = Math.max(this.#monotonic, next.at);
      next.callback();
    }
    this.#monotonic = target;
    await settled();
  }

  /** Moves both clocks on without firing a timer, as for a process that was frozen. */
  freeze(ms: number): void {
    this.#monotonic += ms;
  }

  /** Sets the wall clock forward or back. */
  jump(ms: number): void {
    this.#offset += ms;
  }

  #nextTimer(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (next === undefined || timer.at < next.at) next = timer;
    }
    return next;
  }
}

/** Resolves when every promise that can settle without a timer or an answer has settled. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
