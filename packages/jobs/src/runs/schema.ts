/** What the ledger of a job's runs adds to the lease table: sort keys, attribute names and limits. No SDK import. */
import { type ItemKey, leaseItemKey } from "@leasehold/client/internal";

/**
 * The sort key of a run is this and the run's slot. The item is a lease like any other, and what follows besides;
 * it keeps the lease's `owner`, `acquiredAt` and `fence` when the run has ended.
 */
export const runSortKeyPrefix = "run#";

/** Attribute names of a run, besides those of its lease. */
export const runAttributeNames = {
  /** S: how the last attempt ended; absent while one runs, and after one that left without a word. */
  state: "state",
  /** N: the number of the latest attempt, from 1. */
  attempt: "attempt",
  /** N: how many attempts were taken over from holders that did not end them. */
  lostAttempts: "lostAttempts",
  /** N: when the last attempt ended, in epoch milliseconds of its owner's clock. */
  endedAt: "endedAt",
  /** S: what the work, its error or a person said of the run. */
  remark: "remark",
  /** S: what the work reported last, as JSON text. */
  progress: "progress",
} as const;

/** Our own share of an item. Every renewal is billed for the whole of it. */
export const runLimits: { readonly remarkBytes: number; readonly progressBytes: number } = {
  /** A remark is a sentence or two; an error's text is cut to this. */
  remarkBytes: 1024,
  progressBytes: 4096,
};

/** Gives the primary key of a run's item. */
export function runItemKey(job: string, slot: string): ItemKey {
  return leaseItemKey(job, runSortKeyPrefix + slot);
}
