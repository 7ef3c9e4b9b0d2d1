import { LeaseServiceError, LeaseUnavailableError } from "../errors/errors.ts";
import { type LeaseRecord, readRecord } from "../record.ts";
import { leaseItemKey } from "../schema.ts";
import { withBudget } from "../time/budget.ts";
import { sleep } from "../time/clock.ts";
import { type RetryStrategy, retryDelayMs } from "../time/retry.ts";
import type { Acquisition, AcquisitionRequest, Granted } from "./acquisition.ts";
import { callBudgetMs, type ProtocolContext, shortestBudgetMs } from "./context.ts";
import { claimableIn, type Judge } from "./judge.ts";

/** How long to wait for a lock, and in what rhythm. */
export interface Patience {
  readonly waitMs: number;
  readonly retry: RetryStrategy;
  readonly signal: AbortSignal | undefined;
}

/** What is known of the lock between two attempts. */
interface Prospect {
  readonly record: LeaseRecord | undefined;
  /** When an attempt can hope to succeed, on the monotonic clock. */
  readonly claimableAt: number;
  /** Why the last attempt has told nothing about the lock. */
  readonly failure: LeaseServiceError | undefined;
}

/**
 * One caller's wait for a lock: tries until the lock is its own or its patience is over.
 *
 * Between attempts the lock is looked at with reads that may lag and cost a tenth of a refused write; an attempt is
 * made only when a read shows the lock free, or when the holder's time is up.
 */
export class Waiting {
  readonly #context: ProtocolContext;
  readonly #judge: Judge;
  readonly #acquisition: Acquisition;
  readonly #lock: Pick<AcquisitionRequest, "key" | "place" | "owner" | "reentrant">;
  readonly #patience: Patience;
  readonly #deadline: number;
  #looks = 0;

  constructor(
    context: ProtocolContext,
    judge: Judge,
    acquisition: Acquisition,
    lock: Pick<AcquisitionRequest, "key" | "place" | "owner" | "reentrant">,
    patience: Patience,
  ) {
    this.#context = context;
    this.#judge = judge;
    this.#acquisition = acquisition;
    this.#lock = lock;
    this.#patience = patience;
    this.#deadline = context.clock.monotonic() + patience.waitMs;
  }

  /**
   * Gives the grant.
   *
   * Rejects with LeaseUnavailableError, with the service's error if that is what the last attempt ended with, or
   * with the signal's reason. The caller abandons the acquisition then.
   */
  async grant(onContended: (record: LeaseRecord) => void): Promise<Granted> {
    for (;;) {
      const outcome = await this.#attempt();
      if ("granted" in outcome) return outcome;
      if (outcome.record !== undefined) onContended(outcome.record);
      await this.#untilWorthwhile(outcome);
    }
  }

  async #attempt(): Promise<Granted | Prospect> {
    const { clock } = this.#context;
    const { signal } = this.#patience;
    try {
      const outcome = await this.#acquisition.attempt(this.#budgetMs(), signal);
      if (outcome.granted) return outcome;
      const { record } = outcome;
      return { record, claimableAt: clock.monotonic() + outcome.claimableInMs, failure: undefined };
    } catch (error) {
      signal?.throwIfAborted();
      const failure = retryable(error);
      return { record: undefined, claimableAt: Number.POSITIVE_INFINITY, failure };
    }
  }

  /** Sleeps and looks until another attempt can hope for success; rejects when there is no time left for one. */
  async #untilWorthwhile(outcome: Prospect): Promise<void> {
    const { clock, randomness } = this.#context;
    let prospect = outcome;
    for (;;) {
      if (this.#leftMs() <= 0) throw prospect.failure ?? this.#unavailable(prospect);
      this.#looks += 1;
      const delayMs = retryDelayMs(this.#patience.retry, {
        attempt: this.#looks,
        claimableInMs: Math.max(0, prospect.claimableAt - clock.monotonic()),
        fraction: randomness.fraction(),
      });
      await sleep(clock, Math.min(delayMs, this.#leftMs()), this.#patience.signal);
      // After a failure nothing is known of the lock, and our own write may have landed: only an attempt tells.
      if (prospect.failure !== undefined || clock.monotonic() >= prospect.claimableAt) return;
      const record = await this.#look();
      // An own write that landed late is recognised by the next attempt, too.
      if (record === "free" || (record !== "unknown" && record.token === this.#acquisition.token)) return;
      if (record !== "unknown") prospect = this.#revised(prospect, record);
    }
  }

  /** Looks at the lock without writing; a look that was not answered is made good by the next one. */
  async #look(): Promise<LeaseRecord | "free" | "unknown"> {
    const { clock, gate, store } = this.#context;
    const { signal } = this.#patience;
    const request = { key: leaseItemKey(this.#lock.key, this.#lock.place), consistent: false };
    const withinMs = Math.min(this.#budgetMs(), callBudgetMs);
    try {
      const item = await gate.pass({ signal, withinMs }, (leftMs) =>
        withBudget(clock, leftMs, signal, (call) => store.get(request, call)),
      );
      return readRecord(item) ?? "free";
    } catch (error) {
      signal?.throwIfAborted();
      retryable(error);
      return "unknown";
    }
  }

  #revised(prospect: Prospect, record: LeaseRecord): Prospect {
    const claimableInMs = claimableIn(this.#judge.judge(record));
    return { ...prospect, record, claimableAt: this.#context.clock.monotonic() + claimableInMs };
  }

  #leftMs(): number {
    return this.#deadline - this.#context.clock.monotonic();
  }

  #budgetMs(): number {
    return this.#patience.waitMs > 0 ? Math.max(this.#leftMs(), shortestBudgetMs) : Number.POSITIVE_INFINITY;
  }

  #unavailable({ record, claimableAt }: Prospect): LeaseUnavailableError {
    const retryAfterMs = Math.max(0, Math.ceil(claimableAt - this.#context.clock.monotonic()));
    const { key, owner, reentrant } = this.#lock;
    const isOwn = record?.owner === owner && !record.closed && !reentrant;
    return new LeaseUnavailableError(key, record, retryAfterMs, { waitedMs: this.#patience.waitMs, isOwn });
  }
}

/** Gives an error that may pass; throws every other. */
function retryable(error: unknown): LeaseServiceError {
  if (error instanceof LeaseServiceError && error.retryable) return error;
  throw error;
}
