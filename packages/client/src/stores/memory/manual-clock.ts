import type { Clock } from "../../base/clock.ts";
import { PriorityQueue } from "../../base/priority-queue.ts";

interface Timer {
  readonly callback: () => void;
}

/**
 * A clock that stands still until a test moves it on.
 *
 * ```ts
 * const clock = new ManualClock();
 * await clock.advance(30_000); // timers fire on the way, each at its own time
 * clock.jump(-2_000); // the wall clock is set back; the monotonic clock does not notice
 * ```
 */
export class ManualClock implements Clock {
  /** By the monotonic time at which they fire. */
  readonly #timers = new PriorityQueue<Timer>();
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
    const timer = { callback };
    this.#timers.set(timer, this.#monotonic + Math.max(0, delayMs));
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
      await this.settle();
      const next = this.#timers.first;
      if (next === undefined || next.priority > target) break;
      this.#timers.delete(next.item);
      this.#monotonic = Math.max(this.#monotonic, next.priority);
      next.item.callback();
    }
    // A callback, or another call, may have moved it on by more.
    this.#monotonic = Math.max(this.#monotonic, target);
    await this.settle();
  }

  /** Settles promises before time goes on. Override it if outside answers have to be awaited, too. */
  protected settle(): Promise<void> {
    return settled();
  }

  /** Moves both clocks on without firing a timer, as for a process that was frozen. */
  freeze(ms: number): void {
    this.#monotonic += ms;
  }

  /** Sets the wall clock forward or back. */
  jump(ms: number): void {
    this.#offset += ms;
  }
}

/** Resolves when every promise that can settle without a timer or an answer has settled. */
export function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
