import type { Clock } from "../../base/clock.ts";
import { parseHttpDate } from "../sdk/transport.ts";

/** A harmless difference from the service's time: DynamoDB accepts signatures within five minutes. */
const harmlessMs = 60_000;

/**
 * The time that requests are signed for: the wall clock's, corrected if the Date of an answer shows that it is wrong.
 */
export class SigningTime {
  readonly #clock: Clock;
  /** How far the service is ahead of the wall clock. */
  offsetMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly now = (): number => this.#clock.now() + this.offsetMs;

  /** Takes note of the Date header of an answer. */
  note(date: string | undefined): void {
    const aheadMs = (parseHttpDate(date) ?? this.now()) - this.now();
    if (Math.abs(aheadMs) > harmlessMs) this.offsetMs += aheadMs;
  }
}
