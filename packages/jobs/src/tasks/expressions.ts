/**
 * The expressions of tasks. A claim is a lease, and is renewed by the lease's own expression.
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
 */
import type { Item, QueryRequest, TransactionEntry, UpdateRequest } from "@leasehold/client";
import { attributeNames, type ItemKey, namesIn, timeToLive } from "@leasehold/client/internal";
import { endedTaskKey, openTaskKey, taskAttributeNames } from "./schema.ts";

const { token, version, fence, owner, acquiredAt, expiresAt, leaseDurationMs } = attributeNames;
const { releasedToken, partitionKey, sortKey } = attributeNames;
const ttl = attributeNames.timeToLive;
const { state, attempts, maxAttempts, dueAt, payload, remark, addedAt, endedAt } = taskAttributeNames;

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
  readonly now: number;
  readonly keepForMs: number;
}

const makeWaiting =
  `SET #${payload} = :payload, #${attempts} = :zero, #${maxAttempts} = :maxAttempts, #${remark} = :nothing, ` +
  `#${addedAt} = :now, #${dueAt} = :dueAt, #${ttl} = :ttl`;
const isNotOpen = `attribute_not_exists(#${maxAttempts})`;
const hasNotEnded = `attribute_not_exists(#${state})`;

/** Adds a new task. Two entries, because an open or an ended task may have its id. */
export function addTask(task: NewTask): readonly [TransactionEntry, TransactionEntry] {
  return [
    entryOf(openTaskKey(task.set, task.id), { update: makeWaiting }, isNotOpen, waitingValues(task)),
    entryOf(endedTaskKey(task.set, task.id), "check", hasNotEnded, {}),
  ];
}

function waitingValues({ payload, maxAttempts, delayMs, now, keepForMs }: NewTask): Item {
  const dueAt = now + delayMs;
  return {
    ":payload": payload,
    ":zero": 0,
    ":maxAttempts": maxAttempts,
    ":nothing": "",
    ":now": now,
    ":dueAt": dueAt,
    ":ttl": timeToLive(dueAt, keepForMs),
  };
}

/** The fencing token that was read of a task; undefined when the task has never been claimed. */
export type SeenFence = number | undefined;

const isAsSeen = `#${fence} = :seenFence`;
const isNeverClaimed = `attribute_not_exists(#${fence})`;

function asSeen(seenFence: SeenFence): { readonly condition: string; readonly values: Item } {
  return seenFence === undefined
    ? { condition: isNeverClaimed, values: {} }
    : { condition: isAsSeen, values: { ":seenFence": seenFence } };
}

/** Checks that the set does not know a task. When it does, the refusal brings the item, read at one moment. */
export function unknownTask({ set, id }: TaskId): readonly [TransactionEntry, TransactionEntry] {
  return [
    entryOf(openTaskKey(set, id), "check", isNotOpen, {}),
    entryOf(endedTaskKey(set, id), "check", hasNotEnded, {}),
  ];
}

/** What a claim writes. */
export interface Claim extends TaskId {
  readonly token: string;
  /** Never used before with this token. */
  readonly version: number;
  readonly owner: string;
  readonly acquiredAt: number;
  readonly expiresAt: number;
  readonly leaseDurationMs: number;
  readonly keepForMs: number;
}

const claimIt =
  `SET #${token} = :token, #${version} = :version, #${owner} = :owner, #${acquiredAt} = :acquiredAt, ` +
  `#${expiresAt} = :expiresAt, #${leaseDurationMs} = :leaseDurationMs, #${ttl} = :ttl, ` +
  // Starts with the time, as for every lease: the number grows even when a task of the same id is added again.
  `#${fence} = if_not_exists(#${fence}, :acquiredAt) + :one, ` +
  `#${attempts} = if_not_exists(#${attempts}, :zero) + :one`;
const mayBeTried = `#${attempts} < #${maxAttempts} AND #${releasedToken} <> :token`;
const isWaiting = `attribute_not_exists(#${token})`;
const isDue = `${isWaiting} AND #${dueAt} <= :acquiredAt AND ${mayBeTried}`;

/**
 * Claims a task that waits unchanged; the same write counts the attempt. A copy that arrives after any other claim of the
 * task is refused.
 */
