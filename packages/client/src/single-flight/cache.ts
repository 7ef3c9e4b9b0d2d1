import type { CacheEntry } from "./entry.ts";

/**
 * Where results are kept.
 *
 * A `Map`, a Keyv (with `throwOnErrors: true`) and a cache of cache-manager are such caches as they are. One whose
 * `set` takes an object, as lru-cache's does, needs a line:
 *
 *     const cache: ResultCache = {
 *       get: (key) => lru.get(key),
 *       set: (key, entry, ttlMs) => lru.set(key, entry, { ttl: ttlMs }),
 *     };
 *
 * A cache that several processes share must show, after a `set` has resolved, what was set; otherwise waiters compute
 * in turn what has been computed already. It has to throw when it cannot be read: one that reports a failure as a miss
 * makes every process compute, though still one at a time.
 */
export interface ResultCache {
  /** Gives what was set; undefined or null for a miss. May give a promise. */
  get(key: string): unknown;
  /**
   * Keeps an entry, at least for `ttlMs` milliseconds if it can. May give a promise; one that resolves to false says
   * that nothing was stored.
   *
   * `fencingToken` grows with every computation of the key: a cache that can compare should refuse an entry whose
   * token is lower than that of the entry it has. An invalidation sets an entry without value and failure, whose token
   * is half above that of the last computation that is known, and so below that of the next.
   */
  set(key: string, entry: CacheEntry, ttlMs: number, fencingToken: number): unknown;
}
