import { LeaseUnavailableError } from "../errors/errors.ts";
import { unlessPassing } from "../errors/operational.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import { claimableIn } from "../protocol/expiry-detector.ts";
import { sleep } from "../time/clock.ts";
import { RetryPauses, type RetryStrategy } from "../time/retry.ts";
import type { CacheAccess } from "./cache-access.ts";
import type { CacheEntry } from "./entry.ts";
import { CacheUnreadableError } from "./errors.ts";
import type { ResultAndHolder } from "./table-cache.ts";

/**
 * Waits for what another process computes, with looks that write nothing.
 *
 * The looks grow rarer. The wait ends when a look brings something to judge: a result that can be used, a lock that
 * is free, or a holder whose time is up by what has been seen; whether it really is, the next attempt decides.
 */
export class HolderWatch {
  readonly #context: ProtocolContext;
  readonly #cache: CacheAccess;
  readonly #pauses: RetryPauses;
  readonly #key: string;
  readonly #consistent: boolean;
  /** When an attempt can hope to succeed, on the monotonic clock. */
  #claimableAt = 0;

  constructor(
    context: ProtocolContext,
    cache: CacheAccess,
    { retry, key, forceRefresh }: { retry: RetryStrategy; key: string; forceRefresh: boolean },
  ) {
    this.#context = context;
    this.#cache = cache;
    // A refresh judges by the holder that it sees whether a computation began after its call.
    this.#consistent = forceRefresh;
    this.#pauses = new RetryPauses(context, retry);
    this.#key = key;
  }

  /**
   * Gives what the last look found in the cache; undefined where the lock is worth an attempt.
   *
   * `onHeld` hears of every look that found the lock held, and of what it found. A look that fails is made good by the next one.
   */
  async next(
    refusal: LeaseUnavailableError,
    signal: AbortSignal,
    isUsable: (entry: CacheEntry | undefined) => boolean,
    onHeld: (refusal: LeaseUnavailableError, look: ResultAndHolder) => void,
  ): Promise<CacheEntry | undefined> {
    const { clock } = this.#context;
    this.#claimableAt = clock.monotonic() + refusal.retryAfterMs;
    for (;;) {
      await sleep(clock, this.#pauses.nextMs(this.#claimableAt), signal);
      const look = await unlessPassing(() => this.#look(signal), signal);
      if (look !== undefined) {
        const { entry, record } = look;
        if (isUsable(entry) || record === undefined) return entry;
        const expiry = this.#context.detector.judge(record);
        this.#claimableAt = clock.monotonic() + claimableIn(expiry);
      }
      if (clock.monotonic() >= this.#claimableAt) return undefined;
      if (look?.record !== undefined) {
        const inMs = Math.ceil(this.#claimableAt - clock.monotonic());
        onHeld(new LeaseUnavailableError(this.#key, look.record, inMs), look);
      }
    }
  }

  async #look(signal: AbortSignal): Promise<ResultAndHolder | undefined> {
    try {
      return await this.#cache.lookAtBoth(this.#key, signal, this.#consistent);
    } catch (error) {
      // Somebody else's cache may be read at the next look.
      if (error instanceof CacheUnreadableError) return undefined;
      throw error;
    }
  }
}
