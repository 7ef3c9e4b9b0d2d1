/**
 * Every expression of job runs.
 *
 * A run's item is a lease. The lease's own writes also carry what the history records, so that it costs no further
 * request:
 *
 *     absent ──claim──▶ held ──renewal, progress──▶ held ──outcome──▶ succeeded: never held again
 *                        │                            │  └─outcome──▶ failed ──claim──▶ held ──▶ …
 *                        │                            └──(expired)──claim (takeover)──▶ held ──▶ …
 *     absent, failed, (expired) ──skip──▶ skipped: never held again
 *     succeeded, skipped ──takeBack──▶ failed
 *
 *     claim     the condition of the lease's own acquire or takeOver, and attempts are left
 *     progress  the condition of the lease's own renewal
 *     outcome   the condition of the lease's own release: the token is mine
 *     skip      the run is not held, or the record is still the one that was judged expired; and it is not done
 *     takeBack  the run is done, and its end is unchanged: the same attempt, at the same time
 */
import type { Item, QueryRequest } from "@leasehold/client";
import {
  amended,
  asJudged,
  attributeNames,
  type Count,
  type Judged,
  namesIn,
  timeToLive,
  type Write,
} from "@leasehold/client/internal";
import { runAttributeNames, runItemKey, runSortKeyPrefix } from "./schema.ts";

const { partitionKey, sortKey, token, version, owner, releasedToken, brokenToken, doneSlot } = attributeNames;
const { acquiredAt, expiresAt, leaseDurationMs, data, revocation } = attributeNames;
const { lastOwner, lastAcquiredAt, lastEnd } = attributeNames;
const ttl = attributeNames.timeToLive;
const { state, attempt, lostAttempts, endedAt, remark, progress } = runAttributeNames;

function counted(attribute: string): { readonly [attribute: string]: Count } {
  return { [attribute]: { of: attribute, from: 0, by: 1 } };
}

/** A grant that begins an attempt, if one is left. It counts the attempt, and removes the state of the one before. */
export function claim(
  grant: Write,
  { maxAttempts, isTakeover }: { readonly maxAttempts: number; readonly isTakeover: boolean },
): Write {
  return amended(grant, {
    set: { ...counted(attempt), ...(isTakeover ? counted(lostAttempts) : {}) },
    remove: [state, endedAt, progress],
    insist: [
      {
        anyOf: [
          [attempt, "missing"],
          [attempt, "<", maxAttempts],
        ],
      },
    ],
  });
}

/** A renewal that writes a progress report. It sets plain values only, so that renewals can share a request. */
export function report(renewal: Write, text: string): Write {
  return amended(renewal, { set: { [progress]: text } });
}

/** How an attempt ended. */
export interface Outcome {
  readonly state: "succeeded" | "failed";
  readonly endedAt: number;
  readonly remark: string | undefined;
  /** JSON text of a report that no renewal has written yet. */
  readonly progress: string | undefined;
}

const leaseAttributes = [token, version, expiresAt, leaseDurationMs, data, revocation];

/** The end of a lease that records the outcome of the attempt. The owner and the begin stay in the item. */
export function recordOutcome(ending: Write, outcome: Outcome, slot: string): Write {
  const isDone = outcome.state === "succeeded";
  // A run keeps its own owner, begin and end.
  const {
    [doneSlot]: _done,
    [lastOwner]: _owner,
    [lastAcquiredAt]: _begin,
    [lastEnd]: _end,
    ...set
  } = ending.set;
  return {
    ...ending,
    set: {
      ...set,
      [state]: outcome.state,
      [endedAt]: outcome.endedAt,
      ...(isDone ? { [doneSlot]: slot } : {}),
      ...(outcome.progress === undefined ? {} : { [progress]: outcome.progress }),
      ...(outcome.remark === undefined ? {} : { [remark]: outcome.remark }),
    },
    remove: [...leaseAttributes, ...(outcome.remark === undefined ? [remark] : [])],
  };
}

/** The end of a lease without an outcome: its attempt was given up before it was known to have begun. */
export function endWithoutOutcome(ending: Write): Write {
  return { ...ending, remove: leaseAttributes };
}

