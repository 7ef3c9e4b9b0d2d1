import type { Clock } from "@leasehold/client";
import type { ManualClock } from "@leasehold/client/testing";
import type { Random } from "../simulation/random.ts";

/**
 * A process of a simulation, with a wall clock of its own: timers and answers reach it only while it runs.
 *
 * While it is frozen they pile up; when it wakes they come in an order of chance, as they do from a real event loop.
 */
export class SimulatedProcess implements Clock {
  readonly name: string;
  /** By how much its wall clock is ahead of the service's. */
  readonly aheadMs: number;
  readonly #clock: ManualClock;
  readonly #random: Random;
  #frozenUntil = Number.NEGATIVE_INFINITY;
  #isDead = false;
  #backlog: (() => void)[] = [];

  constructor(name: string, aheadMs: number, clock: ManualClock, random: Random) {
    this.name = name;
    this.aheadMs = aheadMs;
    this.#clock = clock;
    this.#random = random;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  now(): number {
    return this.#clock.now() + this.aheadMs;
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  schedule(callback: () => void, delayMs: number): () => void {
    let isCancelled = false;
    const fire = (): void => {
      if (!isCancelled) callback();
    };
    const cancel = this.#clock.schedule(() => this.deliver(fire), delayMs);
    return () => {
      isCancelled = true;
      cancel();
    };
  }

  /** Runs something inside the process: now, when it wakes, or never. */
  deliver(run: () => void): void {
    if (this.#isDead) return;
    if (this.#isFrozen) this.#backlog.push(run);
    else run();
  }

  /** Resolves after a time of this process's: never, if it dies before. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.schedule(resolve, ms);
    });
  }

  freeze(ms: number): void {
    this.#frozenUntil = Math.max(this.#frozenUntil, this.#clock.monotonic() + ms);
    this.#clock.schedule(() => this.#thaw(), ms);
  }

  kill(): void {
    this.#isDead = true;
    this.#backlog = [];
  }

  get #isFrozen(): boolean {
    return this.#clock.monotonic() < this.#frozenUntil;
  }

  #thaw(): void {
    if (this.#isFrozen) return;
    const backlog = this.#backlog;
    this.#backlog = [];
    while (backlog.length > 0) {
      const [run] = backlog.splice(this.#random.integer(0, backlog.length - 1), 1);
      if (run !== undefined) this.#clock.schedule(() => this.deliver(run), 0);
    }
  }
}
