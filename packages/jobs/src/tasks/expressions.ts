/**
 * The writes of tasks. A claim is a lease: its writes are the lease's own, with what the task adds to them.
 *
 *     absent ──add──▶ waiting ──claim──▶ running ──end──▶ succeeded | failed | parked
 *                      ▲ │ ▲                │ ├──takeOver──▶ running for another
 *                      │ │ └─giveBack, undo─┘ └──park─────▶ parked
 *                      │ └──────────cancel──▶ cancelled
 *                      └─────────────requeue─ failed | parked | cancelled
 *
 *     add       no open and no ended task has this id
 *     claim     the task waits unchanged, it is due, attempts are left, and the token is not revoked
 *     takeOver  the record is still the one that was judged expired, and attempts are left
 *     giveBack  the claim is mine; the attempt is counted
 *     undo      the claim is mine; the attempt is not counted
 *     revoke    the task is open; only the revoked token is written
 *     end       the claim is mine, and the task has not ended
 *     park      no attempt is left, and the record is still the one that was judged expired, or was broken
 *     cancel    the task waits unchanged
 *     requeue   the task has ended without success, and is unchanged
 *
 * An open and an ended task are two items, so that a query for work does not read what is done. The end of a task
 * moves it, in one transaction. Only add and requeue create an open item, so a write that arrives late cannot bring a
 * task back.
 *
 * The fencing token grows with every claim and every requeue. "Unchanged" means that it is still the one that was
 * read, or still absent. So a late copy of a claim, a cancel or a requeue has no effect after the next one. "The
 * claim is mine" means: the token and the fencing token are mine.
 *
 * Tasks with the same serial key run one at a time. The key's item names the task of that key that was claimed last. A
 * claim is then a transaction of up to three writes: the claim itself; the key's item, which still names the task that was
 * read there, names this one; and no worker has the task that was named before. So a running task is always the one that
 * its key's item names. No other write changes the key's item: whatever ends, returns or removes the named task, no worker
 * has it then. The key's item also has the fencing token of that claim: the tokens grow over all tasks of a key.
 */
import type { Item, LeaseRecord, QueryRequest } from "@leasehold/client";
import {
  acquire,
  asJudged,
  attributeNames,
  endKept,
  endText,
  free,
  type Grant,
  type Judged,
  judgedValues,
  type LeaseAddress,
  letGo,
  mine,
  mineByToken,
  namesIn,
  noHolder,
  notGrantedSince,
  noWishes,
  type Part,
  proofValues,
  release,
  type Statement,
  say,
  takeOver,
  timeToLive,
  tokenRevoked,
  type Values,
  Write,
} from "@leasehold/client/internal";
import { serialKeyOf, taskFenceOf } from "./record.ts";
import {
  endedTaskKey,
  openTaskKey,
  ratePeriodKey,
  serialKeyItemKey,
  serialKeyKeptForMs,
  taskAttributeNames,
  taskIdOf,
} from "./schema.ts";
import type { TaskContext } from "./task-context.ts";

const notOpen: Part = { when: "attribute_not_exists(#maxAttempts)" };
const taskOpen: Part = { when: "attribute_exists(#maxAttempts)" };
const notEnded: Part = { when: "attribute_not_exists(#state)" };
const attemptCounted: Part = {
  set: "#attempts = if_not_exists(#attempts, :zero) + :one",
  when: "#attempts < #maxAttempts",
};
const attemptUncounted: Part = { set: "#attempts = if_not_exists(#attempts, :one) - :one" };
const noAttemptLeft: Part = { when: "#attempts >= #maxAttempts" };
const dueNow: Part = { when: "#dueAt <= :acquiredAt" };
const waitsAgain: Part = { set: "#remark = :remark, #dueAt = :dueAt" };