/** A slot that is not to run. */
export interface Skip {
  readonly job: string;
  readonly slot: string;
  readonly owner: string;
  readonly remark: string | undefined;
  readonly now: number;
  readonly ttl: number;
}

/**
 * Records that a slot is not to run. A slot that is held is refused, unless the record is still the one that was judged
 * expired: that attempt counts as lost.
 */
export function skip({ job, slot, now, ...skipped }: Skip, judged: Judged | undefined): Write {
  const hasRemark = skipped.remark === undefined ? {} : { [remark]: skipped.remark };
  const skipping: Write = {
    key: runItemKey(job, slot),
    set: {
      [state]: "skipped",
      [doneSlot]: slot,
      [owner]: skipped.owner,
      [endedAt]: now,
      [ttl]: skipped.ttl,
      ...hasRemark,
    },
    remove: [...leaseAttributes, acquiredAt, ...(skipped.remark === undefined ? [remark] : [])],
    insist:
      judged === undefined
        ? [
            [token, "missing"],
            [doneSlot, "missing"],
          ]
        : asJudged(judged),
    returnsItem: true,
  };
  if (judged === undefined) return skipping;
  // The lost attempt's token is revoked, because of late copies of its claim. It is also marked as broken, so that
  // an attempt that was not dead does not take this write for its own success.
  return amended(skipping, {
    set: { [releasedToken]: judged.token, [brokenToken]: judged.token, ...counted(lostAttempts) },
  });
}

/** A run that is done and is to be opened again. */
export interface RunTakenBack {
  readonly job: string;
  readonly slot: string;
  /** The number of the latest attempt, as it was read; 0 for none. */
  readonly attempt: number;
  /** When it ended, as it was read. */
  readonly endedAt: number | undefined;
  readonly remark: string;
}

/** Opens a slot that is done. Its attempts stay counted, and the last one counts as failed. */
export function takeBack(run: RunTakenBack): Write {
  return {
    key: runItemKey(run.job, run.slot),
    set: { [state]: "failed", [remark]: run.remark },
    remove: [doneSlot],
    insist: [
      [doneSlot, "exists"],
      run.attempt === 0 ? [attempt, "missing"] : [attempt, "=", run.attempt],
      run.endedAt === undefined ? [endedAt, "missing"] : [endedAt, "=", run.endedAt],
    ],
    returnsItem: true,
  };
}

/** A range of a job's runs. */
export interface RunRange {
  readonly job: string;
  /** From this slot on. */
  readonly since: string | undefined;
  /** Up to, and without, this slot. */
  readonly until: string | undefined;
  readonly descending: boolean;
}

/**
 * Finds runs from one end of the range on. DynamoDB takes one condition on the sort key, which limits the end where
 * the query starts. The reader has to stop at the other end: see {@link isBeyond}.
 */
export function runsIn({
  job,
  since,
  until,
  descending,
}: RunRange): Pick<QueryRequest, "keyCondition" | "names" | "values"> {
  const start = descending ? until : since;
  const bound =
    start === undefined
      ? `begins_with(#${sortKey}, :start)`
      : `#${sortKey} ${descending ? "<" : ">="} :start`;
  const keyCondition = `#${partitionKey} = :key AND ${bound}`;
  return {
    keyCondition,
    names: namesIn(keyCondition),
    values: { ":key": job, ":start": runSortKeyPrefix + (start ?? "") },
  };
}

/** Whether an item is after the range, or is no run. */
export function isBeyond({ since, until, descending }: RunRange, item: Item): boolean {
  const itemSortKey = String(item[sortKey]);
  if (!itemSortKey.startsWith(runSortKeyPrefix)) return true;
  const slot = itemSortKey.slice(runSortKeyPrefix.length);
  if (descending) return since !== undefined && slot < since;
  return until !== undefined && slot >= until;
}

/** Makes ttl keep an item at least until its slot may be forgotten: a slot in the future is kept longer. */
export function keepForSlot(write: Write, slot: string, keepForMs: number): Write {
  const given = write.set[ttl];
  const needed = timeToLive(Date.parse(slot), keepForMs);
  return typeof given === "number" && needed > given ? amended(write, { set: { [ttl]: needed } }) : write;
}
