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
import type { QueryRequest, TransactionEntry } from "@leasehold/client";
import {
  attributeNames,
  type Condition,
  type ItemKey,
  namesIn,
  renderDeletion,
  renderEntry,
  timeToLive,
  type Write,
} from "@leasehold/client/internal";
import { endedTaskKey, openTaskKey, taskAttributeNames } from "./schema.ts";

const { token, version, fence, owner, acquiredAt, expiresAt, leaseDurationMs } = attributeNames;
const { releasedToken, partitionKey, sortKey, timeToLive: ttl } = attributeNames;
const { state, attempts, maxAttempts, dueAt, payload, remark, addedAt, endedAt } = taskAttributeNames;

/** The attributes of a claim, which are gone when a task waits again. */
const claimAttributes = [token, version, owner, acquiredAt, expiresAt, leaseDurationMs];

const isOpen: Condition = [maxAttempts, "exists"];
const isNotOpen: Condition = [maxAttempts, "missing"];
const hasNotEnded: Condition = [state, "missing"];
const isWaiting: Condition = [token, "missing"];
const attemptsAreLeft: Condition = [attempts, "<", { attribute: maxAttempts }];
const attemptsAreUsedUp: Condition = [attempts, ">=", { attribute: maxAttempts }];

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

/** Adds a new task. Two entries, because an open or an ended task may have its id. */
export function addTask(task: NewTask): readonly [TransactionEntry, TransactionEntry] {
  return [renderEntry({ key: openKey(task), set: waiting(task), insist: [isNotOpen] }), notEnded(task)];
}

function waiting(task: NewTask): Write["set"] {
  const mayBeginAt = task.now + task.delayMs;
  return {
    [payload]: task.payload,
    [attempts]: 0,
    [maxAttempts]: task.maxAttempts,
    [remark]: "",
    [addedAt]: task.now,
    [dueAt]: mayBeginAt,
    [ttl]: timeToLive(mayBeginAt, task.keepForMs),
  };
}

/** Checks that the set does not know a task. When it does, the refusal brings the item, read at one moment. */
export function unknownTask(task: TaskId): readonly [TransactionEntry, TransactionEntry] {
  return [renderEntry({ key: openKey(task), set: {}, insist: [isNotOpen] }), notEnded(task)];
}

function notEnded(task: TaskId): TransactionEntry {
  return renderEntry({ key: endedKey(task), set: {}, insist: [hasNotEnded] });
}

/** The fencing token that was read of a task; undefined when the task has never been claimed. */
export type SeenFence = number | undefined;

