import type { TakeoverGround } from "../events.ts";
import type { LeaseRecord } from "../record.ts";
import type { ServiceClock } from "../time/service-clock.ts";

/** Whether a record may be taken over now, and on what ground; otherwise when it could be, if nothing changes. */
export type Expiry =
  | { readonly expired: true; readonly ground: TakeoverGround }
  | { readonly expired: false; readonly claimableInMs: number };

/** In how many milliseconds a record may be taken over, if nothing changes. */
export function claimableIn(verdict: Expiry): number {
  return verdict.expired ? 0 : verdict.claimableInMs;
}

/**
 * How much of a lease an observer has to see pass: its holder's clock may run slow, and the observer's fast. This allows
 * for clocks that are wrong by 1/1000 each, and by a little more.
 */
const observedShare = 1 + 1 / 400;

/** A record that has not been met again for this long is forgotten; so is none that a caller tries once an hour. */
const rememberedForMs = 2 * 60 * 60 * 1000;

/** A record as it was first seen, and when it was seen last. */
interface Sighting {
  readonly token: string;
  readonly version: number;
  readonly since: number;
  readonly lastSeen: number;
}

/**
 * Decides whether a holder's time is over.
 *
 * Remembers for how long each record has stayed unchanged, across calls, so that a job that merely tries once a
 * minute finds a dead holder too.
 */
export class ExpiryDetector {
  readonly #clock: ServiceClock;
  readonly #clockSkewMs: number;
  /** The one that was met longest ago comes first. */
  readonly #sightings = new Map<string, Sighting>();

  constructor(clock: ServiceClock, clockSkewMs: number) {
    this.#clock = clock;
    this.#clockSkewMs = clockSkewMs;
  }

  /** Judges a record that an answer has just brought. Call it once for each answer. */
  judge(record: LeaseRecord): Expiry {
    const observedInMs = record.leaseDurationMs * observedShare - this.#watch(record);
    if (observedInMs <= 0) return { expired: true, ground: "observation" };

    const earliest = this.#clock.earliest();
    // An infinite allowance, and a service that does not tell its time, leave the observation alone.
    if (earliest === undefined || !Number.isFinite(this.#clockSkewMs)) {
      return { expired: false, claimableInMs: observedInMs };
    }
    const expiredSinceMs = earliest - this.#clockSkewMs - record.expiresAt;
    if (expiredSinceMs > 0) return { expired: true, ground: "serviceClock" };
    return { expired: false, claimableInMs: Math.min(observedInMs, 1 - expiredSinceMs) };
  }

  /** Counts from the arrival of the answer that first showed the record, for it was written before that. */
  #watch(record: LeaseRecord): number {
    const now = this.#clock.monotonic();
    const id = JSON.stringify([record.key, record.sortKey]);
    const seen = this.#sightings.get(id);
    this.#sightings.delete(id);
    const unchanged = seen?.token === record.token && seen.version === record.version;
    const since = unchanged ? seen.since : now;
    this.#sightings.set(id, { token: record.token, version: record.version, since, lastSeen: now });
    this.#forget(now);
    return now - since;
  }

  /** Forgets by age and never by number, or those who try more dead locks in turn than that number would take none. */
  #forget(now: number): void {
    for (const [id, { lastSeen }] of this.#sightings) {
      if (now - lastSeen <= rememberedForMs) return;
      this.#sightings.delete(id);
    }
  }
}
