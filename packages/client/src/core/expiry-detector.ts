import type { TakeoverReason } from "../base/events.ts";
import type { LeaseRecord } from "../base/lease-record.ts";
import type { ServiceClock } from "../base/service-clock.ts";

/** Whether a lease may be taken over now, or how long until it may be if nothing changes. */
export interface Expiry {
  /** Why the lease may be taken over now; undefined while it may not. */
  readonly reason: TakeoverReason | undefined;
  /** Milliseconds until the lease may be taken over; 0 for now. */
  readonly claimableInMs: number;
}

/**
 * An observer waits this many times the lease's duration: the holder's clock may run slow, and the observer's fast.
 * This allows for clocks that are wrong by 1/1000 each, and by a little more.
 */
export const observedShare: number = 1 + 1 / 400;

/** An observation that no caller has repeated for this long is forgotten. An hourly caller keeps its observation. */
const rememberedForMs = 2 * 60 * 60 * 1000;

/** A record as it was first seen. */
interface Observation {
  readonly version: number;
  readonly since: number;
}

/** The observations of one item's last answer, by token. */
interface ItemObservations {
  readonly leases: ReadonlyMap<string, Observation>;
  readonly lastSeen: number;
}

/**
 * Decides whether a lease has expired.
 *
 * It remembers across calls for how long each record has stayed unchanged. So a job that tries once a minute detects a
 * dead holder too.
 */
export class ExpiryDetector {
  readonly #clock: ServiceClock;
  readonly #clockSkewMs: number;
  /** By item; the item that was observed longest ago comes first. */
  readonly #observations = new Map<string, ItemObservations>();

  constructor(clock: ServiceClock, clockSkewMs: number) {
    this.#clock = clock;
    this.#clockSkewMs = clockSkewMs;
  }

  /** Judges the only lease of an item that an answer has just brought. Call it once for each answer. */
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

  /** Returns the unexpired leases of one item. Call it once for each answer. */
  unexpired<Lease extends LeaseRecord>(leases: readonly Lease[]): readonly Lease[] {
    const expiries = [...this.judgeAll(leases)];
    return expiries.filter(([, { reason }]) => reason === undefined).map(([lease]) => lease);
  }

  #judge(record: LeaseRecord, seen: ItemObservations): Expiry {
    const unchangedForMs = seen.lastSeen - (seen.leases.get(record.token)?.since ?? seen.lastSeen);
    const observedInMs = record.leaseDurationMs * observedShare - unchangedForMs;
    if (observedInMs <= 0) return { reason: "observation", claimableInMs: 0 };

    const earliest = this.#clock.earliest();
    // Only the observation counts if the writer used its own clock, if the allowance is infinite, or if the service
    // does not tell its time.
    if (record.ownClock || earliest === undefined || !Number.isFinite(this.#clockSkewMs)) {
      return { reason: undefined, claimableInMs: observedInMs };
    }
    const expiredSinceMs = earliest - this.#clockSkewMs - record.expiresAt;
    if (expiredSinceMs > 0) return { reason: "serviceClock", claimableInMs: 0 };
    return { reason: undefined, claimableInMs: Math.min(observedInMs, 1 - expiredSinceMs) };
  }

  /** Counts from the arrival of the answer that first showed a lease: the lease was written before that. */
  #watch({ key, sortKey }: LeaseRecord, leases: readonly LeaseRecord[]): ItemObservations {
    const now = this.#clock.monotonic();
    const id = JSON.stringify([key, sortKey]);
    const before = this.#observations.get(id)?.leases;
    const observationOf = ({ token, version }: LeaseRecord): Observation => {
      const known = before?.get(token);
      return known?.version === version ? known : { version, since: now };
    };
    const shown = new Map(leases.map((lease) => [lease.token, observationOf(lease)]));
    const seen = { leases: shown, lastSeen: now };
    this.#observations.delete(id);
    this.#observations.set(id, seen);
    this.#forget(now);
    return seen;
  }

  /**
   * Forgets by age and never by number. With a limit on the number, a caller that tries many dead locks in turn would
   * take none.
   */
  #forget(now: number): void {
    for (const [id, { lastSeen }] of this.#observations) {
      if (now - lastSeen <= rememberedForMs) return;
      this.#observations.delete(id);
    }
  }
}
