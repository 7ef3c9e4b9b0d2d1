import { randomUUID } from "node:crypto";
import { uptime } from "node:os";
import { onAbort } from "./abort.ts";

/**
 * Time as the lock sees it: a wall clock, a monotonic clock and timers.
 *
 * Inject one to control time in tests (`ManualClock` of `@leasehold/client/testing`).
 */
export interface Clock {
  /** Wall-clock time in epoch milliseconds. May jump, and may differ from other machines' clocks. */
  now(): number;
  /** Milliseconds since an arbitrary point. Never runs backwards. */
  monotonic(): number;
  /**
   * Milliseconds since the machine's start, including suspended time, if the machine can tell. It gets what the other
   * two clocks have just shown.
   */
  uptime?(monotonic: number, now: number): number;
  /**
   * Calls back once after `delayMs`, unless the returned function is called before. A client asks for 2147483647 ms at
   * most, which Node's timers take.
   *
   * A `background` timer does not keep the process alive.
   */
  schedule(callback: () => void, delayMs: number, options?: { readonly background?: boolean }): () => void;
}

/** The longest delay that Node's timers take; a longer one would fire at once. */
export const longestTimerMs: number = 2 ** 31 - 1;

/** How long the other clocks may extend one reading of the uptime: a reading takes 2 to 50 µs. */
const uptimeLastsMs = 1_000;
/** A suspension moves the wall clock against the monotonic clock. A suspension shorter than this may be missed. */
const agreementMs = 5;

/**
 * Returns an uptime that is read now and then, and follows the other clocks in between. It is read again as soon as
 * these disagree, so that no suspension is missed.
 */
export function sparingUptime(readMs: () => number): (monotonic: number, wall: number) => number {
  let last = { uptime: 0, monotonic: Number.NEGATIVE_INFINITY, wall: 0 };
  return (monotonic, wall) => {
    const elapsed = monotonic - last.monotonic;
    const agree = Math.abs(wall - last.wall - elapsed) <= agreementMs;
    if (elapsed > uptimeLastsMs || !agree) last = { uptime: readMs(), monotonic, wall };
    return last.uptime + monotonic - last.monotonic;
  };
}

/** The machine's own clocks and timers. */
export const systemClock: Clock = {
  now: () => Date.now(),
  // Not performance.now(): the first look at `performance` loads nine modules of Node's, 1 ms.
  monotonic: () => Number(process.hrtime.bigint()) / 1e6,
  // On other platforms the uptime does not count suspension, or follows the wall clock.
  ...(process.platform === "linux" ? { uptime: sparingUptime(() => uptime() * 1000) } : {}),
  schedule(callback, delayMs, options) {
    // Node cuts fractions off, and a timer that fires early finds nothing due.
    const timer = setTimeout(callback, Math.min(Math.ceil(Math.max(delayMs, 0)), longestTimerMs));
    if (options?.background) timer.unref();
    return () => clearTimeout(timer);
  },
};

/** The source of tokens and jitter. */
export interface Randomness {
  /** A new unique token. */
  token(): string;
  /** A number from 0 (included) to 1 (excluded). */
  fraction(): number;
}

/** The platform's own random source. */
export const systemRandomness: Randomness = {
  // Uncached: two clones of one snapshot would draw the same tokens from what the first had drawn in advance.
  token: () => randomUUID({ disableEntropyCache: true }),
  fraction: () => Math.random(),
};

/** One moment on the machine's own clocks. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
  readonly uptime: number | undefined;
}

/** Calls back once after a time, however long: what a timer of Node cuts off is scheduled again. */
export function callAfter(
  clock: Clock,
  delayMs: number,
  callback: () => void,
  options?: Parameters<Clock["schedule"]>[2],
): () => void {
  const dueAt = clock.monotonic() + delayMs;
  const look = (): void => {
    const leftMs = dueAt - clock.monotonic();
    if (leftMs > 0) cancel = clock.schedule(look, leftMs, options);
    else callback();
  };
  let cancel = clock.schedule(look, delayMs, options);
  return () => cancel();
}

/** Sleeps until the time is over or the signal aborts, whichever comes first. Keeps the process alive. */
export function pause(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(() => {
      ignore();
      resolve();
    }, delayMs);
    const ignore = onAbort(signal, () => {
      cancel();
      resolve();
    });
  });
}

/** Sleeps; rejects with the signal's reason as soon as it aborts. Keeps the process alive. */
export async function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  await pause(clock, delayMs, signal);
  signal?.throwIfAborted();
}

/**
 * Waits until a promise has settled, in whatever way, but no longer than a time. Returns whether it has settled.
 * Rejects with the signal's reason as soon as it aborts.
 */
export async function settles(
  clock: Clock,
  promise: Promise<unknown>,
  withinMs: number,
  signal?: AbortSignal,
): Promise<boolean> {
  const sleep = new WakeableSleep(clock);
  const wake = (): void => sleep.wake();
  // Ignored: the promise's owner gets the error.
  void promise.then(wake, wake);
  return await sleep.sleep(withinMs, signal);
}

/** A promise and its two ends. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

/**
 * Like `Promise.withResolvers`, which Node 20 lacks. Node 20 is not supported any more, but many people have it when
 * they try Leasehold.
 */
export function deferred<T>(): Deferred<T> {
  const ends = {} as { promise: Promise<T>; resolve: (value: T) => void; reject: (reason: unknown) => void };
  ends.promise = new Promise<T>((resolve, reject) => Object.assign(ends, { resolve, reject }));
  return ends;
}

/** A sleep that can be ended early. */
export class WakeableSleep {
  readonly #clock: Clock;
  #wake: () => void = () => undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Ends the sleep under way, if there is one. */
  wake(): void {
    this.#wake();
  }

  /** Sleeps; returns whether it was woken. Rejects with the signal's reason as soon as it aborts. */
  async sleep(delayMs: number, signal: AbortSignal | undefined): Promise<boolean> {
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    const ignore = onAbort(signal, this.#wake);
    await pause(this.#clock, delayMs, woken.signal);
    ignore();
    signal?.throwIfAborted();
    return woken.signal.aborted;
  }
}
