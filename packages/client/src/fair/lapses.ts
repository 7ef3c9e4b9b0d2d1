import type { Clock } from "../time/clock.ts";
import type { QueuePlace } from "./queue.ts";

/** A place's text, and since when it has stayed the same, on the monotonic clock. */
interface Sighted {
  readonly text: string;
  readonly since: number;
}

/**
 * Decides whether a place's time is over: by its own expiry and the allowance for clocks that differ, or because it has
 * been seen unchanged for as long as it was to last. Only the order depends on this judgement.
 */
export class Lapses {
  readonly #clock: Clock;
  readonly #clockSkewMs: number;
  #sightings = new Map<string, Sighted>();

  constructor(clock: Clock, clockSkewMs: number) {
    this.#clock = clock;
    this.#clockSkewMs = clockSkewMs;
  }

  /** Takes note of all places of an answer. Those that are not there any more are forgotten. */
  see(places: readonly QueuePlace[]): void {
    const now = this.#clock.monotonic();
    const sightings = new Map<string, Sighted>();
    for (const { id, text } of places) {
      const seen = this.#sightings.get(id);
      sightings.set(id, seen?.text === text ? seen : { text, since: now });
    }
    this.#sightings = sightings;
  }

  /** In how many milliseconds a place may be passed over if it is not prolonged; 0 for one whose time is over. */
  lapsesIn({ id, text, until, leaseMs }: QueuePlace): number {
    const now = this.#clock.monotonic();
    const seen = this.#sightings.get(id);
    const observedSince = seen?.text === text ? seen.since : now;
    const observedIn = observedSince + leaseMs - now;
    const byClock = until + this.#clockSkewMs + 1 - this.#clock.now();
    return Math.max(0, Math.min(observedIn, byClock));
  }
}
