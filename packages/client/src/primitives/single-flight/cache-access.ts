import { InvalidOptionsError, LeaseError } from "../../base/errors.ts";
import { optionalWholeIn } from "../../base/item-values.ts";
import { isOperational } from "../../base/operational.ts";
import { readRecord } from "../../base/record.ts";
import { attributeNames, leaseItemKey } from "../../base/schema.ts";
import { callBudgetMs } from "../../base/timed-call.ts";
import type { Core } from "../../core/core.ts";
import { type Timeout, withTimeout } from "./attempts.ts";
import { type ResultAndHolder, type ResultCache, TableCache } from "./cache.ts";
import {
  type CacheEntry,
  fencingTokenIn,
  flightSortKey,
  hasEarlierValue,
  invalidationMark,
  readEntry,
  type Stale,
  withEarlier,
} from "./entry.ts";
import { CacheUnreadableError, CacheUnwritableError } from "./errors.ts";
import type { CacheFailedEvent } from "./events.ts";

/** Protects a call from the user's cache: a cache may throw, hang, or hold entries of another program. */
export class CacheAccess {
  readonly #cache: ResultCache;
  readonly #core: Core;
  readonly #tell: (event: CacheFailedEvent) => void;

  constructor(cache: ResultCache, core: Core, tell: (event: CacheFailedEvent) => void) {
    this.#cache = cache;
    this.#core = core;
    this.#tell = tell;
  }

  /** Rejects with CacheUnreadableError, or with the cache's own error if it is one of this package. */
  async read(key: string, signal: AbortSignal): Promise<CacheEntry | undefined> {
    return await this.#reading(key, signal, async () => readEntry(await this.#cache.get(key)));
  }

  /**
   * Looks at the result and at the lease of the caller that computes the next one: 1 request when both are in the
   * table.
   *
   * Otherwise the lease is read first. A holder stores before it releases. So when the lock is free, the result is in
   * the cache, or will never be. `consistent` says whether the lease has to be the latest.
   */
  async lookAtBoth(key: string, signal: AbortSignal, consistent: boolean): Promise<ResultAndHolder> {
    const cache = this.#cache;
    if (cache instanceof TableCache) {
      return await this.#reading(key, signal, () => cache.lookAtBoth(key));
    }
    const request = { key: leaseItemKey(key, flightSortKey), consistent };
    const item = await this.#core.get(request, { signal });
    return { record: readRecord(item), entry: await this.read(key, signal) };
  }

