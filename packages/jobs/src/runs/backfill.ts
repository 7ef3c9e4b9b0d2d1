/**
 * Runs missed slots, oldest first and one after the other.
 * The history records each run, so a later back-fill continues where this one has stopped.
 */
import {
  checkOptions,
  checkSignal,
  countTo,
  isAbortOf,
  LeaseLostError,
  LeaseUnavailableError,
  type Rules,
  SlotDoneError,
  trueOrFalse,
} from "@leasehold/client/internal";
import type { Finished } from "./attempt.ts";
import { RunsExhaustedError } from "./errors.ts";
import { type MissedQuery, type MissedSlot, missedRules } from "./slots.ts";

/** Options of {@link JobRuns.backfill}. */
export interface BackfillOptions extends MissedQuery {
  /** At most this many slots are tried. @default 100 */
  readonly limit?: number;
  /** Does not try later slots when one has failed. @default false */
  readonly stopOnFailure?: boolean;
  /** Ends the back-fill, and aborts the work of the slot that is running. @default - none */
  readonly signal?: AbortSignal;
}

/** The result of a back-fill. */
export interface BackfillReport {
  readonly succeeded: readonly string[];
  readonly failed: readonly { readonly slot: string; readonly error: unknown }[];
  /** Missed slots that were not run: their attempts are used up, or another caller ran or runs them. */
  readonly left: readonly string[];
  /** Whether it went through the whole range; false when its limit, a failure or its signal ended it earlier. */
  readonly complete: boolean;
}

const backfillRules: Rules<BackfillOptions> = {
  ...missedRules,
  limit: countTo(Number.MAX_SAFE_INTEGER),
  stopOnFailure: trueOrFalse,
  signal: checkSignal,
};

/** The options of a back-fill besides its query, validated. */
export interface BackfillTerms {
  readonly limit: number;
  readonly stopOnFailure: boolean;
  readonly signal: AbortSignal | undefined;
}

/** Validates the options of a back-fill, and separates its query. */
export function checkBackfillOptions(
  options: BackfillOptions,
): BackfillTerms & { readonly query: MissedQuery } {
  const given = checkOptions(options, backfillRules);
  const { limit = 100, stopOnFailure = false, signal, ...query } = given;
  return { query, limit, stopOnFailure, signal };
}

/** Runs missed slots one after the other. */
export async function backfillFrom(
  missed: AsyncIterable<MissedSlot>,
  { limit, stopOnFailure, signal }: BackfillTerms,
  run: (slot: string) => Promise<Finished<unknown>>,
): Promise<BackfillReport> {
  const succeeded: string[] = [];
  const failed: { readonly slot: string; readonly error: unknown }[] = [];
  const left: string[] = [];
  const report = (complete: boolean): BackfillReport => ({ succeeded, failed, left, complete });
  let tried = 0;
  for await (const { slot, run: before } of missed) {
    if (signal?.aborted || (stopOnFailure && failed.length > 0)) return report(false);
    if (before?.exhausted) {
      left.push(slot);
      continue;
    }
    if (tried >= limit) return report(false);
    tried += 1;
    try {
      const finished = await run(slot);
      if (finished.state === "succeeded") succeeded.push(slot);
      else failed.push({ slot, error: finished.error });
    } catch (error) {
      // The signal aborted before the slot had begun.
      if (isAbortOf(error, signal)) return report(false);
      if (!cannotBeRun(error)) throw error;
      left.push(slot);
    }
  }
  return report(true);
}

/** Whether another caller has the slot, or it has no attempts left. */
function cannotBeRun(error: unknown): boolean {
  return (
    error instanceof LeaseUnavailableError ||
    error instanceof SlotDoneError ||
    error instanceof RunsExhaustedError ||
    error instanceof LeaseLostError
  );
}
