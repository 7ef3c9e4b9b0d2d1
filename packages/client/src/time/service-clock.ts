import type { Clock, Moment } from "./clock.ts";

/**
 * How far a clock may run fast or slow: 1/1000. Quartz is better than 1/10000, and NTP slews by at most 1/2000.
 */
const rateError = 0.001;
/** How much longer than its duration a lease may last in the service's time, for its holder's clock may run slow. */
const lastingShare = 1 / (1 - rateError);

/** Local clocks that move apart by no more than this were neither set nor stopped. */
const steadyMs = 100;
/** A holder that may believe in less than this share of its lease renews it at once. */
const usefulShare = 1 / 3;
/** By so much the bounds come closer after a client's first answers. */
const settlingMs = 1_000;
/** An expiry that is too late by more than this would keep others from a dead lock for too long. */
const harmlessExcessMs = 5_000;

/** Between what the service's time was when it made an answer, in epoch milliseconds. */
export interface ServiceTime {
  readonly earliest: number;
  readonly latest: number;
}

/** A moment before, or after, which the service's clock is known to have shown a time. */
interface Anchor {
  readonly at: Moment;
  readonly time: number;
}

/** How an expiry in the table compares with the service's time. */
export interface ExpiryCheck {
  /** For how long after the moment of the request its holder may believe in the lease; 0 for not at all. */
  readonly believedMs: number;
  /** False where the expiry is much too early for the holder, or so late that a dead holder would keep others out. */
  readonly isSound: boolean;
}

/** What is known of the service's time: it is not before the lower bound, and before the upper one. */
interface Bounds {
  readonly lower: Anchor;
  readonly upper: Anchor;
}

/**
 * The service's time, kept as bounds on this machine's monotonic clock.
 *
 * Every answer tells the service's time at which it was made, after its request was sent and before it arrived. So it
 * gives a lower bound that counts from the arrival, and an upper bound that counts from the sending. The best bounds
 * of all answers are kept. A slow request only widens its own interval. A suspended machine has a monotonic clock
 * that stood still, so its lower bound is too low, which is safe. The upper bound counts by the local clock that
 * shows the most time passed. So a step of the wall clock can only make it too high, until the next answer.
 *
 * As a {@link Clock} it gives the wall clock's time, corrected where the service's answers show that it is wrong.
 */
export class ServiceClock implements Clock {
  readonly #clock: Clock;
  readonly #isLocal: boolean;
  /** For how long after an expiry its holder may believe in it: takers wait for twice as long. */
  readonly #slackMs: number;
  readonly #onTime: (now: Moment) => void;
  #bounds: Bounds | undefined;

