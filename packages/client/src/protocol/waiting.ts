import { LeaseServiceError, LeaseUnavailableError } from "../errors.ts";
import { type LeaseRecord, readRecord } from "../record.ts";
import { type RetryStrategy, retryDelayMs } from "../retry.ts";
import { leaseItemKey } from "../schema.ts";
import { sleep, withBudget } from "../time/clock.ts";
import type { ClockOffset } from "../time/skew.ts";
import type { Acquisition, Granted } from "./acquisition.ts";
import { callBudgetMs, type ProtocolContext } from "./context.ts";
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
  /** What the last refusal said about the clocks. */
  readonly offset: ClockOffset | undefined;
}

/** A call that waits still gives an answer this much time when its patience is about to end. */
const shortestBudgetMs = 1_000;

/**
 * Tries until the lock is ours or the patience is over.
 *
 * Between attempts the lock is looked at with reads that may lag and cost a twentieth of a refused write; an
 * attempt is made only when a read shows the lock free, or when the holder's time is up.
 *
 * Rejects with LeaseUnavailableError, with the service's error if that is what the last look ended with, or with
 * the signal's reason. The caller abandons the acquisition then.
 */
export async function acquireWithin(
  context: ProtocolContext,
  judge: Judge,
  key: string,
  acquisition: Acquisition,
  patience: Patience,
  onContended: (record: LeaseRecord) => void,
): Promise<Granted> {
  const { clock } = context;
  const deadline = clock.monotonic() + patience.waitMs;
  const leftMs = (): number => deadline - clock.monotonic();
  const budgetMs = (): number => (patience.waitMs > 0 ? Math.max(leftMs(), shortestBudgetMs) : callBudgetMs);
  let looks = 0;

  for (;;) {
    let prospect: Prospect;
    let failure: LeaseServiceError | undefined;
    try {
      const outcome = await acquisition.attempt(budgetMs(), patience.signal);
      if (outcome.granted) return outcome;
      if (outcome.record !== undefined) onContended(outcome.record);
      prospect = {
        record: outcome.record,
        claimableAt: clock.monotonic() + outcome.claimableInMs,
        offset: outcome.offset,
      };
    } catch (error) {
      patience.signal?.throwIfAborted();
      if (!(error instanceof LeaseServiceError && error.retryable)) throw error;
      failure = error;
      prospect = { record: undefined, claimableAt: Number.POSITIVE_INFINITY, offset: undefined };
    }

    for (;;) {
      if (leftMs() <= 0) throw failure ?? unavailable(key, prospect, clock.monotonic());
      looks += 1;
      const delayMs = retryDelayMs(patience.retry, {
        attempt: looks,
        claimableInMs: Math.max(0, prospect.claimableAt - clock.monotonic()),
        fraction: context.randomness.fraction(),
      });
      await sleep(clock, Math.min(delayMs, leftMs()), patience.signal);
      // After a failure nothing is known of the lock, and our own write may have landed: only an attempt tells.
      if (failure !== undefined || clock.monotonic() >= prospect.claimableAt) break;
      const record = await look(context, key, budgetMs(), patience.signal);
      if (record === "free") break;
      if (record === undefined) continue;
      const claimableInMs = claimableIn(judge.judge(record, prospect.offset));
      prospect = { ...prospect, record, claimableAt: clock.monotonic() + claimableInMs };
    }
  }
}

/** Looks at the lock without writing; undefined where the service did not answer, which the next look makes good. */
async function look(
  context: ProtocolContext,
  key: string,
  budgetMs: number,
  signal: AbortSignal | undefined,
): Promise<LeaseRecord | "free" | undefined> {
  const request = { key: leaseItemKey(key), consistent: false };
  try {
    const item = await withBudget(context.clock, Math.min(budgetMs, callBudgetMs), signal, (bounded) =>
      context.store.get(request, { signal: bounded }),
    );
    return readRecord(item) ?? "free";
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof LeaseServiceError && error.retryable) return undefined;
    throw error;
  }
}

function unavailable(key: string, prospect: Prospect, now: number): LeaseUnavailableError {
  const { record } = prospect;
  const held = record && { holder: record.owner, expiresAt: record.expiresAt };
  return new LeaseUnavailableError(key, held, Math.max(0, Math.ceil(prospect.claimableAt - now)));
}
