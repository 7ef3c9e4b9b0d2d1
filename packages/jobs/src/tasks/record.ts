/**
 * A task, as its item shows it.
 * Reading refuses an item of another program with LeaseItemError, and guesses nothing.
 */
import type { Item } from "@leasehold/client";
import {
  attributeNames,
  jsonIn,
  optionalTextIn,
  optionalTimeIn,
  optionalWholeIn,
  optionalWordIn,
  textIn,
  timeIn,
  wholeIn,
} from "@leasehold/client/internal";
import { taskAttributeNames, taskIdOf } from "./schema.ts";

/**
 * The state of a task.
 *
 * - `waiting`: no worker has it.
 * - `running`: a worker has claimed it. When the worker has died, the task stays `running` until another worker
 *   claims it.
 * - `succeeded`: it is done.
 * - `failed`: its last attempt ended with `task.fail`.
 * - `parked`: set aside for an operator. Its worker said that no attempt can succeed (`final`), or the worker of its last
 *   attempt was lost, or the claim of that worker was broken.
 * - `cancelled`: withdrawn with `cancel` while it was waiting.
 */
export type TaskState = "waiting" | "running" | "succeeded" | "failed" | "parked" | "cancelled";

/** Every state, in the order of a task's life. */
export const taskStates: readonly TaskState[] = [
  "waiting",
  "running",
  "succeeded",
  "failed",
  "parked",
  "cancelled",
];

/** Tells whether a task has ended without success. */
export function isRequeueable(state: TaskState): boolean {
  return state === "failed" || state === "parked" || state === "cancelled";
}

/** A task as the table shows it. Times are epoch milliseconds, by the clock of the process that wrote them. */
export interface TaskRecord {
  readonly id: string;
  readonly state: TaskState;
  readonly payload: unknown;
  /** How often it has been claimed; attempts that were released are not counted. */
  readonly attempts: number;
  readonly maxAttempts: number;
  /** The last remark; empty for none. */
  readonly remark: string;
  readonly addedAt: number;
  /** When it may be claimed; only of a waiting task. */
  readonly dueAt: number | undefined;
  /** The worker that has it, or had it when it ended. Undefined also when the worker's claim was broken. */
  readonly owner: string | undefined;
  /** When the current or the last attempt was claimed. */
  readonly startedAt: number | undefined;
  /** When the claim expires unless it is renewed; only of a running task. */
  readonly expiresAt: number | undefined;
  readonly endedAt: number | undefined;
  /** Tasks with the same one run one at a time. */
  readonly serialKey: string | undefined;
}

/** Reads the item of an open or an ended task. Throws LeaseItemError. */
export function readTask(item: Item): TaskRecord {
  const state = taskStateOf(item);
  const addedAt = addedAtOf(item);
  return {
    id: taskIdOf(textIn(item, attributeNames.sortKey)),
    state,
    payload: taskPayloadOf(item),
    attempts: wholeIn(item, taskAttributeNames.attempts),
    maxAttempts: wholeIn(item, taskAttributeNames.maxAttempts),
    remark: textIn(item, taskAttributeNames.remark),
    addedAt,
    // A task without a delay is due at any time; to its readers, since it was added.
    dueAt:
      state === "waiting"
        ? Math.max(addedAt, optionalTimeIn(item, taskAttributeNames.dueAt) ?? 0)
        : undefined,
    owner: optionalTextIn(item, attributeNames.owner),
    startedAt: optionalTimeIn(item, attributeNames.acquiredAt),
    expiresAt: optionalTimeIn(item, attributeNames.expiresAt),
    endedAt: optionalTimeIn(item, taskAttributeNames.endedAt),
    serialKey: serialKeyOf(item),
  };
}

/** The fencing token of a task's last claim; undefined when it has never been claimed. */
export function taskFenceOf(item: Item): number | undefined {
  return optionalWholeIn(item, attributeNames.fence);
}

/** Whether a task has used up its attempts. */
export function isExhausted(item: Item): boolean {
  return Number(item[taskAttributeNames.attempts]) >= Number(item[taskAttributeNames.maxAttempts]);
}

/** When a waiting task may be claimed, in epoch milliseconds. */
export function dueAtOf(item: Item): number {
  return timeIn(item, taskAttributeNames.dueAt);
}

/** When a task was added, in epoch milliseconds. */
export function addedAtOf(item: Item): number {
  return timeIn(item, taskAttributeNames.addedAt);
}

/** The serial key of a task; undefined for none. */
export function serialKeyOf(item: Item): string | undefined {
  return optionalTextIn(item, taskAttributeNames.serialKey);
}

/** Reads a task's state. */
export function taskStateOf(item: Item): TaskState {
  const ended = optionalWordIn(item, taskAttributeNames.state, taskStates);
  if (ended !== undefined) return ended;
  return item[attributeNames.token] === undefined ? "waiting" : "running";
}

/** An empty text means that there is no payload. */
function taskPayloadOf(item: Item): unknown {
  const { payload } = taskAttributeNames;
  return optionalTextIn(item, payload) === "" ? undefined : jsonIn(item, payload);
}
