import { sleep } from "../../base/clock.ts";
import { LeaseUnavailableError } from "../../base/errors.ts";
import type { LeaseRecord } from "../../base/lease-record.ts";
import { unlessPassing } from "../../base/operational.ts";
import { type RetryStrategy, retryPauses } from "../../base/retry.ts";
import type { Core } from "../../core/core.ts";
import type { ResultAndHolder } from "./cache.ts";
import type { CacheAccess } from "./cache-access.ts";
import type { CacheEntry } from "./entry.ts";
import { CacheUnreadableError } from "./errors.ts";

/**
 * Waits for another process's computation, with looks that write nothing.
 *
 * The looks become rarer. The wait ends when a look shows a usable result, a free lock, or a holder whose lease seems
 * to have ended. The next attempt decides whether it really has.
 */
export class HolderWatch {
  readonly #core: Core;
  readonly #cache: CacheAccess;
  readonly #nextPauseMs: ReturnType<typeof retryPauses>;
  readonly #key: string;
  readonly #consistent: boolean;
  /** When an attempt can hope to succeed, on the monotonic clock. */
  #claimableAt = 0;

  constructor(
    core: Core,
    cache: CacheAccess,
    { retry, key, forceRefresh }: { retry: RetryStrategy; key: string; forceRefresh: boolean },
  ) {
    this.#core = core;
    this.#cache = cache;
    // A refresh uses the holder that it sees to tell whether a computation began after its call.
    this.#consistent = forceRefresh;
    this.#nextPauseMs = retryPauses(core, retry);
    this.#key = key;
  }

  /**
   * Gives the entry of the last look; undefined when the lock is worth an attempt. Rejects with the last refusal when the
   * rhythm has no more pauses.
   *
   * Calls `onHeld` for every look that found the lock held, with the entry of that look. The next look makes up for
   * one that fails.
   */
  async next(
    refusal: LeaseUnavailableError,
    signal: AbortSignal,
    isUsable: (entry: CacheEntry | undefined) => boolean,
    onHeld: (refusal: LeaseUnavailableError, holder: LeaseRecord, entry: CacheEntry | undefined) => void,
  ): Promise<CacheEntry | undefined> {
    const { clock } = this.#core;
    this.#claimableAt = clock.monotonic() + refusal.retryAfterMs;
    let last = refusal;
    for (;;) {
      const pauseMs = this.#nextPauseMs(this.#claimableAt);
      if (pauseMs === Number.POSITIVE_INFINITY) throw last;
      await sleep(clock, pauseMs, signal);
      const look = await unlessPassing(() => this.#look(signal), signal);
      if (look !== undefined) {
        const { entry, record } = look;
        if (isUsable(entry) || record === undefined) return entry;
        const { claimableInMs } = this.#core.detector.judge(record);
        this.#claimableAt = clock.monotonic() + claimableInMs;
      }
      if (clock.monotonic() >= this.#claimableAt) return undefined;
      if (look?.record !== undefined) {
        const inMs = Math.ceil(this.#claimableAt - clock.monotonic());
        last = new LeaseUnavailableError(this.#key, look.record, inMs);
        onHeld(last, look.record, look.entry);
      }
    }
  }

  async #look(signal: AbortSignal): Promise<ResultAndHolder | undefined> {
    try {
      return await this.#cache.lookAtBoth(this.#key, signal, this.#consistent);
    } catch (error) {
      // The next look may be able to read the user's cache.
      if (error instanceof CacheUnreadableError) return undefined;
      throw error;
    }
  }
}
