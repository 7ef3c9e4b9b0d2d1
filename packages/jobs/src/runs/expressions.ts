/**
 * The statements of job runs.
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
  asJudged,
  attributeNames,
  endKept,
  free,
  type Judged,
  judgedValues,
  type LeaseAddress,
  type LockEnding,
  leaseItemKey,
  letGo,
  mine,
  mineOrFree,
  namesIn,
  type Part,
  proofValues,
  type Statement,
  say,
  slotDone,
  timeToLive,
  Write,
} from "@leasehold/client/internal";
import { runItemKey, runSortKeyPrefix } from "./schema.ts";

const { sortKey } = attributeNames;

const attemptBegun: Part = {
  set: "#attempt = if_not_exists(#attempt, :zero) + :one",
  // Of the one before.
  remove: "#state, #endedAt, #progress",
  when: "(attribute_not_exists(#attempt) OR #attempt < :mostAttempts)",
};
/** The text holds those before it, as the item was read under the same token. */
const attemptStored: Part = { set: "#attempts = :attempts" };
const attemptLost: Part = { set: "#lostAttempts = if_not_exists(#lostAttempts, :zero) + :one" };
const reported: Part = { set: "#progress = :progress" };
/** The owner and the begin stay in the item. */
const leaseOver: Part = { remove: "#token, #version, #expiresAt, #leaseDurationMs, #data, #revocation" };
const attemptEnded: Part = { set: "#state = :state, #endedAt = :endedAt" };
const remarked: Part = { set: "#remark = :remark" };
const noRemark: Part = { remove: "#remark" };

const endsRun = say(letGo, attemptEnded, leaseOver, mine);
/** The end of a run's lease without an outcome: its attempt was given up before it was known to have begun. */
export const givesRunUp: Statement = say(letGo, endKept, leaseOver, mine);
/** Takes back a claim whose answer never came. */
export const cancelsRun: Statement = say(letGo, leaseOver, mineOrFree);

/** Adds to a grant that it begins an attempt, if one is left: it counts it. `attempts`: with the one it takes over. */
export function claim(
  grant: Write,
  {
    maxAttempts,
    isTakeover,
    attempts,
  }: { readonly maxAttempts: number; readonly isTakeover: boolean; readonly attempts: string | undefined },
): Write {
  grant.and(attemptBegun, { ":zero": 0, ":one": 1, ":mostAttempts": maxAttempts });
  return isTakeover ? storeAttempts(grant.and(attemptLost), attempts) : grant;
}

/** Adds to a write that it stores the history of attempts, if that has changed. */
export function storeAttempts(write: Write, attempts: string | undefined): Write {
  return attempts === undefined ? write : write.and(attemptStored, { ":attempts": attempts });
}

/** Adds a progress report to a renewal. It sets plain values only, so that renewals can share a request. */
export function report(renewal: Write, text: string): Write {
  return renewal.and(reported, { ":progress": text });
}

/** How an attempt ended. */
export interface RunOutcome {
  readonly state: "succeeded" | "failed";
  readonly endedAt: number;
  readonly remark: string | undefined;
  /** JSON text of a report that no renewal has written yet. */
  readonly progress: string | undefined;
}

/** The end of a run's lease that records the outcome of the attempt. A run keeps its own owner, begin and end. */
export function recordOutcome(
  { key, sortKey }: LeaseAddress,
  { shown, now, retentionMs }: LockEnding,
  outcome: RunOutcome,
  slot: string,
): Write {
  const write = new Write(leaseItemKey(key, sortKey), endsRun, {
    ":releasedToken": shown.token,
    ":ttl": timeToLive(now, retentionMs),
    ":state": outcome.state,
    ":endedAt": outcome.endedAt,
    ...proofValues(shown),
  });
  if (outcome.state === "succeeded") write.and(slotDone, { ":doneSlot": slot });
  if (outcome.progress !== undefined) write.and(reported, { ":progress": outcome.progress });
  return remark(write, outcome.remark);
}

function remark(write: Write, text: string | undefined): Write {
  return text === undefined ? write.and(noRemark) : write.and(remarked, { ":remark": text });
}

const skips = say(attemptEnded, slotDone, leaseOver, {
  set: "#owner = :owner, #ttl = :ttl",
  remove: "#acquiredAt",
});
const notDone: Part = { when: "attribute_not_exists(#doneSlot)" };
const tokenBroken: Part = { set: "#releasedToken = :judgedToken, #brokenToken = :judgedToken" };

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
 * expired: that attempt counts as lost, and `attempts` is the history with it.
 */
export function skip(request: Skip, judged: Judged | undefined, attempts?: string): Write {
  const { job, slot, owner, now, ttl } = request;
  const values = { ":state": "skipped", ":doneSlot": slot, ":owner": owner, ":endedAt": now, ":ttl": ttl };
  const write = new Write(runItemKey(job, slot), skips, values).returning();
  if (judged === undefined) write.and(free).and(notDone);
  else {
    // The lost attempt's token is revoked, because of late copies of its claim. It is also marked as broken, so that
    // an attempt that was not dead does not take this write for its own success.
    write.and(asJudged, judgedValues(judged)).and(tokenBroken, { ":judgedToken": judged.token });
    storeAttempts(write.and(attemptLost, { ":zero": 0, ":one": 1 }), attempts);
  }
  return remark(write, request.remark);
}

const takesBack = say(remarked, {
  set: "#state = :state",
  remove: "#doneSlot",
  when: "attribute_exists(#doneSlot)",
});
const neverAttempted: Part = { when: "attribute_not_exists(#attempt)" };
const attemptAsRead: Part = { when: "#attempt = :seenAttempt" };
const withoutEnd: Part = { when: "attribute_not_exists(#endedAt)" };
const endAsRead: Part = { when: "#endedAt = :seenEndedAt" };

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
export function takeBackWrite({ job, slot, attempt, endedAt, remark }: RunTakenBack): Write {
  const write = new Write(runItemKey(job, slot), takesBack, { ":state": "failed", ":remark": remark });
  if (attempt === 0) write.and(neverAttempted);
  else write.and(attemptAsRead, { ":seenAttempt": attempt });
  if (endedAt === undefined) write.and(withoutEnd);
  else write.and(endAsRead, { ":seenEndedAt": endedAt });
  return write.returning();
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
    start === undefined ? "begins_with(#sk, :start)" : descending ? "#sk < :start" : "#sk >= :start";
  const keyCondition = `#pk = :key AND ${bound}`;
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
  const needed = timeToLive(Date.parse(slot), keepForMs);
  if (needed > Number(write.values[":ttl"])) write.values[":ttl"] = needed;
  return write;
}
