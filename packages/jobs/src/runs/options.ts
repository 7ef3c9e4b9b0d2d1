/**
 * What callers of `JobRuns` may pass.
 * A value that is not allowed is refused by name, before a request is sent.
 */
import type { ConditionCheckOptions, Lease, LeaseTransactItem, RetryStrategy } from "@leasehold/client";
import {
  type AcquisitionTerms,
  aFunction,
  type Core,
  check,
  checkAcquireOptions,
  checkOptions,
  checkText,
  countTo,
  duration,
  type Rules,
  rule,
  trueOrFalse,
  unchecked,
} from "@leasehold/client/internal";
import type { RegisteredJob } from "./job-registry.ts";
import type { RunState } from "./run.ts";
import { checkExpression, checkSlotTime, type Slot } from "./slots.ts";

/** Options of {@link JobRuns}. */
export interface JobRunsOptions {
  /** How many attempts a slot has; failed and lost attempts are both counted. From 1 to 1000. @default 3 */
  readonly maxAttempts?: number;
  /**
   * How long a run stays in the history, from its slot's time or its end, whichever is later. An older slot is
   * refused, because the history cannot tell whether it has run. So all processes that run a job have to use the same
   * value. In milliseconds, from 1 minute to 366 days. @default 2592000000 (30 days)
   */
  readonly keepForMs?: number;
  /**
   * How long an attempt's lease lasts unless it is renewed, in milliseconds. @default - the client's
   * `leaseDurationMs`
   */
  readonly leaseDurationMs?: number;
  /**
   * The job's schedule, as an expression of EventBridge Scheduler: `cron(0 8 ? * MON-FRI *)`. It starts nothing: it
   * registers the job for tools. So `registeredJobs` and `leasehold jobs` find the job and its missed slots. Costs 1
   * request with the first run of an object, and 1 a day after that. @default - the job is not registered
   */
  readonly schedule?: string;
  /** The time zone of `schedule`, an IANA name such as Europe/Berlin. @default "UTC" */
  readonly timeZone?: string;
  /** As for `client.acquire`. Without a heartbeat, the lease has to last longer than the work. @default true */
  readonly heartbeat?: boolean | number;
  /** Readable label of the process that runs the job. @default - the client's owner */
  readonly owner?: string;
  /**
   * Returns the remark of a failed attempt; 1024 bytes of it are kept. All readers of the table can see it, so leave
   * out secrets. @default - the error's name and message
   */
  readonly describeError?: (error: unknown) => string;
}

/** Options of one run. */
export interface RunOptions {
  /** How long to wait for another attempt at the slot to end, in milliseconds. @default 0 */
  readonly waitMs?: number;
  /** How long to wait between two looks at the slot. @default { strategy: "untilExpiry" } */
  readonly retry?: RetryStrategy;
  /** Ends the wait, and aborts the signal that the work gets. @default - none */
  readonly signal?: AbortSignal;
  /** Readable label of the caller. @default - the owner of the `JobRuns` */
  readonly owner?: string;
  /**
   * Lets the same owner begin again at once when its earlier attempt has not ended, as when Lambda retries an
   * invocation that has died. The earlier attempt counts as lost. An attempt that runs in this object is not taken
   * over, nor one that was begun without `reentrant`. Needs an `owner`, here or in the options of `JobRuns`: an
   * identity that no two workers share.
   * @default false
   */
  readonly reentrant?: boolean;
}

/** The context of a run's work. */
export interface RunContext {
  readonly job: string;
  readonly slot: string;
  /** The lease of this attempt. `run` ends it: do not release it. Work that completes it has succeeded. */
  readonly lease: Lease;
  /** Aborts when the lease is lost, and when the caller's own signal aborts. */
  readonly signal: AbortSignal;
  /** The number of this attempt, from 1. */
  readonly attempt: number;
  /**
   * Sets the progress report, which the next renewal or the outcome writes: plain JSON values, at most 4096 bytes.
   * Sends nothing itself; `await lease.renew()` after it writes it at once. Throws InvalidOptionsError.
   */
  progress(report: unknown): void;
  /** Sets the remark of a success: at most 1024 bytes. A failure has the error's text. Throws InvalidOptionsError. */
  remark(text: string): void;
  /**
   * Records the success in your own transaction: your writes and the success happen together, or not at all. What the
   * work does after it is not protected by the lease, which has ended.
   *
   * `send` gets 1 entry. It puts it into the `TransactItems` of one TransactWriteItems, and resolves when DynamoDB has
   * confirmed it. No renewal runs meanwhile: do nothing else under the lease. If `send` rejects, the run is read once:
   * its success may have been recorded, although the answer was lost. If it was not, the call rejects with that error,
   * and the attempt goes on; work that has ended without waiting for it fails.
   * `TransactionCanceledException` with ConditionalCheckFailed for the entry means that another attempt has begun.
   *
   * Do not call `succeedIn` inside `send`: such a call waits for this one, and this one for it, without an end.
   *
   * No request of its own, 1 where `send` rejects; the entry is billed as 2 write units. Rejects with LeaseLostError
   * when the attempt has ended.
   *
   * ```ts
   * const reports = new JobRuns(client, "daily-report");
   * await reports.run(new Date("2026-11-21T00:00:00Z"), async (run) => {
   *   const report = { Put: { TableName: "reports", Item: { id: run.slot, total: 42 } } };
   *   await run.succeedIn(async (entries) => {
   *     await documents.send(new TransactWriteCommand({ TransactItems: [...entries, report] }));
   *   });
   * });
   * ```
   */
  succeedIn(
    send: (entries: LeaseTransactItem[]) => Promise<unknown>,
    options?: ConditionCheckOptions,
  ): Promise<void>;
}