  /**
   * Stores an entry, unless the cache has one with a later token. Returns whether the cache has confirmed it. When the
   * cache fails, only an event tells. A result that it can never hold is a mistake, and rejects.
   *
   * A failure gets the `earlier` value to keep. It keeps that value only when the cache still has the entry of the
   * value: the key may have been invalidated since.
   */
  async write(key: string, entry: CacheEntry, signal: AbortSignal, earlier?: Stale): Promise<boolean> {
    const cache = this.#cache;
    const write = (): Promise<unknown> =>
      cache instanceof TableCache
        ? this.#storeInTable(cache, key, entry, earlier)
        : this.#storeElsewhere(key, entry, earlier);
    try {
      const stored = await withTimeout(this.#core.clock, this.#timeout(signal), write);
      if (stored !== false) return true;
      this.#tell({ type: "cacheFailed", key, operation: "write", reason: "refused" });
    } catch (error) {
      if (error instanceof InvalidOptionsError || this.#isMistake(error, signal)) throw error;
      this.#tell({ type: "cacheFailed", key, operation: "write", reason: "threw", error });
    }
    return false;
  }

  /**
   * Replaces the cache's entry with a mark. Its token is above that of the last holder, so that no result so far can
   * replace it. It is below that of the next holder, so that a late copy of the mark cannot replace the next result.
   *
   * When the table has no lock, because it was never used or ttl has removed it, the last holder is the holder of the
   * cache's entry. The clock is not used, although the next holder's token starts from the time. The next holder's
   * clock may be behind. Then its results would be refused, and as many after it as there are milliseconds between
   * the two.
   *
   * 1 read of the lock, 1 write of the cache; 1 read of the cache more when there is no lock, or something later.
   */
  async forget(key: string): Promise<void> {
    const request = { key: leaseItemKey(key, flightSortKey), consistent: true };
    const item = await this.#core.get(request);
    const fence = item && optionalWholeIn(item, attributeNames.fence);
    const write = async (): Promise<void> =>
      await this.#mark(key, fence ?? fencingTokenIn(await this.#cache.get(key)) ?? 0);
    try {
      await withTimeout(this.#core.clock, this.#timeout(new AbortController().signal), write);
    } catch (error) {
      throw error instanceof LeaseError ? error : new CacheUnwritableError(key, error);
    }
  }

  async #mark(key: string, lastFencingToken: number): Promise<void> {
    const mark = invalidationMark(lastFencingToken);
    const { fencingToken } = mark;
    const stored = await this.#cache.set(key, mark, Math.max(1, this.#core.times.retentionMs), fencingToken);
    if (stored !== false) return;
    const entry = readEntry(await this.#cache.get(key));
    if (entry === undefined) return;
    if (entry.fencingToken < fencingToken) throw new Error("it was not stored");
    // A later result was computed since. But a later failure may keep the value that is to be forgotten.
    if (hasEarlierValue(entry)) await this.#mark(key, entry.fencingToken);
  }

  /** The table compares by itself, in the same write. */
  async #storeInTable(
    table: TableCache,
    key: string,
    entry: CacheEntry,
    earlier: Stale | undefined,
  ): Promise<boolean> {
    if (earlier !== undefined) {
      const kept = withEarlier(entry, earlier);
      // A value that fitted alone may not fit beside a failure.
      const tooLarge = (error: unknown): boolean => {
        if (error instanceof InvalidOptionsError) return false;
        throw error;
      };
      const replaced = table.replace(key, kept, this.#ttlMs(kept), earlier.fencingToken);
      if (await replaced.catch(tooLarge)) return true;
    }
    return await table.set(key, entry, this.#ttlMs(entry), entry.fencingToken);
  }

  async #storeElsewhere(key: string, entry: CacheEntry, earlier: Stale | undefined): Promise<unknown> {
    const found = fencingTokenIn(await this.#cache.get(key)) ?? 0;
    if (found > entry.fencingToken) return false;
    const stored = earlier?.fencingToken === found ? withEarlier(entry, earlier) : entry;
    return await this.#cache.set(key, stored, this.#ttlMs(stored), stored.fencingToken);
  }

  #ttlMs({ freshUntil, staleUntil }: CacheEntry): number {
    return Math.max(1, Math.max(freshUntil, staleUntil) - this.#core.clock.now());
  }

  async #reading<T>(key: string, signal: AbortSignal, read: () => Promise<T>): Promise<T> {
    try {
      return await withTimeout(this.#core.clock, this.#timeout(signal), read);
    } catch (error) {
      signal.throwIfAborted();
      if (this.#isMistake(error, signal)) throw error;
      this.#tell({ type: "cacheFailed", key, operation: "read", reason: "threw", error });
      throw error instanceof LeaseError ? error : new CacheUnreadableError(key, error);
    }
  }

  /** Whether the table's own cache met a mistake in the program. Any error of the user's cache may pass. */
  #isMistake(error: unknown, signal: AbortSignal): boolean {
    return this.#cache instanceof TableCache && !signal.aborted && !isOperational(error);
  }

  #timeout(signal: AbortSignal): Timeout {
    const timeoutError = (): Error => new Error(`no answer within ${callBudgetMs} ms`);
    // Calls to the table have a time limit already, and their errors are this package's.
    const timeoutMs = this.#cache instanceof TableCache ? Number.POSITIVE_INFINITY : callBudgetMs;
    return { timeoutMs, signal, timeoutError };
  }
}
