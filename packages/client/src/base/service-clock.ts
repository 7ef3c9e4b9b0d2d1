import { type Clock, longestTimerMs, type Moment } from "./clock.ts";

/**
 * How far a clock may run fast or slow: 1/1000. Quartz is better than 1/10000, and NTP slews by at most 1/2000.
 */
const rateError = 0.001;
/**
 * How much longer than its duration a lease may last in the service's time, because its holder's clock may run slow.
 */
const lastingShare = 1 / (1 - rateError);

/** Local clocks that move apart by no more than this were neither set nor suspended. */
const steadyMs = 100;
/** A holder that may believe in less than this share of its lease renews at once. */
const usefulShare = 1 / 3;
/** The bounds tighten by up to this much after a client's first answers. */
const settlingMs = 1_000;
/** An expiry that is later than needed by more than this would keep others from a dead lock for too long. */
const harmlessExcessMs = 5_000;

/** The bounds of the service's time when it made an answer, in epoch milliseconds. */
export interface ServiceTime {
  readonly earliest: number;
  readonly latest: number;
}

/** A moment before or after which the service's clock has shown a known time. */
interface Anchor {
  readonly at: Moment;
  readonly time: number;
}

/** How an expiry in the table compares with the service's time. */
export interface ExpiryCheck {
  /** How long after the moment of the request its holder may believe in the lease; 0 if it may not. */
  readonly believedMs: number;
  /** False if the expiry is much too early for the holder, or so late that a dead holder would keep others out. */
  readonly isSound: boolean;
}

/** The service's time by answers that agree: not before the lower bound, and before the upper bound. */
interface ClockBounds {
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
 * An answer that contradicts the bounds may be a proxy's, or come after a suspension that no local clock shows. Until
 * another answer agrees with one of the two, both count: the time lies between the lowest and the highest bound.
 *
 * As a {@link Clock} it gives the wall clock's time, corrected where the service's answers show that it is wrong.
 */
export class ServiceClock implements Clock {
  readonly #clock: Clock;
  readonly #isLocal: boolean;
  readonly #onAnswer: (now: Moment) => void;
  /** The bounds of the answers that agree; two groups if answers contradict one another. */
  #told: readonly ClockBounds[] = [];
  /** Whether answers have come, and none of them has told the time. */
  #isUntold = false;

  /**
   * With `isLocal`, the store is in this process, and its time is the clock's own. `onAnswer` is called for each
   * answer.
   */
  constructor(clock: Clock, isLocal: boolean, onAnswer: (now: Moment) => void) {
    this.#clock = clock;
    this.#isLocal = isLocal;
    this.#onAnswer = onAnswer;
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  schedule(callback: () => void, delayMs: number, options?: { readonly background?: boolean }): () => void {
    // Clocks are made of timers, and a longer timer of Node fires at once.
    if (!(delayMs > longestTimerMs)) return this.#clock.schedule(callback, delayMs, options);
    let cancel = this.#clock.schedule(
      () => {
        cancel = this.schedule(callback, delayMs - longestTimerMs, options);
      },
      longestTimerMs,
      options,
    );
    return () => cancel();
  }

  /** The wall clock's time, or the nearest time that the service's answers allow; in whole milliseconds. */
  now(): number {
    return this.timeOf(this.moment());
  }

  /**
   * Reads all local clocks.
   *
   * The monotonic clock is read first. If the process freezes in between, every duration from this moment ends early,
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

  /**
   * Whether the service's time is known. If it is not, an expiry that is written here comes from the wall clock alone.
   */
  get isTold(): boolean {
    return this.#isLocal || this.#told.length > 0;
  }

  /** Whether answers have come, and none has told the service's time. */
  get isUntold(): boolean {
    return this.#isUntold && !this.isTold;
  }

  /** The earliest time that the service's clock can show now; undefined if the service has not told its time. */
  earliest(now: Moment = this.moment()): number | undefined {
    return this.#isLocal ? now.wall : this.#lowerAt(now);
  }

  /** The service's clock shows a time before this now; undefined if the service has not told its time. */
  latest(now: Moment = this.moment()): number | undefined {
    return this.#isLocal ? now.wall : this.#upperAt(now);
  }

  /** Whether an answer shows that the service's clock has passed an expiry. */
  isPast(expiresAt: number, now: Moment): boolean {
    return this.#told.some((bounds) => lowerAt(bounds, now) >= expiresAt);
  }

  /**
   * The end of a lease that begins at a moment, in epoch milliseconds: late enough that its holder may believe in the
   * whole lease, by the service's time. If the service's time is not known, the wall clock counts: `checkExpiry`
   * corrects that when an answer has told it.
   *
   * A renewal passes the end that the table shows. That end stays if the new one would be earlier by less than a
   * second, because the bounds have become tighter. It also stays if the service's time is not known.
   */
  expiryOf(since: Moment, leaseDurationMs: number, shown = 0): number {
    const upper = this.#upperAt(since);
    const exact = upper === undefined ? since.wall + leaseDurationMs : upper + leaseDurationMs * lastingShare;
    const expiresAt = Math.ceil(exact);
    const mayBeEarlier = this.isTold && shown >= expiresAt + settlingMs;
    return mayBeEarlier ? expiresAt : Math.max(shown, expiresAt);
  }

