import type { CacheEntry } from "./entry.ts";

/**
 * Where results are kept.
 *
 * A `Map`, a Keyv (with `throwOnErrors: true`) and a cache of cache-manager can be used as they are. A cache whose
 * `set` takes an object, such as lru-cache, needs a line:
 *
 *     const cache: ResultCache = {
 *       get: (key) => lru.get(key),
 *       set: (key, entry, ttlMs) => lru.set(key, entry, { ttl: ttlMs }),
 *     };
 *
 * A cache that several processes share must show an entry after its `set` has resolved. Otherwise waiters compute
 * again, one after the other. It has to throw when it cannot be read. A cache that reports a failure as a miss makes
 * every process compute, though one at a time.
 */
export interface ResultCache {
  /** Gives the stored entry; undefined or null for a miss. May give a promise. */
  get(key: string): unknown;
  /**
   * Keeps an entry, at least for `ttlMs` milliseconds if it can. May give a promise; false means that nothing was
   * stored.
   *
   * `fencingToken` grows with every computation of the key. A cache that can compare should refuse an entry with a
   * lower token than that of its entry. An invalidation sets an entry without value and failure. Its token is half
   * above that of the last known computation, and so below that of the next.
   */
  set(key: string, entry: CacheEntry, ttlMs: number, fencingToken: number): unknown;
}