/** The work of a run. */
export type RunWork<T> = (context: RunContext) => Promise<T> | T;

/** Options of {@link JobRuns.runs}. */
export interface RunQuery {
  /** From this slot on. @default - the first that is kept */
  readonly since?: Slot;
  /** Up to, and without, this slot. @default - the last */
  readonly until?: Slot;
  /** Only runs in this state, or in one of these states. All runs of the range are read. @default - every state */
  readonly state?: RunState | readonly RunState[];
  /** Latest first. @default false */
  readonly descending?: boolean;
  /** At most this many. @default - all */
  readonly limit?: number;
}

/** The options of `JobRuns`, validated and complete. */
export interface JobRunsTerms {
  readonly maxAttempts: number;
  readonly keepForMs: number;
  readonly describeError: (error: unknown) => string;
  readonly acquisition: AcquisitionTerms;
  /** When the job is due; undefined for a job that is not registered. */
  readonly schedule: Pick<RegisteredJob, "schedule" | "timeZone"> | undefined;
  /** The owner in the options; undefined when the client's is used. */
  readonly owner: string | undefined;
}

const states: readonly RunState[] = ["running", "succeeded", "failed", "lost", "skipped"];

const longestSchedule = 256;
const shortestKeepMs = 60_000;
const defaultKeepMs = 30 * 24 * 60 * 60 * 1000;

// An acquisition's own options are checked as such.
const jobRunsRules: Rules<JobRunsOptions> = {
  maxAttempts: countTo(1000),
  keepForMs: duration(shortestKeepMs),
  schedule: unchecked,
  timeZone: unchecked,
  leaseDurationMs: unchecked,
  heartbeat: unchecked,
  owner: unchecked,
  describeError: aFunction,
};
const runRules: Rules<RunOptions> = {
  waitMs: unchecked,
  retry: unchecked,
  signal: unchecked,
  owner: unchecked,
  reentrant: unchecked,
};
const queryRules: Rules<RunQuery> = {
  since: checkSlotTime,
  until: checkSlotTime,
  state: rule(`${states.join(", ")}, or an array of these`, areStates),
  descending: trueOrFalse,
  limit: countTo(Number.MAX_SAFE_INTEGER),
};

function areStates(value: unknown): boolean {
  const wanted = [value].flat() as RunState[];
  return wanted.length > 0 && wanted.every((one) => states.includes(one));
}

/** Validates the options of `JobRuns`. */
export function checkJobRunsOptions(options: JobRunsOptions, { owner, times }: Core): JobRunsTerms {
  const given = checkOptions(options, jobRunsRules);
  const { maxAttempts = 3, keepForMs = defaultKeepMs, describeError = nameAndMessage } = given;
  const lease = {
    leaseDurationMs: given.leaseDurationMs ?? times.leaseDurationMs,
    heartbeat: given.heartbeat ?? true,
    owner: given.owner ?? owner,
  };
  return {
    maxAttempts,
    keepForMs,
    describeError,
    acquisition: checkAcquireOptions(lease, true, owner, times),
    schedule: checkJobSchedule(given),
    owner: given.owner,
  };
}

function checkJobSchedule({ schedule, timeZone }: JobRunsOptions): JobRunsTerms["schedule"] {
  check(timeZone === undefined || schedule !== undefined, "timeZone", timeZone, "nothing without schedule");
  if (schedule === undefined) return undefined;
  checkText("schedule", schedule, longestSchedule);
  checkExpression(schedule, timeZone);
  return { schedule, timeZone };
}

/** Validates the options of one run. */
export function checkRunOptions(
  options: RunOptions,
  { acquisition, owner: defaultOwner }: JobRunsTerms,
  client: Core,
): AcquisitionTerms {
  const own = checkOptions(options, runRules);
  const isOwners = own.owner === undefined && defaultOwner !== undefined;
  const given = isOwners ? { ...own, owner: defaultOwner } : own;
  const terms = checkAcquireOptions(given, true, client.owner, client.times);
  const { waitMs, retry, signal, owner, reentrant } = terms;
  return { ...acquisition, waitMs, retry, signal, owner, reentrant };
}

/** A query that has been validated. */
export interface RunQueryTerms {
  readonly since: string | undefined;
  readonly until: string | undefined;
  readonly states: readonly RunState[] | undefined;
  readonly descending: boolean;
  readonly limit: number;
}

/** Validates a query. */
export function checkRunQuery(query: RunQuery): RunQueryTerms {
  const given = checkOptions(query, queryRules, "query");
  const { state, descending = false, limit = Number.POSITIVE_INFINITY } = given;
  return {
    since: given.since as string | undefined,
    until: given.until as string | undefined,
    states: state === undefined ? undefined : [state].flat(),
    descending,
    limit,
  };
}

function nameAndMessage(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
