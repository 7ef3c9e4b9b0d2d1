import { attributeNames } from "../schema.ts";
import { taskAttributeNames, taskIdOf } from "../schema-tasks.ts";
import type { Item } from "../store.ts";

/**
 * How far a task has come.
 *
 * - `waiting`: nobody has it.
 * - `running`: a worker has claimed it; a worker that died shows until another claims the task.
 * - `succeeded`: done, exactly once.
 * - `failed`: its last attempt ended with `task.fail`.
 * - `parked`: set aside, for a person to look at: its worker said that no attempt can succeed (`final`), or the worker
 *   of its last attempt was lost, or had its claim broken.
 */
export type TaskState = "waiting" | "running" | "succeeded" | "failed" | "parked";

/** Every state, in the order of a task's life. */
export const taskStates: readonly TaskState[] = ["waiting", "running", "succeeded", "failed", "parked"];

/** A task as the table shows it. Times are epoch milliseconds of the clock of whoever wrote them. */
export interface TaskRecord {
  readonly id: string;
  readonly state: TaskState;
  readonly payload: unknown;
  /** How often it has been claimed, attempts that were released apart. */
  readonly attempts: number;
  readonly maxAttempts: number;
  /** What was last said of it; empty for nothing. */
  readonly remark: string;
  readonly addedAt: number;
  /** Until when it is not claimed again; only of a waiting task. */
  readonly dueAt: number | undefined;
  /** Who has it, or had it when it ended; undefined also where a broken claim has left nobody to name. */
  readonly owner: string | undefined;
  /** When the present or the last attempt was claimed. */
  readonly startedAt: number | undefined;
  /** When the claim ends unless it is renewed; only of a running task. */
  readonly expiresAt: number | undefined;
  readonly endedAt: number | undefined;
}

/** Reads the item of an open or an ended task. */
export function readTask(item: Item): TaskRecord {
  const state = stateOf(item);
  return {
    id: taskIdOf(String(item[attributeNames.sortKey])),
    state,
    payload: payloadOf(item),
    attempts: Number(item[taskAttributeNames.attempts]),
    maxAttempts: Number(item[taskAttributeNames.maxAttempts]),
    remark: String(item[taskAttributeNames.remark]),
    addedAt: Number(item[taskAttributeNames.addedAt]),
    dueAt: state === "waiting" ? numberIn(item, taskAttributeNames.dueAt) : undefined,
    owner: textIn(item, attributeNames.owner),
    startedAt: numberIn(item, attributeNames.acquiredAt),
    expiresAt: numberIn(item, attributeNames.expiresAt),
    endedAt: numberIn(item, taskAttributeNames.endedAt),
  };
}

/** Reads a task's state. */
export function stateOf(item: Item): TaskState {
  const ended = item[taskAttributeNames.state];
  if (ended !== undefined) return ended as TaskState;
  return item[attributeNames.token] === undefined ? "waiting" : "running";
}

function payloadOf(item: Item): unknown {
  const text = String(item[taskAttributeNames.payload] ?? "");
  return text === "" ? undefined : JSON.parse(text);
}

function textIn(item: Item, name: string): string | undefined {
  const value = item[name];
  return value === undefined ? undefined : String(value);
}

function numberIn(item: Item, name: string): number | undefined {
  const value = item[name];
  return value === undefined ? undefined : Number(value);
}
