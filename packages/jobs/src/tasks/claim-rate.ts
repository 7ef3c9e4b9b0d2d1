import { callWithRetry } from "./call-with-retry.ts";
import { countClaim } from "./expressions.ts";
import type { TaskRate } from "./options.ts";
import type { TaskContext } from "./task-context.ts";

/** Counts the claims of a set, of all its workers, by periods of the service's clock. */
export class ClaimRate {
  readonly #context: TaskContext;
  readonly #rate: TaskRate;
  /** The period in which this process was refused last: until its end it asks no more. */
  #usedUp: number | undefined;

  constructor(context: TaskContext, rate: TaskRate) {
    this.#context = context;
    this.#rate = rate;
  }

  /**
   * Counts one claim, which may begin then; gives 0. Gives how long to wait for the next period where this one is used up.
   *
   * 1 request. A count whose answer was lost is repeated, and may be counted twice: so a claim is lost, and none is one
   * too many.
   */
  async take(): Promise<number> {
    const { core, set } = this.#context;
    const { claims, perMs } = this.#rate;
    const period = this.#period();
    if (period !== this.#usedUp) {
      const write = countClaim({ set, claims, perMs, period });
      const { applied } = await callWithRetry(core, () => core.update(write));
      if (applied) return 0;
      this.#usedUp = period;
    }
    return Math.max(1, (period + 1) * perMs - core.clock.now());
  }

  #period(): number {
    return Math.floor(this.#context.core.clock.now() / this.#rate.perMs);
  }
}
