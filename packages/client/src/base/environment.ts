/**
 * The environment variables that infrastructure sets and functions read, in one place.
 *
 * A construct that runs a job sets all of them, so that the function's code need not repeat its settings.
 */
export const environmentNames = {
  /** The lease table's name. */
  tableName: "LEASEHOLD_TABLE_NAME",
  /** The lock's key, where a function guards one thing. */
  key: "LEASEHOLD_KEY",
  /** The prefix of all keys that a function may use. */
  keyPrefix: "LEASEHOLD_KEY_PREFIX",
  /** The job's name in metrics, alarms and on the dashboard. */
  job: "LEASEHOLD_JOB",
  /** What to do while another caller holds the lock: skip, throw, wait or replace. */
  whenHeld: "LEASEHOLD_WHEN_HELD",
  /** "true" to run once for each scheduled time. */
  once: "LEASEHOLD_ONCE",
  /** Milliseconds. */
  lockAtMostForMs: "LEASEHOLD_LOCK_AT_MOST_FOR_MS",
  /** Milliseconds between renewals, if a run may outlast lockAtMostFor. */
  heartbeatMs: "LEASEHOLD_HEARTBEAT_MS",
  /** Milliseconds. */
  lockAtLeastForMs: "LEASEHOLD_LOCK_AT_LEAST_FOR_MS",
} as const;

/** The variables that a run of a job under the lock hands to its container, beside the job's and the key's. */
export const runEnvironmentNames = {
  /** The scheduled time of the run. */
  slot: "LEASEHOLD_SLOT",
  /** The fencing token of the run's lease. */
  fencingToken: "LEASEHOLD_FENCING_TOKEN",
  /** The job's `input`, as JSON. */
  input: "LEASEHOLD_INPUT",
} as const;