const makesWaiting = say(notOpen, {
  set:
    "#payload = :payload, #attempts = :attempts, #maxAttempts = :maxAttempts, #remark = :remark, " +
    "#addedAt = :addedAt, #dueAt = :dueAt, #ttl = :ttl",
});
const serially: Part = { set: "#serialKey = :serialKey" };
const fenceSet: Part = { set: "#fence = :fence" };
const isUnknown = say(notOpen);
const hasNotEnded = say(notEnded);
/** The fencing token of a claim whose answer was lost is not known, and no caller uses that claim. */
const takesClaimBack = say(letGo, endKept, noHolder, noWishes, attemptUncounted, mineByToken);
const revokesClaim = say(tokenRevoked, taskOpen);
const isMine = say(mine);
const waitsUnchanged = say(free, taskOpen);
const claimGone = say(free, noAttemptLeft);
const isAsJudged = say(asJudged, noAttemptLeft);
const endsTask = say(notEnded, {
  set:
    "#state = :state, #releasedToken = :token, #remark = :remark, #payload = :payload, #attempts = :attempts, " +
    "#maxAttempts = :maxAttempts, #fence = :fence, #addedAt = :addedAt, #endedAt = :endedAt, #ttl = :ttl",
});
const workerKept: Part = { set: "#owner = :owner, #acquiredAt = :acquiredAt" };
const namesTask: Part = { set: "#lastTask = :lastTask, #fence = :fence, #ttl = :ttl" };
const namesFirst = say(namesTask, { when: "attribute_not_exists(#lastTask)" });
const namesNext = say(namesTask, { when: "#lastTask = :seenTask AND #fence < :fence" });
const hasNoWorker = say(free);
const countsClaim = say({
  set: "#claims = if_not_exists(#claims, :zero) + :one, #ttl = :ttl",
  when: "(attribute_not_exists(#claims) OR #claims < :most)",
});
/** No clock that the service corrects is behind by this much. */
export const mostBehindMs: number = 24 * 60 * 60 * 1000;
const endedWithoutSuccess = say({ when: "(#state = :failed OR #state = :parked OR #state = :cancelled)" });

/** The task that a write changes. */
export interface TaskId {
  readonly set: string;
  readonly id: string;
}

/** What adding a task writes. */
export interface NewTask extends TaskId {
  readonly payload: string;
  readonly maxAttempts: number;
  readonly delayMs: number;
  readonly serialKey: string | undefined;
  readonly now: number;
  readonly keepForMs: number;
}

/** Adds a new task. Two writes, because an open or an ended task may have its id. */
export function addTask(task: NewTask): readonly [Write, Write] {
  return [makeWaiting(task), new Write(endedTaskKey(task.set, task.id), hasNotEnded)];
}

function makeWaiting(task: NewTask): Write {
  const { now, delayMs } = task;
  const due = now + delayMs;
  const write = new Write(openTaskKey(task.set, task.id), makesWaiting, {
    ":payload": task.payload,
    ":attempts": 0,
    ":maxAttempts": task.maxAttempts,
    ":remark": "",
    ":addedAt": now,
    // Before the first answer the time is the process's own: a clock that is ahead must not hold back what has no delay.
    ":dueAt": delayMs === 0 ? 0 : due,
    ":ttl": timeToLive(due, task.keepForMs),
  });
  return withSerialKey(write, task.serialKey);
}

function withSerialKey(write: Write, serialKey: string | undefined): Write {
  return serialKey === undefined ? write : write.and(serially, { ":serialKey": serialKey });
}

/** The fencing token that was read of a task; undefined when the task has never been claimed. */
export type SeenFence = number | undefined;

/** Checks that the set does not know a task. When it does, the refusal brings the item, read at one moment. */
export function unknownTask({ set, id }: TaskId): readonly [Write, Write] {
  return [new Write(openTaskKey(set, id), isUnknown), new Write(endedTaskKey(set, id), hasNotEnded)];
}

/**
 * Claims a task that waits unchanged; the same write counts the attempt. A copy that arrives after any other claim of the
 * task is refused.
 */
export function claimTask(task: TaskId, grant: Grant, seenFence: SeenFence): Write {
  return notGrantedSince(countedClaim(acquire(claimAddress(task), grant)).and(dueNow), seenFence);
}

/** Claims a task from the record that was judged expired. Any write to that record in between defeats it. */
export function takeOverTask(task: TaskId, grant: Grant, judged: Judged): Write {
  return countedClaim(takeOver(claimAddress(task), grant, judged));
}

