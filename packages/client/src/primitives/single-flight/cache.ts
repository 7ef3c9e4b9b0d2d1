import { checkData } from "../../base/check-values.ts";
import { parsedJson } from "../../base/item-values.ts";
import type { LeaseRecord } from "../../base/lease-record.ts";
import { readRecord } from "../../base/record.ts";
import { attributeNames, leaseItemKey } from "../../base/schema.ts";
import type { Item } from "../../base/store.ts";
import type { LeaseClient } from "../../core/client.ts";
import { type Core, coreOf, query } from "../../core/core.ts";
import {
  type CacheEntry,
  cacheSortKey,
  flightSortKey,
  readEntry,
  replaceResult,
  resultAndHolder,
  type StoredResult,
  storeResult,
} from "./entry.ts";

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

/** A result, and the lease of the caller that computes the next one. */
export interface ResultAndHolder {
  readonly entry: CacheEntry | undefined;
  readonly record: LeaseRecord | undefined;
}

/**
 * Keeps results in the lease table, beside the lease of their computation: `pk = key, sk = "cache"`.
 *
 * Results are plain JSON values without undefined, of at most 392 KiB of text. Keep larger ones elsewhere and store a
 * reference. A result of an earlier holder never replaces that of a later one. DynamoDB's ttl removes results that
 * are past their time. A consistent read takes one read unit for each 4 KB, and a write one write unit for each KB.
 */
export class TableCache implements ResultCache {
  readonly #core: Core;

  /** Keeps them in the client's table. Sends nothing. */
  constructor(client: LeaseClient) {
    this.#core = coreOf(client);
  }

  /** 1 consistent read. Rejects as a LeaseClient does. */
  async get(key: string): Promise<CacheEntry | undefined> {
    const request = { key: leaseItemKey(key, cacheSortKey), consistent: true };
    return cacheEntryIn(await this.#core.get(request));
  }

  /**
   * 1 write. Resolves to false when a later holder's result is there.
   *
   * Rejects with InvalidOptionsError for a result that is not plain JSON or that is too large, and as a LeaseClient
   * does.
   */
  async set(key: string, entry: CacheEntry, ttlMs: number, fencingToken: number): Promise<boolean> {
    const { applied } = await this.#core.update(storeResult(this.#stored(key, entry, ttlMs, fencingToken)));
    return applied;
  }

  /** @internal 1 write. Resolves to false when the table does not have the entry with the seen fencing token. */
  async replace(key: string, entry: CacheEntry, ttlMs: number, seenFencingToken: number): Promise<boolean> {
    const { fencingToken } = entry;
    const stored = this.#stored(key, entry, ttlMs, fencingToken);
    const result = await this.#core.update(replaceResult(stored, seenFencingToken));
    // This write has landed before, and its reply was lost.
    const hasLanded = Number(result.item?.[attributeNames.fence]) === fencingToken;
    return result.applied || hasLanded;
  }

  /** @internal 1 consistent query, which costs no more than the read of a result alone while that is small. */
  async lookAtBoth(key: string): Promise<ResultAndHolder> {
    const request = { ...resultAndHolder(key), consistent: true };
    const { items } = await query(this.#core, request);
    const itemAt = (sortKey: string): Item | undefined =>
      items.find((item) => item[attributeNames.sortKey] === sortKey);
    return { entry: cacheEntryIn(itemAt(cacheSortKey)), record: readRecord(itemAt(flightSortKey)) };
  }

  #stored(key: string, entry: CacheEntry, ttlMs: number, fencingToken: number): StoredResult {
    const text = checkData(entry) ?? "";
    return { key, text, fencingToken, endsAt: this.#core.clock.now() + ttlMs };
  }
}

function cacheEntryIn(item: Item | undefined): CacheEntry | undefined {
  const text = item?.[attributeNames.data];
  return typeof text === "string" ? readEntry(parsedJson(text)?.value) : undefined;
}
