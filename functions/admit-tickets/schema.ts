/** The environment variable that says how many may wait. @default 10 */
export const mostWaitingVariable = "ADMIT_TICKETS_MOST_WAITING";

/** The environment variable that says after how many milliseconds of silence a ticket counts as gone. @default 60000 */
export const silenceVariable = "ADMIT_TICKETS_SILENCE_MS";

/** Locks of departments begin with this; then comes the department's name. */
export const departmentKeyPrefix = "admit-tickets/";
