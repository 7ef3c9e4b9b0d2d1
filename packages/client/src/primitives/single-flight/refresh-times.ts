import type { Core } from "../../core/core.ts";
import type { CacheEntry } from "./entry.ts";
import { RecentlyUsed } from "./process-memory.ts";

/** When a process may compute the next value. */
interface RefreshTime {
  /** Of the value that is to be replaced. */
  readonly fencingToken: number;
  /** Epoch milliseconds. */
  readonly dueAt: number;
}

/**
 * When this process refreshes values that are still fresh.
 *
 * It waits for a random part of the first half of the time ahead. So of many processes few try at the same moment, and
 * between those the lock decides. In the second half, the first call that comes begins the refresh.
 *
 * A process tries once for each value, so that a computation that fails is not repeated by every call. It tries again
 * when another process's lease can have ended, or when it has lost its own.
 */
export class RefreshTimes {
  readonly #core: Core;
  readonly #aheadMs: number;
  readonly #times: RecentlyUsed<RefreshTime>;

  constructor(
    core: Core,
    { refreshAheadMs, maxInProcess }: { readonly refreshAheadMs: number; readonly maxInProcess: number },
  ) {
    this.#core = core;
    this.#aheadMs = refreshAheadMs;
    this.#times = new RecentlyUsed(maxInProcess);
  }

  /** Whether a refresh of this value should begin now. */
  isDue(key: string, { freshUntil, fencingToken }: CacheEntry): boolean {
    const { clock, randomness } = this.#core;
    const now = clock.now();
    if (now < freshUntil - this.#aheadMs || now >= freshUntil) return false;
    let time = this.#times.get(key);
    if (time?.fencingToken !== fencingToken) {
      time = { fencingToken, dueAt: freshUntil - this.#aheadMs * (1 - randomness.fraction() / 2) };
      this.#times.set(key, time);
    }
    return now >= time.dueAt;
  }

  /** This value's refresh has begun in this process. */
  begin(key: string, { fencingToken }: CacheEntry): void {
    this.#times.set(key, { fencingToken, dueAt: Number.POSITIVE_INFINITY });
  }

  /** This process may try again after so many milliseconds. */
  postpone(key: string, { fencingToken }: CacheEntry, delayMs: number): void {
    this.#times.set(key, { fencingToken, dueAt: this.#core.clock.now() + delayMs });
  }
}
