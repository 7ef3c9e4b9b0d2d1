import type { Clock } from "../../base/clock.ts";

const firstPauseMs = 60_000;
const longestPauseMs = 60 * 60_000;

/**
 * A pause in sending batches, because the service or a policy has just refused one.
 *
 * Policies and credentials change, and a refusal may be temporary. So a batch is tried again after a pause that doubles
 * with each refusal, from a minute up to an hour.
 */
export class BatchPause {
  readonly #clock: Clock;
  /** On the monotonic clock. */
  #until = Number.NEGATIVE_INFINITY;
  #nextMs = firstPauseMs;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get isOn(): boolean {
    return this.#clock.monotonic() < this.#until;
  }

  /** A batch has been refused. The results of concurrent batches show nothing new. */
  begin(): void {
    if (this.isOn) return;
    this.#until = this.#clock.monotonic() + this.#nextMs;
    this.#nextMs = Math.min(this.#nextMs * 2, longestPauseMs);
  }

  /** A batch has been served. */
  end(): void {
    this.#until = Number.NEGATIVE_INFINITY;
    this.#nextMs = firstPauseMs;
  }
}
