import { brandClass } from "../../base/brand.ts";
import { isoTime, LeaseError, quoted, saying } from "../../base/errors.ts";
import { latestTime } from "../../base/item-values.ts";
import type { CachedFailure } from "./entry.ts";

/**
 * A computation took longer than `computeTimeoutMs`. Its signal has aborted, its lease is released, and its result is
 * dropped.
 */
export class ComputationTimeoutError extends LeaseError {
  static {
    brandClass(ComputationTimeoutError, "ComputationTimeoutError");
  }
  declare readonly key: string;
  declare readonly timeoutMs: number;

  constructor(key: string, timeoutMs: number) {
    super(
      "LEASE_COMPUTATION_TIMEOUT",
      `the computation of ${quoted(key)} took longer than ${timeoutMs} ms: ` +
        "raise computeTimeoutMs, or let the computation stop when its signal aborts",
      { key, timeoutMs },
    );
  }
}

/** A computation failed a moment ago, here or elsewhere, and is not to be repeated yet (`failureForMs`). */
export class CachedFailureError extends LeaseError {
  static {
    brandClass(CachedFailureError, "CachedFailureError");
  }
  declare readonly key: string;
  /** The name of the error that the computation ended with. */
  declare readonly failureName: string;
  /** From when on the computation is tried again, in epoch milliseconds of the computing process's clock. */
  declare readonly retryAt: number;

  constructor(key: string, failure: CachedFailure, retryAt: number) {
    super(
      "LEASE_CACHED_FAILURE",
      `the computation of ${quoted(key)} has failed (${failure.name}: ${failure.message}); ` +
        `it is tried again from ${isoTime(Math.min(retryAt, latestTime))} on`,
      { key, failureName: failure.name, retryAt },
    );
  }
}

/** The cache threw, did not answer, or refused: the value may still be there. Invalidate again. */
export class CacheUnwritableError extends LeaseError {
  static {
    brandClass(CacheUnwritableError, "CacheUnwritableError");
  }
  declare readonly key: string;

  constructor(key: string, cause: unknown) {
    const text = `the cache did not forget ${quoted(key)}: ${saying(cause)}; invalidate it again`;
    super("LEASE_CACHE_UNWRITABLE", text, { cause, key });
  }
}

/** The cache threw, or did not answer. It is not known whether the result is there, so nothing is computed. */
export class CacheUnreadableError extends LeaseError {
  static {
    brandClass(CacheUnreadableError, "CacheUnreadableError");
  }
  declare readonly key: string;

  constructor(key: string, cause: unknown) {
    const text = `the cache could not be read for ${quoted(key)}, so nothing was computed: ${saying(cause)}; try again`;
    super("LEASE_CACHE_UNREADABLE", text, { cause, key });
  }
}
