import { brandClass } from "../errors/brand.ts";
import { LeaseError } from "../errors/errors.ts";
import type { CachedFailure } from "./entry.ts";

/**
 * A computation took longer than `computeTimeoutMs`. Its signal has aborted, its lease is released, and its result is
 * dropped.
 */
export class ComputationTimeoutError extends LeaseError {
  static {
    brandClass(ComputationTimeoutError, "ComputationTimeoutError");
  }
  override readonly name: string = "ComputationTimeoutError";
  readonly key: string;
  readonly timeoutMs: number;

  constructor(key: string, timeoutMs: number) {
    super(
      "LEASE_COMPUTATION_TIMEOUT",
      `the computation of ${JSON.stringify(key)} took longer than ${timeoutMs} ms: ` +
        "raise computeTimeoutMs, or let the computation stop when its signal aborts",
    );
    this.key = key;
    this.timeoutMs = timeoutMs;
  }
}

/** A computation failed a moment ago, here or elsewhere, and is not to be repeated yet (`failureForMs`). */
export class CachedFailureError extends LeaseError {
  static {
    brandClass(CachedFailureError, "CachedFailureError");
  }
  override readonly name: string = "CachedFailureError";
  readonly key: string;
  /** The name of the error that the computation ended with. */
  readonly failureName: string;
  /** From when on the computation is tried again, in epoch milliseconds of the computing process's clock. */
  readonly retryAt: number;

  constructor(key: string, failure: CachedFailure, retryAt: number) {
    super(
      "LEASE_CACHED_FAILURE",
      `the computation of ${JSON.stringify(key)} has failed (${failure.name}: ${failure.message}); ` +
        `it is tried again from ${new Date(retryAt).toISOString()} on`,
    );
    this.key = key;
    this.failureName = failure.name;
    this.retryAt = retryAt;
  }
}

/** The cache threw, did not answer, or refused: the value may still be there. Invalidate again. */
export class CacheUnwritableError extends LeaseError {
  static {
    brandClass(CacheUnwritableError, "CacheUnwritableError");
  }
  override readonly name: string = "CacheUnwritableError";
  readonly key: string;

  constructor(key: string, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super(
      "LEASE_CACHE_UNWRITABLE",
      `the cache did not forget ${JSON.stringify(key)}: ${why}; invalidate it again`,
      { cause },
    );
    this.key = key;
  }
}

/** The cache threw, or did not answer. It is not known whether the result is there, so nothing is computed. */
export class CacheUnreadableError extends LeaseError {
  static {
    brandClass(CacheUnreadableError, "CacheUnreadableError");
  }
  override readonly name: string = "CacheUnreadableError";
  readonly key: string;

  constructor(key: string, cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    super("LEASE_CACHE_UNREADABLE", `the cache could not be read for ${JSON.stringify(key)}: ${why}`, {
      cause,
    });
    this.key = key;
  }
}
