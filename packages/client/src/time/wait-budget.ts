import { shortestBudgetMs } from "../store/timed-store.ts";
import type { Clock } from "./clock.ts";

/** The time that one caller gives its wait, on the monotonic clock. */
export class WaitBudget {
  readonly #clock: Clock;
  readonly #deadline: number;

  constructor(clock: Clock, waitMs: number) {
    this.#clock = clock;
    this.#deadline = clock.monotonic() + waitMs;
  }

  get leftMs(): number {
    return this.#deadline - this.#clock.monotonic();
  }

  /** How long one more call to the service may take: a last one gets the time that an answer needs. */
  get callMs(): number {
    return Math.max(this.leftMs, shortestBudgetMs);
  }
}
