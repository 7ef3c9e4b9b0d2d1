import type { TakeoverReason } from "../events.ts";
import type { LeaseRecord } from "../record.ts";
import type { ServiceClock } from "../time/service-clock.ts";

/** Whether a record may be taken over now, and when it could be if nothing changes. */
export interface Expiry {
  /** Why it may be taken over now; undefined while it may not. */
  readonly reason: TakeoverReason | undefined;
  /** In how many milliseconds it may be taken over; 0 for at once. */
  readonly claimableInMs: number;
}

/**
 * How much of a lease an observer has to see pass: its holder's clock may run slow, and the observer's fast. This allows
 * for clocks that are wrong by 1/1000 each, and by a little more.
 */
export const observedShare: number = 1 + 1 / 400;

/** A record that has not been met again for this long is forgotten; so is none that a caller tries once an hour. */
const rememberedForMs = 2 * 60 * 60 * 1000;

/** A record as it was first seen. */
interface Sighting {
  readonly version: number;
  readonly since: number;
}

/** What the last answer about an item has shown, by token. */
interface ItemSighting {
  readonly leases: ReadonlyMap<string, Sighting>;
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
  /** By item; the one that was met longest ago comes first. */
  readonly #sightings = new Map<string, ItemSighting>();

  constructor(clock: ServiceClock, clockSkewMs: number) {
    this.#clock = clock;
    this.#clockSkewMs = clockSkewMs;
  }

  /** Judges the one lease of an item that an answer has just brought. Call it once for each answer. */
  judge(record: LeaseRecord): Expiry {
    return this.#judge(record, this.#watch(record, [record]));
  }

  /** Judges all leases of one item that an answer has just brought. Call it once for each answer. */
  judgeAll<Lease extends LeaseRecord>(leases: readonly Lease[]): ReadonlyMap<Lease, Expiry> {
    const [first] = leases;
    if (first === undefined) return new Map();
    const seen = this.#watch(first, leases);
    return new Map(leases.map((lease) => [lease, this.#judge(lease, seen)]));
  }

  /** Those leases of one item whose time is not over. Call it once for each answer. */
  standing<Lease extends LeaseRecord>(leases: readonly Lease[]): readonly Lease[] {
    const expiries = [...this.judgeAll(leases)];
    return expiries.filter(([, { reason }]) => reason === undefined).map(([lease]) => lease);
  }

  #judge(record: LeaseRecord, seen: ItemSighting): Expiry {
    const unchangedForMs = seen.lastSeen - (seen.leases.get(record.token)?.since ?? seen.lastSeen);
    const observedInMs = record.leaseDurationMs * observedShare - unchangedForMs;
    if (observedInMs <= 0) return { reason: "observation", claimableInMs: 0 };

    const earliest = this.#clock.earliest();
    // An expiry of its writer's own clock, an infinite allowance, and a service that does not tell its time leave the
    // observation alone.
    if (record.ownClock || earliest === undefined || !Number.isFinite(this.#clockSkewMs)) {
      return { reason: undefined, claimableInMs: observedInMs };
    }
    const expiredSinceMs = earliest - this.#clockSkewMs - record.expiresAt;
    if (expiredSinceMs > 0) return { reason: "serviceClock", claimableInMs: 0 };
    return { reason: undefined, claimableInMs: Math.min(observedInMs, 1 - expiredSinceMs) };
  }

  /** Counts from the arrival of the answer that first showed a lease, for it was written before that. */
  #watch({ key, sortKey }: LeaseRecord, leases: readonly LeaseRecord[]): ItemSighting {
    const now = this.#clock.monotonic();
    const id = JSON.stringify([key, sortKey]);
    const before = this.#sightings.get(id)?.leases;
    const sighting = ({ token, version }: LeaseRecord): Sighting => {
      const known = before?.get(token);
      return known?.version === version ? known : { version, since: now };
    };
    const shown = new Map(leases.map((lease) => [lease.token, sighting(lease)]));
    const seen = { leases: shown, lastSeen: now };
    this.#sightings.delete(id);
    this.#sightings.set(id, seen);
    this.#forget(now);
    return seen;
  }

  /** Forgets by age and never by number, or those who try more dead locks in turn than that number would take none. */
  #forget(now: number): void {
    for (const [id, { lastSeen }] of this.#sightings) {
      if (now - lastSeen <= rememberedForMs) return;
      this.#sightings.delete(id);
    }
  }
}
