import {
  InvalidOptionsError,
  type Lease,
  type LeaseClient,
  LeaseLostError,
  LeaseUnavailableError,
  type RetryStrategy,
} from "@leasehold/client";
import { cacheKeyPrefix } from "./schema.ts";

/** A value with the time at which it was computed. */
export interface Cached<T> {
  readonly value: T;
  /** Epoch milliseconds. */
  readonly computedAt: number;
}

/** Where values are kept. */
export interface CacheStore<T> {
  /** A consistent read: what a lease's last holder stored before its release has to be seen. */
  look(name: string): Promise<Cached<T> | undefined>;
  /** False when a later holder of the lease has stored something; then nothing was changed. */
  store(name: string, entry: Cached<T>, lease: Lease): Promise<boolean>;
}

/** What a cache works with. */
export interface CacheOptions<T> {
  readonly leases: LeaseClient;
  readonly entries: CacheStore<T>;
  /** Computes a value, for as long as it takes; it should stop when the signal aborts. */
  readonly compute: (name: string, signal: AbortSignal) => Promise<T>;
  /** For how long a value is good, in milliseconds. */
  readonly freshForMs: number;
  /**
   * How long a lease is, in milliseconds. It is renewed while the value is computed, so it says not how long that may
   * take but how long others wait for one that died over it. @default 10000
   */
  readonly leaseDurationMs?: number;
  /** How long to wait for another's value, in milliseconds. @default 0 */
  readonly waitMs?: number;
  /** The rhythm of waiting. @default the client's */
  readonly retry?: RetryStrategy;
  /** Epoch milliseconds. */
  readonly now: () => number;
}

/** A value, and where it comes from. */
export interface CacheAnswer<T> extends Cached<T> {
  /**
   * - `cache`: it was there.
   * - `computed`: this call has computed it.
   * - `otherCall`: another call computed it while this one waited, or overtook this one.
   * - `stale`: too old, and the best there is while somebody computes a new one.
   */
  readonly source: "cache" | "computed" | "otherCall" | "stale";
}

/**
 * A cache whose values are computed by one caller at a time, with double-checked locking.
 *
 *     look ──fresh──▶ done
 *      │ missing or old
 *      ▼
 *     acquire ──not to be had in time──▶ the old value, or the refusal if there is none
 *      ▼
 *     look again ──fresh──▶ release, done         the holder before us has computed it
 *      ▼
 *     compute (heartbeat) ▶ store, fenced ▶ release
 *
 * Dies before the store: the lease ends by itself after `leaseDurationMs`, and the next caller computes. Between store
 * and release: the same, but the next caller finds the value at its first look. Frozen for longer than its lease while it
 * computes: what it stores is fenced off, and it answers with what its successor stored.
 */
export class ResourceCache<T> {
  readonly #options: CacheOptions<T>;

  constructor(options: CacheOptions<T>) {
    this.#options = options;
  }

  /**
   * Gives a resource: from the cache, or newly computed.
   *
   * Rejects with LeaseUnavailableError when somebody else computes it for longer than `waitMs` and there is no old value;
   * with the computation's own error, the lock being released.
   */
  async get(name: string): Promise<CacheAnswer<T>> {
    const { leases, entries, leaseDurationMs = 10_000, waitMs = 0, retry } = this.#options;
    const seen = await entries.look(name);
    if (this.#isFresh(seen)) return { ...seen, source: "cache" };
    try {
      await using lease = await leases.acquire(cacheKeyPrefix + name, {
        leaseDurationMs,
        waitMs,
        heartbeat: true,
        ...(retry === undefined ? {} : { retry }),
      });
      const again = await entries.look(name);
      if (this.#isFresh(again)) return { ...again, source: "otherCall" };
      return await this.#compute(name, lease);
    } catch (error) {
      if (!(error instanceof LeaseUnavailableError)) throw error;
      // While it waited, another may have stored without letting go of the lock yet.
      const now = (await entries.look(name)) ?? seen;
      if (now === undefined) throw error;
      return { ...now, source: this.#isFresh(now) ? "otherCall" : "stale" };
    }
  }

  async #compute(name: string, lease: Lease): Promise<CacheAnswer<T>> {
    const { entries, compute, now } = this.#options;
    const computedAt = now();
    try {
      const entry = { value: await compute(name, lease.signal), computedAt };
      if (await entries.store(name, entry, lease)) return { ...entry, source: "computed" };
    } catch (error) {
      if (!lease.signal.aborted) throw error;
      const others = await entries.look(name);
      if (!this.#isFresh(others)) throw error;
      return { ...others, source: "otherCall" };
    }
    const others = await entries.look(name);
    if (others !== undefined) return { ...others, source: "otherCall" };
    throw new LeaseLostError(lease.key, "taken", "what a later holder stored has been removed since");
  }

  #isFresh(entry: Cached<T> | undefined): entry is Cached<T> {
    return entry !== undefined && this.#options.now() - entry.computedAt < this.#options.freshForMs;
  }
}

/** The ways to wait that an event can ask for, by name, with delays that suit a computation of seconds. */
export const rhythms = {
  untilExpiry: { strategy: "untilExpiry" },
  fixed: { strategy: "fixed", delayMs: 200 },
  linear: { strategy: "linear", delayMs: 100, maxDelayMs: 2_000 },
  exponential: { strategy: "exponential", delayMs: 50, maxDelayMs: 2_000 },
  fullJitter: { strategy: "fullJitter", delayMs: 100, maxDelayMs: 2_000 },
} as const satisfies Record<RetryStrategy["strategy"], RetryStrategy>;

/** Gives a way to wait by its name. Throws InvalidOptionsError. */
export function rhythmOf(name: unknown): RetryStrategy {
  const known = Object.values(rhythms).find(({ strategy }) => strategy === name);
  if (known === undefined)
    throw new InvalidOptionsError("event.retry", name, Object.keys(rhythms).join(", "));
  return known;
}