/**
 * What a claim of a task with a serial key writes beside itself, in one transaction. `seenTask`: the task that the key's
 * item named when it was read.
 */
export function claimSerialKey(
  { set, id, serialKey }: TaskId & { readonly serialKey: string },
  { now, fencingToken }: { readonly now: number; readonly fencingToken: number },
  seenTask: string | undefined,
): readonly Write[] {
  const key = serialKeyItemKey(set, serialKey);
  const ttl = timeToLive(now, serialKeyKeptForMs);
  const values = { ":lastTask": id, ":fence": fencingToken, ":ttl": ttl };
  if (seenTask === undefined) return [new Write(key, namesFirst, values)];
  const naming = new Write(key, namesNext, { ...values, ":seenTask": seenTask });
  return seenTask === id ? [naming] : [naming, new Write(openTaskKey(set, seenTask), hasNoWorker)];
}

/**
 * Counts one more claim in a period. Only this write makes the item, so one that arrives late counts in its own period,
 * where it changes nothing any more.
 */
export function countClaim(rate: {
  readonly set: string;
  readonly claims: number;
  readonly perMs: number;
  readonly period: number;
}): Write {
  const { set, claims, perMs, period } = rate;
  return new Write(ratePeriodKey(set, perMs, period), countsClaim, {
    ":zero": 0,
    ":one": 1,
    ":most": claims,
    ":ttl": timeToLive((period + 1) * perMs, mostBehindMs),
  });
}

function claimAddress({ set, id }: TaskId): LeaseAddress {
  const { pk, sk } = openTaskKey(set, id);
  return { key: pk, sortKey: sk };
}

function countedClaim(claim: Write): Write {
  return claim.and(attemptCounted, { ":zero": 0, ":one": 1 });
}

/** What proves a claim. */
export interface ClaimProof {
  readonly token: string;
  readonly fencingToken: number;
}

/** What the writes need that return a task. */
interface Return extends TaskId {
  readonly now: number;
  readonly keepForMs: number;
}

/** Returns a task: it waits for its next attempt. */
export function giveBackTask(
  task: Return & ClaimProof & { readonly remark: string; readonly dueAt: number },
): Write {
  const write = letWait(task).and(waitsAgain, { ":remark": task.remark, ":dueAt": task.dueAt });
  write.values[":ttl"] = timeToLive(task.dueAt, task.keepForMs);
  return write;
}

/** Returns a task as if it had not been claimed. */
export function undoClaim(task: Return & ClaimProof): Write {
  return letWait(task).and(attemptUncounted, { ":one": 1 });
}

/** The same for a claim whose answer was lost. */
export function takeBackClaim({
  set,
  id,
  token,
  now,
  keepForMs,
}: Return & { readonly token: string }): Write {
  return new Write(openTaskKey(set, id), takesClaimBack, {
    ":releasedToken": token,
    ":ttl": timeToLive(now, keepForMs),
    ":lastEnd": endText("released", now),
    ":one": 1,
    ":ifToken": token,
  });
}

function letWait(task: Return & ClaimProof): Write {
  const ending = { shown: task, now: task.now, retentionMs: task.keepForMs };
  return release(claimAddress(task), { ...ending, slot: undefined, cooldown: undefined });
}

/** Revokes the token of a claim that has not taken effect: then it never does. */
export function revokeClaim({ set, id, token }: TaskId & { readonly token: string }): Write {
  return new Write(openTaskKey(set, id), revokesClaim, { ":releasedToken": token }).returning();
}

/** The item of an ended task. */
export interface EndedTask extends TaskId {
  readonly state: "succeeded" | "failed" | "parked" | "cancelled";
  /** Written so that the writer recognises its own write. */
  readonly token: string;
  readonly remark: string;
  readonly payload: string;
  readonly attempts: number;
  readonly maxAttempts: number;
  /** The last worker; undefined when its claim was broken, which removes it. */
  readonly worker: { readonly owner: string; readonly acquiredAt: number } | undefined;
  readonly fencingToken: number;
  readonly addedAt: number;
  readonly serialKey: string | undefined;
  readonly now: number;
  readonly keepForMs: number;
}

