import type { TakeoverGround } from "../events.ts";
import type { LeaseRecord } from "../record.ts";
import type { Clock } from "../time/clock.ts";
import { type ClockOffset, isWithinAllowance } from "../time/skew.ts";

/** Whether a record may be taken over now, and on what ground; otherwise when it could be, if nothing changes. */
export type Verdict =
  | { readonly expired: true; readonly ground: TakeoverGround }
  | { readonly expired: false; readonly claimableInMs: number };

/** In how many milliseconds a record may be taken over, if nothing changes. */
export function claimableIn(verdict: Verdict): number {
  return verdict.expired ? 0 : verdict.claimableInMs;
}

/** How many records a client keeps an eye on; the one seen longest ago is forgotten first. */
const mostSightings = 1000;

/**
 * Decides whether a holder's time is over.
 *
 * Remembers for how long each record has stayed unchanged, across calls, so that a job that merely tries once a
 * minute finds a dead holder too.
 */
export class Judge {
  readonly #clock: Clock;
  readonly #clockSkewMs: number;
  readonly #sightings = new Map<string, { token: string; version: number; since: number }>();

  constructor(clock: Clock, clockSkewMs: number) {
    this.#clock = clock;
    this.#clockSkewMs = clockSkewMs;
  }

  /** Judges a record that an answer has just brought. Call it once for each answer. */
  judge(record: LeaseRecord, offset: ClockOffset | undefined): Verdict {
    const unchangedMs = this.#watch(record);
    const observedInMs = record.leaseDurationMs - unchangedMs;
    if (observedInMs <= 0) return { expired: true, ground: "observation" };

    // An infinite allowance, and a clock that nobody vouches for, leave the observation alone.
    if (!isWithinAllowance(offset, this.#clockSkewMs)) return { expired: false, claimableInMs: observedInMs };
    const expiredSinceMs = this.#clock.now() - this.#clockSkewMs - record.expiresAt;
    if (expiredSinceMs > 0) return { expired: true, ground: "wallClock" };
    return { expired: false, claimableInMs: Math.min(observedInMs, 1 - expiredSinceMs) };
  }

  /** Counts from the arrival of the answer that first showed the record, for it was written before that. */
  #watch(record: LeaseRecord): number {
    const now = this.#clock.monotonic();
    const id = JSON.stringify([record.key, record.place]);
    const seen = this.#sightings.get(id);
    this.#sightings.delete(id);
    const unchanged = seen?.token === record.token && seen.version === record.version;
    const since = unchanged ? seen.since : now;
    this.#sightings.set(id, { token: record.token, version: record.version, since });
    if (this.#sightings.size > mostSightings) {
      const oldest = this.#sightings.keys().next();
      if (!oldest.done) this.#sightings.delete(oldest.value);
    }
    return now - since;
  }
}