  /**
   * With `isLocal`, the store is in this process, and its time is the clock's own. Half of the allowance is for the bounds,
   * which are a second apart at first; the other half for the clocks of the service's hosts. `onTime` is called when an
   * answer has told the time.
   */
  constructor(clock: Clock, isLocal: boolean, clockSkewMs: number, onTime: (now: Moment) => void) {
    this.#clock = clock;
    this.#isLocal = isLocal;
    this.#slackMs = Number.isFinite(clockSkewMs) ? clockSkewMs / 2 : 0;
    this.#onTime = onTime;
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  schedule(callback: () => void, delayMs: number, options?: { readonly background?: boolean }): () => void {
    return this.#clock.schedule(callback, delayMs, options);
  }

  /** The wall clock's time, or the nearest that the service's answers allow; in whole milliseconds. */
  now(): number {
    return this.timeOf(this.moment());
  }

  /**
   * Reads all local clocks.
   *
   * The monotonic clock is read first: should the process freeze in between, whatever is counted from it ends early,
   * and never late.
   */
  moment(): Moment {
    const monotonic = this.#clock.monotonic();
    const wall = this.#clock.now();
    return { monotonic, wall, uptime: this.#clock.uptime?.(monotonic, wall) };
  }

  /**
   * How long ago a moment was, by the local clock that shows the most time: a suspended machine stops some of them.
   */
  elapsedSince(since: Moment, now: Moment = this.moment()): number {
    return elapsedBetween(since, now);
  }

  /** Before this time the service's clock cannot be now; undefined where the service has not told its time. */
  earliest(now: Moment = this.moment()): number | undefined {
    return this.#isLocal ? now.wall : this.#bounds && lowerAt(this.#bounds, now);
  }

  /** Whether the service's clock has certainly passed an expiry by more than its holder may believe in it. */
  isPast(expiresAt: number, now: Moment): boolean {
    const bounds = this.#told;
    return bounds !== undefined && lowerAt(bounds, now) > expiresAt + this.#slackMs;
  }

  /** The service's time is before this now; undefined where the service has not told its time. */
  latest(): number | undefined {
    return this.#latestAt(this.moment());
  }

  /**
   * For how long a time that another process has written still lies ahead, at least; by the wall clock where no answer has
   * told the time yet.
   */
  timeUntil(time: number): number {
    const now = this.moment();
    return time - (this.#latestAt(now) ?? now.wall);
  }

  /**
   * When a lease that lasts from a moment on ends, in epoch milliseconds: by the wall clock where that can be right, but late
   * enough for its holder to believe in the whole lease, as far as the service's time is known. `checkExpiry` looks again
   * when the answer has told it.
   *
   * A renewal gives the end that the table shows: it stays where the new one would be earlier by less than a second, which
   * comes of bounds that have become tighter.
   */
  expiryOf(since: Moment, leaseDurationMs: number, shown = 0): number {
    const bounds = this.#told;
    let expiresAt = since.wall + leaseDurationMs;
    if (bounds !== undefined) {
      const longEnough = upperAt(bounds, since) - this.#slackMs + leaseDurationMs * lastingShare;
      expiresAt = isPlausible(bounds, since) ? Math.max(expiresAt, longEnough) : longEnough;
    }
    expiresAt = Math.ceil(expiresAt);
    return shown < expiresAt + settlingMs ? Math.max(shown, expiresAt) : expiresAt;
  }

  /** The time of a moment, for people and for garbage collection; in whole milliseconds. */
  timeOf(since: Moment): number {
    const bounds = this.#told;
    return Math.floor(
      bounds === undefined || isPlausible(bounds, since) ? since.wall : upperAt(bounds, since),
    );
  }

  /** Compares the expiry of a lease that was asked for at a moment with what the service's answers have told since. */
  checkExpiry(expiresAt: number, since: Moment, leaseDurationMs: number): ExpiryCheck {
    const bounds = this.#told;
    // Where no answer has told the time, nothing can be compared.
    if (bounds === undefined) return { believedMs: leaseDurationMs, isSound: true };
    const latest = upperAt(bounds, since);
    const coveredMs = (expiresAt + this.#slackMs - latest) / lastingShare;
    const believedMs = Math.max(0, Math.min(leaseDurationMs, coveredMs));
    const isTooLate = expiresAt - latest - leaseDurationMs > harmlessExcessMs;
    return { believedMs, isSound: believedMs > leaseDurationMs * usefulShare && !isTooLate };
  }

  /** How far the service's clock is ahead of the wall clock, at least and at most; undefined where it is not known. */
  ahead(now: Moment = this.moment()): { readonly minMs: number; readonly maxMs: number } | undefined {
    if (this.#bounds === undefined) return undefined;
    const [lower, upper] = [lowerAt(this.#bounds, now), upperAt(this.#bounds, now)];
    return { minMs: Math.floor(lower - now.wall), maxMs: Math.ceil(upper - now.wall) };
  }

  /** Takes note of what an answer, to a request that was sent at a moment, says of the service's time. */
  note(time: ServiceTime | undefined, sentAt: Moment): void {
    if (time === undefined) return;
    const now = this.moment();
    const newest = { lower: { at: now, time: time.earliest }, upper: { at: sentAt, time: time.latest } };
    const best = this.#bounds === undefined ? newest : better(newest, this.#bounds, now);
    // The service's own clocks may differ, and a suspension may have gone unnoticed: the latest answer counts.
    this.#bounds = lowerAt(best, now) > upperAt(best, now) ? newest : best;
    this.#onTime(now);
  }

  #latestAt(at: Moment): number | undefined {
    return this.#isLocal ? at.wall : this.#bounds && upperAt(this.#bounds, at);
  }

  /** What answers have told of a clock that is not this process's own. */
  get #told(): Bounds | undefined {
    return this.#isLocal ? undefined : this.#bounds;
  }
}

/** Whether the wall clock agrees with all that is known: it lies between the bounds, and was not set since. */
function isPlausible(bounds: Bounds, at: Moment): boolean {
  const { upper } = bounds;
  const elapsed = at.monotonic - upper.at.monotonic;
  const gap = elapsedBetween(upper.at, at) - Math.min(elapsed, at.wall - upper.at.wall);
  return (
    gap <= steadyMs + Math.abs(elapsed) * rateError &&
    at.wall >= lowerAt(bounds, at) &&
    at.wall < upperAt(bounds, at)
  );
}

/** The higher lower bound and the lower upper bound of two, as they are now. */
function better(newer: Bounds, older: Bounds, now: Moment): Bounds {
  return {
    lower: (lowerAt(newer, now) >= lowerAt(older, now) ? newer : older).lower,
    upper: (upperAt(newer, now) <= upperAt(older, now) ? newer : older).upper,
  };
}

function lowerAt({ lower }: Bounds, { monotonic }: Moment): number {
  const elapsed = monotonic - lower.at.monotonic;
  return lower.time + (elapsed - Math.abs(elapsed) * rateError);
}

function upperAt({ upper }: Bounds, at: Moment): number {
  const elapsed = at.monotonic - upper.at.monotonic;
  return (
    upper.time + (elapsed < 0 ? elapsed * (1 - rateError) : elapsedBetween(upper.at, at) * (1 + rateError))
  );
}

/** By the local clock that shows the most time: a suspended machine stops some of them. */
function elapsedBetween(earlier: Moment, later: Moment): number {
  const byUptime = (later.uptime ?? 0) - (earlier.uptime ?? 0);
  return Math.max(later.monotonic - earlier.monotonic, later.wall - earlier.wall, byUptime);
}
