import type { Randomness } from "@leasehold/client";
import { pageSize, type Survey } from "./scout.ts";

/** After one survey that found nothing the next one waits for longer, up to so many times the poll interval... */
const mostPatience = 10;
/** ...and beside many open tasks up to so many times. */
const mostPages = 60;

/**
 * How long a worker with nothing to do relies on its last survey: longer each time, and longer where surveys cost more.
 *
 * So a worker that stays idle reads no more than about 32 open tasks in each poll interval, up to 1,920 tasks.
 */
export class PollPace {
  readonly #pollMs: number;
  readonly #randomness: Randomness;
  #last: Survey | undefined;
  #inVain = 0;
  /** Until the first survey none is relied on. */
  #restMs = 0;

  constructor(pollMs: number, randomness: Randomness) {
    this.#pollMs = pollMs;
    this.#randomness = randomness;
  }

  /** For how long a survey is relied on. */
  get restMs(): number {
    return this.#restMs;
  }

  /** Whether the next survey follows one that found nothing. */
  get isIdle(): boolean {
    return this.#inVain > 0;
  }

  /** A survey has found nothing; one that was seen before changes nothing. */
  foundNothing(survey: Survey): void {
    if (survey === this.#last) return;
    this.#last = survey;
    const patience = Math.min(2 ** this.#inVain, mostPatience);
    const pages = Math.min(Math.ceil(survey.openTasks / pageSize), mostPages);
    this.#inVain += 1;
    const jitter = 0.75 + this.#randomness.fraction() / 2;
    this.#restMs = this.#pollMs * Math.max(patience, pages) * jitter;
  }

  /** There was something to do. */
  foundSome(): void {
    this.#inVain = 0;
  }
}
