import type { Item } from "@leasehold/client";
import {
  attributeNames,
  jsonIn,
  optionalTextIn,
  optionalTimeIn,
  optionalWholeIn,
  readRecord,
  textIn,
} from "@leasehold/client/internal";
import { runAttributeNames, runSortKeyPrefix } from "./schema.ts";

/**
 * How a run stands.
 *
 * - `running`: an attempt is under way.
 * - `succeeded`: it is done, and is never run again.
 * - `failed`: the last attempt ended with an error; it may be retried while attempts are left.
 * - `lost`: the last attempt's lease ended without an outcome; it may be retried while attempts are left.
 * - `skipped`: somebody decided that it is not to run.
 */
export type RunState = "running" | "succeeded" | "failed" | "lost" | "skipped";

/** One run of a job, as the ledger shows it: its slot, and the latest attempt at it. */
export interface JobRun {
  readonly job: string;
  /** The time that it was scheduled for. */
  readonly slot: string;
  readonly state: RunState;
  /** The number of the latest attempt, from 1; 0 for a slot that was skipped before any. */
  readonly attempt: number;
  /** How many earlier attempts ended without a word and were taken over; those that an operator broke are not in it. */
  readonly lostAttempts: number;
  /** Whether all attempts are spent and none succeeded: parked until somebody skips it or raises `maxAttempts`. */
  readonly exhausted: boolean;
  /** Whose the latest attempt is, or who skipped the slot. */
  readonly owner: string | undefined;
  /** Grows with every attempt at this slot; says nothing of other slots. */
  readonly fencingToken: number | undefined;
  /** When the latest attempt began, in epoch milliseconds of its owner's clock. */
  readonly startedAt: number | undefined;
  /** When it ended; when its lease ended, for a lost one whose lease can still be seen. */
  readonly endedAt: number | undefined;
  /** When the lease of a running attempt ends unless it is renewed. */
  readonly expiresAt: number | undefined;
  /** What the work, its error or whoever skipped it said; while an attempt runs, what the one before left. */
  readonly remark: string | undefined;
  /** What the latest attempt reported last. */
  readonly progress: unknown;
}

/** By what a reader judges what it sees. */
export interface Reading {
  readonly now: number;
  readonly clockSkewMs: number;
  readonly maxAttempts: number;
}

/** Reads a run; undefined for a missing item, and for one that never began. Throws LeaseItemError. */
export function readRun(item: Item | undefined, reading: Reading): JobRun | undefined {
  if (item === undefined) return undefined;
  const attempt = optionalWholeIn(item, runAttributeNames.attempt) ?? 0;
  const record = readRecord(item);
  const state = stateOf(item, reading);
  // A claim that was given up before it landed leaves its spent token behind, and nothing else.
  if (attempt === 0 && state !== "skipped") return undefined;
  const isOpen = state === "failed" || state === "lost";
  return {
    job: textIn(item, attributeNames.partitionKey),
    slot: textIn(item, attributeNames.sortKey).slice(runSortKeyPrefix.length),
    state,
    attempt,
    lostAttempts: optionalWholeIn(item, runAttributeNames.lostAttempts) ?? 0,
    exhausted: isOpen && attempt >= reading.maxAttempts,
    owner: optionalTextIn(item, attributeNames.owner),
    fencingToken: optionalWholeIn(item, attributeNames.fence),
    startedAt: optionalTimeIn(item, attributeNames.acquiredAt),
    endedAt:
      optionalTimeIn(item, runAttributeNames.endedAt) ?? (state === "lost" ? record?.expiresAt : undefined),
    expiresAt: state === "running" ? record?.expiresAt : undefined,
    remark: optionalTextIn(item, runAttributeNames.remark),
    progress: jsonIn(item, runAttributeNames.progress),
  };
}

function stateOf(item: Item, { now, clockSkewMs }: Reading): RunState {
  const record = readRecord(item);
  if (record !== undefined) {
    // Only to show: whoever runs the slot again judges by more than this reader's clock.
    const allowanceMs = Number.isFinite(clockSkewMs) ? clockSkewMs : record.leaseDurationMs;
    return now - allowanceMs > record.expiresAt ? "lost" : "running";
  }
  const state = item[runAttributeNames.state];
  if (state === "succeeded" || state === "failed" || state === "skipped") return state;
  // Whoever adopted the lease completes it without the ledger's words, or lets it go.
  return item[attributeNames.doneSlot] === undefined ? "lost" : "succeeded";
}
