import type { LeaseEvent } from "../events.ts";
import type { ServiceClock } from "../time/service-clock.ts";

const quietMs = 60_000;

/** Reports that this machine's wall clock and the service's are too far apart, at most once a minute. */
export class SkewWatch {
  readonly #clock: ServiceClock;
  readonly #clockSkewMs: number;
  readonly #publish: (event: LeaseEvent) => void;
  #quietUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: ServiceClock, clockSkewMs: number, publish: (event: LeaseEvent) => void) {
    this.#clock = clock;
    this.#clockSkewMs = clockSkewMs;
    this.#publish = publish;
  }

  /** Looks at what the service's answers have shown so far. */
  look(): void {
    const ahead = this.#clock.ahead();
    if (ahead === undefined) return;
    const { minMs: offsetMinMs, maxMs: offsetMaxMs } = ahead;
    if (offsetMinMs <= this.#clockSkewMs && offsetMaxMs >= -this.#clockSkewMs) return;
    const now = this.#clock.monotonic();
    if (now < this.#quietUntil) return;
    this.#quietUntil = now + quietMs;
    this.#publish({ type: "skew", offsetMinMs, offsetMaxMs, clockSkewMs: this.#clockSkewMs });
  }
}