export function claimTask(claim: Claim, seenFence: SeenFence): UpdateRequest {
  const seen = asSeen(seenFence);
  const values = { ...claimValues(claim), ...seen.values };
  return updateOf(openTaskKey(claim.set, claim.id), claimIt, `${isDue} AND ${seen.condition}`, values, true);
}

const isUnchanged = `#${token} = :judgedToken AND #${version} = :judgedVersion`;

/** Claims a task from the record that was judged expired. Any write to that record in between defeats it. */
export function takeOverTask(claim: Claim, judged: Judged): UpdateRequest {
  const values = { ...claimValues(claim), ...judgedValues(judged) };
  const condition = `${isUnchanged} AND ${mayBeTried}`;
  return updateOf(openTaskKey(claim.set, claim.id), claimIt, condition, values, true);
}

/** A record that was judged expired. */
export interface Judged {
  readonly token: string;
  readonly version: number;
}

function judgedValues(judged: Judged): Item {
  return { ":judgedToken": judged.token, ":judgedVersion": judged.version };
}

function claimValues(claim: Claim): Item {
  return {
    ":token": claim.token,
    ":version": claim.version,
    ":owner": claim.owner,
    ":acquiredAt": claim.acquiredAt,
    ":expiresAt": claim.expiresAt,
    ":leaseDurationMs": claim.leaseDurationMs,
    ":ttl": timeToLive(claim.expiresAt, claim.keepForMs),
    ":one": 1,
    ":zero": 0,
  };
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

const forgetWorker = `REMOVE #${token}, #${version}, #${owner}, #${acquiredAt}, #${expiresAt}, #${leaseDurationMs}`;
const isClaimedByToken = `#${token} = :token`;
const isMine = `${isClaimedByToken} AND #${fence} = :fence`;
const letWait = `SET #${releasedToken} = :token, #${ttl} = :ttl`;
const giveItBack = `${letWait}, #${remark} = :remark, #${dueAt} = :dueAt ${forgetWorker}`;
const undoIt = `${letWait}, #${attempts} = if_not_exists(#${attempts}, :one) - :one ${forgetWorker}`;

/** Returns a task: it waits for its next attempt. */
export function giveBackTask(
  task: Return & ClaimProof & { readonly remark: string; readonly dueAt: number },
): UpdateRequest {
  const { remark, dueAt } = task;
  const values = {
    ...returnValues(task, dueAt),
    ":fence": task.fencingToken,
    ":remark": remark,
    ":dueAt": dueAt,
  };
  return updateOf(openTaskKey(task.set, task.id), giveItBack, isMine, values);
}

/** Returns a task as if it had not been claimed. */
export function undoClaim(task: Return & ClaimProof): UpdateRequest {
  const values = { ...returnValues(task, task.now), ":fence": task.fencingToken, ":one": 1 };
  return updateOf(openTaskKey(task.set, task.id), undoIt, isMine, values);
}

/** The same for a claim whose reply was lost. Its fencing token is not known, and no caller uses that claim. */
export function takeBackClaim(task: Return & { readonly token: string }): UpdateRequest {
  const values = { ...returnValues(task, task.now), ":one": 1 };
  return updateOf(openTaskKey(task.set, task.id), undoIt, isClaimedByToken, values);
}

function returnValues({ token, keepForMs }: Return & { readonly token: string }, from: number): Item {
  return { ":token": token, ":ttl": timeToLive(from, keepForMs) };
}

/** Revokes the token of a claim that has not taken effect: then it never does. */
export function revokeClaim(task: TaskId & { readonly token: string }): UpdateRequest {
  const update = `SET #${releasedToken} = :token`;
  const condition = `attribute_exists(#${maxAttempts})`;
  return updateOf(openTaskKey(task.set, task.id), update, condition, { ":token": task.token }, true);
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
  readonly now: number;
  readonly keepForMs: number;
}

const keepAsEnded =
  `SET #${state} = :state, #${releasedToken} = :token, #${remark} = :remark, #${payload} = :payload, ` +
  `#${attempts} = :attempts, #${maxAttempts} = :maxAttempts, #${fence} = :fence, ` +
  `#${addedAt} = :addedAt, #${endedAt} = :endedAt, #${ttl} = :ttl`;
const keepWithWorker = `${keepAsEnded}, #${owner} = :owner, #${acquiredAt} = :acquiredAt`;

/** Ends a task, for the worker that has claimed it. */
export function endTask(task: EndedTask): readonly [TransactionEntry, TransactionEntry] {
  const open = openTaskKey(task.set, task.id);
  const proof = { ":token": task.token, ":fence": task.fencingToken };
  return [entryOf(open, "delete", isMine, proof), endedEntry(task)];
}

/** Ends a task that waits unchanged. */
export function cancelTask(
  task: EndedTask,
  seenFence: SeenFence,
): readonly [TransactionEntry, TransactionEntry] {
  const seen = asSeen(seenFence);
  const condition = `${isWaiting} AND attribute_exists(#${maxAttempts}) AND ${seen.condition}`;
  return [entryOf(openTaskKey(task.set, task.id), "delete", condition, seen.values), endedEntry(task)];
}

const isUsedUp = `#${attempts} >= #${maxAttempts}`;

/**
 * Ends a task whose last worker was lost: from the record that was judged expired, or without a record when the claim was
 * broken.
 */
export function parkTask(
  task: EndedTask,
  judged: Judged | undefined,
): readonly [TransactionEntry, TransactionEntry] {
  const open = openTaskKey(task.set, task.id);
  const deletion =
    judged === undefined
      ? entryOf(open, "delete", `${isWaiting} AND ${isUsedUp}`, {})
      : entryOf(open, "delete", `${isUnchanged} AND ${isUsedUp}`, judgedValues(judged));
  return [deletion, endedEntry(task)];
}

function endedEntry(task: EndedTask): TransactionEntry {
  const { worker } = task;
  const update = worker === undefined ? keepAsEnded : keepWithWorker;
  return entryOf(endedTaskKey(task.set, task.id), { update }, hasNotEnded, {
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
    ...(worker && { ":owner": worker.owner, ":acquiredAt": worker.acquiredAt }),
  });
}

const endedWithoutSuccess = `(#${state} = :failed OR #${state} = :parked OR #${state} = :cancelled) AND ${isAsSeen}`;
const makeWaitingAgain = `${makeWaiting}, #${fence} = :fence`;

/**
 * Opens a task again that has ended without success, with all its attempts. The fencing token grows on, so that a
 * worker of the first round is not taken for a later one.
 */
export function requeueTask(
  task: NewTask & { readonly seenFence: number },
): readonly [TransactionEntry, TransactionEntry] {
  return [
    entryOf(endedTaskKey(task.set, task.id), "delete", endedWithoutSuccess, {
      ":failed": "failed",
      ":parked": "parked",
      ":cancelled": "cancelled",
      ":seenFence": task.seenFence,
    }),
    entryOf(openTaskKey(task.set, task.id), { update: makeWaitingAgain }, isNotOpen, {
      ...waitingValues(task),
      ":fence": task.seenFence + 1,
    }),
  ];
}

type TaskQuery = Pick<QueryRequest, "keyCondition" | "names" | "values">;

/** Finds the items of a set after a sort key. */
export function itemsAfter(set: string, from: string): TaskQuery {
  const keyCondition = `#${partitionKey} = :set AND #${sortKey} > :from`;
  return { keyCondition, names: namesIn(keyCondition), values: { ":set": set, ":from": from } };
}

/** Finds the items of a set whose sort keys have a prefix. */
export function itemsUnder(set: string, prefix: string): TaskQuery {
  const keyCondition = `#${partitionKey} = :set AND begins_with(#${sortKey}, :prefix)`;
  return { keyCondition, names: namesIn(keyCondition), values: { ":set": set, ":prefix": prefix } };
}

function updateOf(
  key: ItemKey,
  update: string,
  condition: string,
  values: Item,
  returnsItem = false,
): UpdateRequest {
  return { key, update, condition, names: namesIn(`${update} ${condition}`), values, returnsItem };
}

function entryOf(
  key: ItemKey,
  action: TransactionEntry["action"],
  condition: string,
  values: Item,
): TransactionEntry {
  const update = typeof action === "object" ? action.update : "";
  return { key, action, condition, names: namesIn(`${update} ${condition}`), values };
}