  /**
   * The time of a moment, for people, for garbage collection and for first fencing tokens; in whole milliseconds. One
   * contradicting answer does not move it: otherwise tokens could not grow until that time has come.
   */
  timeOf(since: Moment): number {
    const [first] = this.#told;
    const isPlausible = first === undefined || this.#told.some((bounds) => agreesWith(bounds, since));
    return Math.floor(isPlausible ? since.wall : upperAt(first, since));
  }

  /**
   * Compares a lease's expiry with what the service's answers have told since the request. The holder believes in the
   * lease at most until that expiry, because others may take it over from then on.
   *
   * With `ownClock`, the expiry is marked as the holder's own, and no caller judges by it: others observe the lease for
   * its whole duration.
   */
  checkExpiry(expiresAt: number, since: Moment, leaseDurationMs: number, ownClock = false): ExpiryCheck {
    if (this.#isLocal || ownClock) return { believedMs: leaseDurationMs, isSound: true };
    const latest = this.#upperAt(since);
    if (latest === undefined) return { believedMs: 0, isSound: false };
    const coveredMs = (expiresAt - latest) / lastingShare;
    const believedMs = Math.max(0, Math.min(leaseDurationMs, coveredMs));
    const isTooLate = expiresAt - latest - leaseDurationMs > harmlessExcessMs;
    return { believedMs, isSound: believedMs > leaseDurationMs * usefulShare && !isTooLate };
  }

  /** The least and the most that the service's clock is ahead of the wall clock; undefined if that is not known. */
  ahead(now: Moment = this.moment()): { readonly minMs: number; readonly maxMs: number } | undefined {
    const [lower, upper] = [this.#lowerAt(now), this.#upperAt(now)];
    if (lower === undefined || upper === undefined) return undefined;
    return { minMs: Math.floor(lower - now.wall), maxMs: Math.ceil(upper - now.wall) };
  }

  /** Takes note of the service's time in an answer, and of the moment when its request was sent. */
  note(time: ServiceTime | undefined, sentAt: Moment): void {
    if (this.#isLocal) return;
    const now = this.moment();
    if (time === undefined) this.#isUntold = true;
    else {
      const newest = { lower: { at: now, time: time.earliest }, upper: { at: sentAt, time: time.latest } };
      const agreeing = this.#told.filter((bounds) => agree(newest, bounds, now));
      this.#told =
        agreeing.length > 0
          ? agreeing.map((bounds) => better(newest, bounds, now))
          : [...this.#told.slice(0, 1), newest];
    }
    this.#onAnswer(now);
  }

  /** The lowest of the lower bounds. */
  #lowerAt(at: Moment): number | undefined {
    return this.#told.length > 0 ? Math.min(...this.#told.map((bounds) => lowerAt(bounds, at))) : undefined;
  }

  /** The highest of the upper bounds. */
  #upperAt(at: Moment): number | undefined {
    return this.#told.length > 0 ? Math.max(...this.#told.map((bounds) => upperAt(bounds, at))) : undefined;
  }
}

/** Whether the wall clock lies between bounds, and has not been set since. */
function agreesWith(bounds: ClockBounds, at: Moment): boolean {
  const { upper } = bounds;
  const elapsed = at.monotonic - upper.at.monotonic;
  const gap = elapsedBetween(upper.at, at) - Math.min(elapsed, at.wall - upper.at.wall);
  return (
    gap <= steadyMs + Math.abs(elapsed) * rateError &&
    at.wall >= lowerAt(bounds, at) &&
    at.wall < upperAt(bounds, at)
  );
}

/**
 * Whether two answers can both be right, by the monotonic clock alone. A step of the wall clock would raise the upper
 * bound so far that any proxy's answer would lie below it.
 */
function agree(one: ClockBounds, other: ClockBounds, now: Moment): boolean {
  return lowerAt(one, now) <= steadyUpperAt(other, now) && lowerAt(other, now) <= steadyUpperAt(one, now);
}

function steadyUpperAt({ upper }: ClockBounds, { monotonic }: Moment): number {
  const elapsed = monotonic - upper.at.monotonic;
  return upper.time + elapsed + Math.abs(elapsed) * rateError;
}

/** The higher lower bound and the lower upper bound of two, as they are now. */
function better(newer: ClockBounds, older: ClockBounds, now: Moment): ClockBounds {
  return {
    lower: (lowerAt(newer, now) >= lowerAt(older, now) ? newer : older).lower,
    upper: (upperAt(newer, now) <= upperAt(older, now) ? newer : older).upper,
  };
}

function lowerAt({ lower }: ClockBounds, { monotonic }: Moment): number {
  const elapsed = monotonic - lower.at.monotonic;
  return lower.time + (elapsed - Math.abs(elapsed) * rateError);
}

function upperAt({ upper }: ClockBounds, at: Moment): number {
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