/** The item of an ended task, made from the open one. `record` is the last worker's claim, if there is one. */
export function endedTask(
  { core, set, terms }: TaskContext,
  item: Item,
  record: LeaseRecord | undefined,
  state: EndedTask["state"],
  remark: string,
  token: string,
): EndedTask {
  const now = core.clock.now();
  return {
    set,
    id: taskIdOf(String(item[attributeNames.sortKey])),
    state,
    token,
    remark,
    payload: String(item[taskAttributeNames.payload] ?? ""),
    attempts: Number(item[taskAttributeNames.attempts]),
    maxAttempts: Number(item[taskAttributeNames.maxAttempts]),
    worker: record && { owner: record.owner, acquiredAt: record.acquiredAt },
    // A task that was never claimed gets its number from the time, as a first claim would give it.
    fencingToken: taskFenceOf(item) ?? now,
    addedAt: Number(item[taskAttributeNames.addedAt]),
    serialKey: serialKeyOf(item),
    now,
    keepForMs: terms.keepForMs,
  };
}

/** Ends a task, for the worker that has claimed it. */
export function endTask(task: EndedTask): readonly [Write, Write] {
  return moved(task, openTask(task, isMine, proofValues(task)));
}

/** Ends a task that waits unchanged. */
export function cancelTask(task: EndedTask, seenFence: SeenFence): readonly [Write, Write] {
  return moved(task, notGrantedSince(openTask(task, waitsUnchanged), seenFence));
}

/**
 * Ends a task whose last worker was lost: from the record that was judged expired, or without a record when the claim was
 * broken.
 */
export function parkTask(task: EndedTask, judged: Judged | undefined): readonly [Write, Write] {
  if (judged === undefined) return moved(task, openTask(task, claimGone));
  return moved(task, openTask(task, isAsJudged, judgedValues(judged)));
}

function openTask({ set, id }: TaskId, where: Statement, values?: Values): Write {
  return new Write(openTaskKey(set, id), where, values);
}

/** Moves a task to the ended ones, while its open item fulfils the conditions. */
function moved(task: EndedTask, from: Write): readonly [Write, Write] {
  const { worker } = task;
  const ended = new Write(endedTaskKey(task.set, task.id), endsTask, {
    ":state": task.state,
    ":token": task.token,
    ":remark": task.remark,
    ":payload": task.payload,
    ":attempts": task.attempts,
    ":maxAttempts": task.maxAttempts,
    ":fence": task.fencingToken,
    ":addedAt": task.addedAt,
    ":endedAt": task.now,
    ":ttl": timeToLive(task.now, task.keepForMs),
  });
  if (worker !== undefined)
    ended.and(workerKept, { ":owner": worker.owner, ":acquiredAt": worker.acquiredAt });
  return [from.deleting(), withSerialKey(ended, task.serialKey)];
}

/**
 * Opens a task again that has ended without success, with all its attempts. The fencing token grows on, so that a
 * worker of the first round is not taken for a later one.
 */
export function requeueTask(task: NewTask & { readonly seenFence: number }): readonly [Write, Write] {
  const words = { ":failed": "failed", ":parked": "parked", ":cancelled": "cancelled" };
  const ended = new Write(endedTaskKey(task.set, task.id), endedWithoutSuccess, words);
  const waiting = makeWaiting(task).and(fenceSet, { ":fence": task.seenFence + 1 });
  return [notGrantedSince(ended, task.seenFence).deleting(), waiting];
}

type TaskQuery = Pick<QueryRequest, "keyCondition" | "names" | "values">;

/** Finds the items of a set after a sort key. */
export function itemsAfter(set: string, from: string): TaskQuery {
  const keyCondition = "#pk = :set AND #sk > :from";
  return { keyCondition, names: namesIn(keyCondition), values: { ":set": set, ":from": from } };
}

/** Finds the items of a set whose sort keys have a prefix. */
export function itemsUnder(set: string, prefix: string): TaskQuery {
  const keyCondition = "#pk = :set AND begins_with(#sk, :prefix)";
  return { keyCondition, names: namesIn(keyCondition), values: { ":set": set, ":prefix": prefix } };
}
