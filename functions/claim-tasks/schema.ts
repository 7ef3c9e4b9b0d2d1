/**
 * The keys of the tasks' own table, which is not the lease table: `pk` and `sk`, both strings.
 *
 *     pk         sk    one item for each
 *     tasks#set  task  task of a set, with its state
 *
 * A task's life; every arrow is one transaction that the task's lease has to survive:
 *
 *     waiting ──begin──▶ running ──▶ succeeded
 *        ▲                 │ └─────▶ failed, with a remark
 *        ├──another try────┤
 *        └──(its worker died: begin again)
 */

/** The environment variable with the table's name. */
export const tableVariable = "CLAIM_TASKS_TABLE_NAME";

/** The environment variable that says how often a task is begun before it is given up. @default 3 */
export const mostAttemptsVariable = "CLAIM_TASKS_MOST_ATTEMPTS";

/** Locks of tasks begin with this; then come the set and the task. */
export const taskKeyPrefix = "claim-tasks/";

/** The lock of one task. Written as JSON, so that no two pairs of names make the same key. */
export function taskLockKey(set: string, task: string): string {
  return taskKeyPrefix + JSON.stringify([set, task]);
}

/** The partition of a set's tasks. */
export function tasksPartition(set: string): string {
  return `tasks#${set}`;
}

/** The primary key of a task. */
export function taskKey(set: string, task: string): { readonly pk: string; readonly sk: string } {
  return { pk: tasksPartition(set), sk: task };
}

/** Where a task stands. */
export type TaskState = "waiting" | "running" | "succeeded" | "failed";
