/**
 * A set's items are in the lease table, under one key: what they look like is the task set's own business.
 *
 * The system's own table, which is not the lease table, has the register of sets: `pk` and `sk`, both strings.
 *
 *     pk     sk    one item for each
 *     sets   set   set that tasks were added to, with `addedAt`, in epoch milliseconds
 */

/** Keys of sets begin with this; then comes the set's name. */
export const taskKeyPrefix = "claim-tasks/";

/** The key of a set. */
export function taskSetKey(set: string): string {
  return taskKeyPrefix + set;
}

/** The partition of the register. */
export const registerPartition = "sets";

/** The register's entry of a set. */
export function registerKey(set: string): { readonly pk: string; readonly sk: string } {
  return { pk: registerPartition, sk: set };
}

/** The environment variable with the name of the system's own table. */
export const tableVariable = "CLAIM_TASKS_TABLE_NAME";

/**
 * The environment variable that says how often a task is claimed at most; it counts when the task is added.
 * @default 3
 */
export const mostAttemptsVariable = "CLAIM_TASKS_MOST_ATTEMPTS";

/** The environment variable with the duration of a claim that is not renewed, in milliseconds. @default 30000 */
export const claimVariable = "CLAIM_TASKS_LEASE_MS";

/**
 * The environment variable with the longest wait of a task whose first attempt has failed, in milliseconds. It
 * doubles with each attempt.
 * @default 10000
 */
export const backoffVariable = "CLAIM_TASKS_BACKOFF_MS";