function isUnchangedSince(seen: SeenFence): Condition {
  return seen === undefined ? [fence, "missing"] : [fence, "=", seen];
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

/**
 * Claims a task that waits unchanged; the same write counts the attempt. A copy that arrives after any other claim of the
 * task is refused.
 */
export function claimTask(claim: Claim, seenFence: SeenFence): Write {
  const isDue: Condition = [dueAt, "<=", claim.acquiredAt];
  return claiming(claim, [isWaiting, isDue, isUnchangedSince(seenFence)]);
}

/** Claims a task from the record that was judged expired. Any write to that record in between defeats it. */
export function takeOverTask(claim: Claim, judged: Judged): Write {
  return claiming(claim, isStill(judged));
}

/** A record that was judged expired. */
export interface Judged {
  readonly token: string;
  readonly version: number;
}

function isStill(judged: Judged): readonly Condition[] {
  return [
    [token, "=", judged.token],
    [version, "=", judged.version],
  ];
}

function claiming(claim: Claim, insist: readonly Condition[]): Write {
  return {
    key: openKey(claim),
    set: {
      [token]: claim.token,
      [version]: claim.version,
      [owner]: claim.owner,
      [acquiredAt]: claim.acquiredAt,
      [expiresAt]: claim.expiresAt,
      [leaseDurationMs]: claim.leaseDurationMs,
      [ttl]: timeToLive(claim.expiresAt, claim.keepForMs),
      // Starts with the time, as for every lease: the number grows even when a task of the same id is added again.
      [fence]: { of: fence, from: claim.acquiredAt, by: 1 },
      [attempts]: { of: attempts, from: 0, by: 1 },
    },
    insist: [...insist, attemptsAreLeft, [releasedToken, "<>", claim.token]],
    returnsItem: true,
  };
}

/** What proves a claim. */
export interface ClaimProof {
  readonly token: string;
  readonly fencingToken: number;
}

function isMine(proof: ClaimProof): readonly Condition[] {
  return [
    [token, "=", proof.token],
    [fence, "=", proof.fencingToken],
  ];
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
  return {
    key: openKey(task),
    set: {
      [releasedToken]: task.token,
      [ttl]: timeToLive(task.dueAt, task.keepForMs),
      [remark]: task.remark,
      [dueAt]: task.dueAt,
    },
    remove: claimAttributes,
    insist: isMine(task),
  };
}

/** Returns a task as if it had not been claimed. */
export function undoClaim(task: Return & ClaimProof): Write {
  return undoing(task, isMine(task));
}

/** The same for a claim whose reply was lost. Its fencing token is not known, and no caller uses that claim. */
export function takeBackClaim(task: Return & { readonly token: string }): Write {
  return undoing(task, [[token, "=", task.token]]);
}

function undoing(task: Return & { readonly token: string }, insist: readonly Condition[]): Write {
  return {
    key: openKey(task),
    set: {
      [releasedToken]: task.token,
      [ttl]: timeToLive(task.now, task.keepForMs),
      [attempts]: { of: attempts, from: 1, by: -1 },
    },
    remove: claimAttributes,
    insist,
  };
}

/** Revokes the token of a claim that has not taken effect: then it never does. */
export function revokeClaim(task: TaskId & { readonly token: string }): Write {
  return { key: openKey(task), set: { [releasedToken]: task.token }, insist: [isOpen], returnsItem: true };
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

/** Ends a task, for the worker that has claimed it. */
export function endTask(task: EndedTask): readonly [TransactionEntry, TransactionEntry] {
  return [renderDeletion(openKey(task), isMine(task)), ended(task)];
}

/** Ends a task that waits unchanged. */
export function cancelTask(
  task: EndedTask,
  seenFence: SeenFence,
): readonly [TransactionEntry, TransactionEntry] {
  return [renderDeletion(openKey(task), [isWaiting, isOpen, isUnchangedSince(seenFence)]), ended(task)];
}

/**
 * Ends a task whose last worker was lost: from the record that was judged expired, or without a record when the claim was
 * broken.
 */
export function parkTask(
  task: EndedTask,
  judged: Judged | undefined,
): readonly [TransactionEntry, TransactionEntry] {
  const isLost = judged === undefined ? [isWaiting] : isStill(judged);
  return [renderDeletion(openKey(task), [...isLost, attemptsAreUsedUp]), ended(task)];
}

function ended(task: EndedTask): TransactionEntry {
  const { worker } = task;
  return renderEntry({
    key: endedKey(task),
    set: {
      [state]: task.state,
      [releasedToken]: task.token,
      [remark]: task.remark,
      [payload]: task.payload,
      [attempts]: task.attempts,
      [maxAttempts]: task.maxAttempts,
      [fence]: task.fencingToken,
      [addedAt]: task.addedAt,
      [endedAt]: task.now,
      [ttl]: timeToLive(task.now, task.keepForMs),
      ...(worker && { [owner]: worker.owner, [acquiredAt]: worker.acquiredAt }),
    },
    insist: [hasNotEnded],
  });
}

/**
 * Opens a task again that has ended without success, with all its attempts. The fencing token grows on, so that a
 * worker of the first round is not taken for a later one.
 */
export function requeueTask(
  task: NewTask & { readonly seenFence: number },
): readonly [TransactionEntry, TransactionEntry] {
  const endedWithoutSuccess: Condition = {
    anyOf: [
      [state, "=", "failed"],
      [state, "=", "parked"],
      [state, "=", "cancelled"],
    ],
  };
  const set = { ...waiting(task), [fence]: task.seenFence + 1 };
  return [
    renderDeletion(endedKey(task), [endedWithoutSuccess, isUnchangedSince(task.seenFence)]),
    renderEntry({ key: openKey(task), set, insist: [isNotOpen] }),
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

function openKey({ set, id }: TaskId): ItemKey {
  return openTaskKey(set, id);
}

function endedKey({ set, id }: TaskId): ItemKey {
  return endedTaskKey(set, id);
}
