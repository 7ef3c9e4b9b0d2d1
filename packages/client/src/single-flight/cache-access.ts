import { InvalidOptionsError, LeaseError } from "../errors.ts";
import { callBudgetMs, callStore, type ProtocolContext } from "../protocol/context.ts";
import { readRecord } from "../record.ts";
import { attributeNames, leaseItemKey } from "../schema.ts";
import { flightSortKey } from "../schema-cache.ts";
import { bounded } from "./bounded.ts";
import type { ResultCache } from "./cache.ts";
import { type CacheEntry, fencingTokenIn, invalidationMark, readEntry } from "./entry.ts";
import { CacheUnreadableError, CacheUnwritableError } from "./errors.ts";
import type { CacheFailedEvent } from "./events.ts";
import { type ResultAndHolder, TableCache } from "./table-cache.ts";

/** Puts up with somebody else's cache: one that throws, hangs, or holds what is not ours. */
export class CacheAccess {
  readonly #cache: ResultCache;
  readonly #context: ProtocolContext;
  readonly #tell: (event: CacheFailedEvent) => void;

  constructor(cache: ResultCache, context: ProtocolContext, tell: (event: CacheFailedEvent) => void) {
    this.#cache = cache;
    this.#context = context;
    this.#tell = tell;
  }

  /** Rejects with CacheUnreadableError, or with the cache's own error if that is one of this package's. */
  async read(key: string, signal: AbortSignal): Promise<CacheEntry | undefined> {
    return await this.#reading(key, signal, async () => readEntry(await this.#cache.get(key)));
  }

  /**
   * Looks at the result and at the lease of whoever computes the next one: 1 request where both are in the table.
   *
   * Otherwise the lease comes first: a holder stores before it lets go, so a lock that is free says that the result
   * is in the cache, or never will be.
   */
  async lookAtBoth(key: string, signal: AbortSignal): Promise<ResultAndHolder> {
    const cache = this.#cache;
    if (cache instanceof TableCache) {
      return await this.#reading(key, signal, () => cache.lookAtBoth(key));
    }
    const request = { key: leaseItemKey(key, flightSortKey), consistent: false };
    const item = await callStore(this.#context, (store, call) => store.get(request, call));
    return { record: readRecord(item), entry: await this.read(key, signal) };
  }

  /**
   * Stores an entry, unless what is there has a later token. A cache that fails only tells so; a result that it can
   * never hold is a mistake, and rejects.
   */
  async write(key: string, entry: CacheEntry, signal: AbortSignal): Promise<void> {
    const ttlMs = Math.max(1, entry.staleUntil - this.#context.clock.now());
    const write = async (): Promise<unknown> =>
      !(await this.#isOvertaken(key, entry)) &&
      (await this.#cache.set(key, entry, ttlMs, entry.fencingToken));
    try {
      const stored = await bounded(this.#context.clock, this.#bounds(signal), write);
      if (stored === false) this.#tell({ type: "cacheFailed", key, operation: "write", reason: "refused" });
    } catch (error) {
      if (error instanceof InvalidOptionsError) throw error;
      this.#tell({ type: "cacheFailed", key, operation: "write", reason: "threw", error });
    }
  }

  /**
   * Puts a mark in the place of whatever the cache has. Its token is above that of every holder so far, so that none of
   * them can replace it, and below that of the next one, so that a late copy of it cannot replace the next one's result.
   *
   * 1 read of the lock, 1 write of the cache; 1 read of the cache more where that has something later.
   */
  async forget(key: string): Promise<void> {
    const { clock, retentionMs } = this.#context;
    const request = { key: leaseItemKey(key, flightSortKey), consistent: true };
    const item = await callStore(this.#context, (store, call) => store.get(request, call));
    // As an acquisition counts: from the time where there is no number yet.
    const mark = invalidationMark(Number(item?.[attributeNames.fence] ?? clock.now()) + 0.5);
    const write = async (): Promise<void> => {
      const stored = await this.#cache.set(key, mark, Math.max(1, retentionMs), mark.fencingToken);
      if (stored !== false) return;
      // A result that is later than the mark was computed since.
      const entry = readEntry(await this.#cache.get(key));
      if (entry !== undefined && entry.fencingToken < mark.fencingToken) throw new Error("it was not stored");
    };
    try {
      await bounded(clock, this.#bounds(new AbortController().signal), write);
    } catch (error) {
      throw error instanceof LeaseError ? error : new CacheUnwritableError(key, error);
    }
  }

  /** The table compares by itself, in the very write. */
  async #isOvertaken(key: string, { fencingToken }: CacheEntry): Promise<boolean> {
    if (this.#cache instanceof TableCache) return false;
    return (fencingTokenIn(await this.#cache.get(key)) ?? 0) > fencingToken;
  }

  async #reading<T>(key: string, signal: AbortSignal, read: () => Promise<T>): Promise<T> {
    try {
      return await bounded(this.#context.clock, this.#bounds(signal), read);
    } catch (error) {
      signal.throwIfAborted();
      this.#tell({ type: "cacheFailed", key, operation: "read", reason: "threw", error });
      throw error instanceof LeaseError ? error : new CacheUnreadableError(key, error);
    }
  }

  #bounds(signal: AbortSignal): Parameters<typeof bounded>[1] {
    const overdue = (): Error => new Error(`no answer within ${callBudgetMs} ms`);
    // Calls to the table are bounded already, and their errors are of this package.
    const limitMs = this.#cache instanceof TableCache ? Number.POSITIVE_INFINITY : callBudgetMs;
    return { limitMs, signal, overdue };
  }
}
