import { LeaseServiceError } from "../errors/errors.ts";
import type { Lease } from "../lease.ts";
import type { AcquisitionTerms } from "../options/check-options.ts";
import type { WaitOptions } from "../options/options.ts";
import { callBudgetMs, type ProtocolContext, shortestBudgetMs } from "../protocol/context.ts";
import { bounded } from "../time/bounded.ts";
import { pause, sleep } from "../time/clock.ts";
import { retryDelayMs } from "../time/retry.ts";

/** One caller's patience: how much is left of it, what one request may take of it, and the rhythm of its looks. */
export class Patience {
  readonly terms: AcquisitionTerms;
  readonly #context: ProtocolContext;
  readonly #deadline: number;
  #looks = 0;

  constructor(context: ProtocolContext, terms: AcquisitionTerms) {
    this.terms = terms;
    this.#context = context;
    this.#deadline = context.clock.monotonic() + terms.waitMs;
  }

  get leftMs(): number {
    return Math.max(0, this.#deadline - this.#context.clock.monotonic());
  }

  /** What one request may take: it gets a fair chance even when patience is over. */
  get budgetMs(): number {
    const fairMs = this.terms.waitMs > 0 ? Math.max(this.leftMs, shortestBudgetMs) : callBudgetMs;
    return Math.min(fairMs, callBudgetMs);
  }

  /** Sleeps until the next look; `claimableInMs` is when it could succeed if nothing changes. */
  async pause(claimableInMs: number, longestMs: number = Number.POSITIVE_INFINITY): Promise<void> {
    this.#looks += 1;
    const { clock, randomness } = this.#context;
    const delayMs = retryDelayMs(this.terms.retry, {
      attempt: this.#looks,
      claimableInMs: Math.max(0, claimableInMs),
      fraction: randomness.fraction(),
    });
    await sleep(clock, Math.min(delayMs, longestMs, this.leftMs), this.terms.signal);
  }

  /** Runs an attempt that is given up when patience is over, but not before it had a fair chance. */
  async bounded<T>(attempt: (options: WaitOptions) => Promise<T>): Promise<T> {
    const { signal } = this.terms;
    const { budgetMs } = this;
    if (budgetMs >= callBudgetMs) return await attempt(this.wishes(signal));
    const { clock } = this.#context;
    return await bounded(clock, budgetMs, signal, (either) => attempt(this.wishes(either)));
  }

  /**
   * Releases what is not to be held. Waits for the answer a little while, and not at all where the caller has
   * aborted: what cannot be released frees itself when its lease ends.
   */
  async letGo(lease: Lease): Promise<void> {
    // Ignored: what cannot be released frees itself, and the `error` event tells of a mistake.
    const released = lease.release().catch(() => false);
    if (this.terms.signal?.aborted) return;
    const answered = new AbortController();
    const isLate = pause(this.#context.clock, shortestBudgetMs, answered.signal);
    await Promise.race([released, isLate]);
    answered.abort();
  }

  /** The caller's wishes for its lease, without the wait. */
  wishes(signal: AbortSignal | undefined): WaitOptions {
    const { owner, leaseDurationMs, data, reentrant, heartbeatMs } = this.terms;
    return {
      owner,
      leaseDurationMs,
      data,
      reentrant,
      ...(heartbeatMs === undefined ? {} : { heartbeat: heartbeatMs }),
      ...(signal === undefined ? {} : { signal }),
    };
  }
}

/** Gives an error that may pass; throws every other, and the signal's reason first. */
export function retryable(error: unknown, signal: AbortSignal | undefined): LeaseServiceError {
  signal?.throwIfAborted();
  if (error instanceof LeaseServiceError && error.retryable) return error;
  throw error;
}
