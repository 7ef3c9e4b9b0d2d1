/** Sort keys, attribute names and limits of a job's runs. A run's item is a lease with more attributes. */
import { type ItemKey, leaseItemKey } from "@leasehold/client/internal";

/**
 * The sort key of a run is this prefix and the run's slot. When the run has ended, its item keeps the lease's `owner`,
 * `acquiredAt` and `fence`.
 */
export const runSortKeyPrefix = "run#";

/** Attributes of a run, besides those of its lease. */
export const runAttributeNames = {
  /** S: how the last attempt ended; absent while an attempt runs, and after an attempt that ended without an outcome. */
  state: "state",
  /** N: the number of the latest attempt, from 1. */
  attempt: "attempt",
  /** N: how many attempts were taken over because their holder had not ended them. */
  lostAttempts: "lostAttempts",
  /** N: when the last attempt ended, in epoch milliseconds of its owner's clock. */
  endedAt: "endedAt",
  /** S: the remark of the work, of its error or of an operator. */
  remark: "remark",
  /** S: the last progress report, as JSON text. */
  progress: "progress",
  /** S: the latest attempts that have failed or were lost, as JSON text; see attempt-history.ts. */
  attempts: "attempts",
} as const;

/** The largest values that a run adds to its item. Every renewal is billed for the whole item. */
export const runLimits = {
  /** One or two sentences; an error's text is cut to this. */
  remarkBytes: 1024,
  progressBytes: 4096,
  /** How many attempts are stored. */
  pastAttempts: 10,
  /** The owner and the remark of a stored attempt are cut to this. */
  pastTextBytes: 128,
} as const;

/** Gives the primary key of a run's item. */
export function runItemKey(job: string, slot: string): ItemKey {
  return leaseItemKey(job, runSortKeyPrefix + slot);
}
