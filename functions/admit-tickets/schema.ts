/**
 * The keys of the departments' own table, which is not the lease table: `pk` and `sk`, both strings.
 *
 *     pk           sk          one item for each
 *     departments  department  desk: who is in service, who waits, when each was last heard of
 *
 * A desk is one item, so that every change of it is one write: a queue of at most some hundred tickets fits easily.
 */

/** The environment variable with the table's name. */
export const tableVariable = "ADMIT_TICKETS_TABLE_NAME";

/** The environment variable that says how many may wait. @default 10 */
export const mostWaitingVariable = "ADMIT_TICKETS_MOST_WAITING";

/** The environment variable that says after how many milliseconds of silence a ticket counts as gone. @default 60000 */
export const silenceVariable = "ADMIT_TICKETS_SILENCE_MS";

/** Locks of departments begin with this; then comes the department's name. */
export const departmentKeyPrefix = "admit-tickets/";

/** The partition of all desks. */
export const desksPartition = "departments";

/** The key of a department's desk. */
export function deskKey(department: string): { readonly pk: string; readonly sk: string } {
  return { pk: desksPartition, sk: department };
}

/** The attribute that remembers the highest fencing token. */
export const fenceAttribute = "fence";
