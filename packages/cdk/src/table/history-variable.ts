/** The environment variable of the function that writes the history: for how many milliseconds a change is kept. */
export const historyRetentionVariable = "LEASEHOLD_HISTORY_MS";
