/** A set's items are in the lease table, under one key: what they look like is the task set's own business. */

/** Keys of sets begin with this; then comes the set's name. */
export const taskKeyPrefix = "claim-tasks/";

/** The key of a set. */
export function taskSetKey(set: string): string {
  return taskKeyPrefix + set;
}

/**
 * The environment variable that says how often a task is claimed before it is given up; it counts when the task is
 * added. @default 3
 */
export const mostAttemptsVariable = "CLAIM_TASKS_MOST_ATTEMPTS";

/** The environment variable that says for how many milliseconds a claim lasts that is not renewed. @default 30000 */
export const claimVariable = "CLAIM_TASKS_LEASE_MS";
