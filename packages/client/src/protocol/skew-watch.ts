import type { LeaseEvent } from "../events.ts";
import type { Clock } from "../time/clock.ts";
import { type ClockOffset, isWithinAllowance } from "../time/skew.ts";

const quietMs = 60_000;

/** Reports that this machine's clock and the service's are too far apart, at most once a minute. */
export class SkewWatch {
  readonly #clock: Clock;
  readonly #clockSkewMs: number;
  readonly #publish: (event: LeaseEvent) => void;
  #quietUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, clockSkewMs: number, publish: (event: LeaseEvent) => void) {
    this.#clock = clock;
    this.#clockSkewMs = clockSkewMs;
    this.#publish = publish;
  }

  /** Takes note of what one answer said about the service's clock. */
  note(offset: ClockOffset | undefined): void {
    if (offset === undefined || isWithinAllowance(offset, this.#clockSkewMs)) return;
    const now = this.#clock.monotonic();
    if (now < this.#quietUntil) return;
    this.#quietUntil = now + quietMs;
    const { minMs: offsetMinMs, maxMs: offsetMaxMs } = offset;
    this.#publish({ type: "skew", offsetMinMs, offsetMaxMs, clockSkewMs: this.#clockSkewMs });
  }
}
