import {
  check,
  checkKnown,
  checkSignal,
  isAbortOf,
  isWhole,
  LeaseLostError,
  LeaseUnavailableError,
  SlotDoneError,
} from "@leasehold/client/internal";
import type { Finished } from "./attempt.ts";
import { RunsExhaustedError } from "./errors.ts";
import { type MissedQuery, type MissedSlot, missedQueryNames } from "./missed.ts";

/** Options of {@link JobRuns.backfill}. */
export interface BackfillOptions extends MissedQuery {
  /** At most so many slots are tried. @default 100 */
  readonly limit?: number;
  /** Leaves the later slots alone once one has failed. @default false */
  readonly stopOnFailure?: boolean;
  /** Aborts the work of the slot that is running, and ends the back-fill with it. @default - none */
  readonly signal?: AbortSignal;
}

/** What a back-fill has done. */
export interface BackfillReport {
  readonly succeeded: readonly string[];
  readonly failed: readonly { readonly slot: string; readonly error: unknown }[];
  /** Slots that were missed and left alone: all attempts are spent, or somebody else ran or runs them meanwhile. */
  readonly left: readonly string[];
  /** Whether it went through the whole range: false when its limit, a failure or its signal ended it before. */
  readonly complete: boolean;
}

const backfillNames: readonly (keyof BackfillOptions)[] = [
  ...missedQueryNames,
  "limit",
  "stopOnFailure",
  "signal",
];

/** How a back-fill goes on, validated. */
export interface BackfillTerms {
  readonly limit: number;
  readonly stopOnFailure: boolean;
  readonly signal: AbortSignal | undefined;
}

/** Validates the options of a back-fill, and parts them from its query. */
export function checkBackfillOptions(
  options: BackfillOptions,
): BackfillTerms & { readonly query: MissedQuery } {
  const given = checkKnown(options, backfillNames, "options");
  const { limit = 100, stopOnFailure = false, signal, ...query } = given;
  check(isWhole(limit) && limit >= 1, "limit", limit, "a whole number from 1");
  check(typeof stopOnFailure === "boolean", "stopOnFailure", stopOnFailure, "true or false");
  checkSignal(signal);
  return { query, limit, stopOnFailure, signal };
}

/** Runs slots one after the other, as the terms have it. */
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
      // The signal came before the slot had begun.
      if (isAbortOf(error, signal)) return report(false);
      if (!isElsewhere(error)) throw error;
      left.push(slot);
    }
  }
  return report(true);
}

/** Whether a slot is somebody else's by now, or has no attempts left. */
function isElsewhere(error: unknown): boolean {
  return (
    error instanceof LeaseUnavailableError ||
    error instanceof SlotDoneError ||
    error instanceof RunsExhaustedError ||
    error instanceof LeaseLostError
  );
}
