import type { Lease, RetryStrategy } from "@leasehold/client";
import {
  type AcquisitionTerms,
  type ClientInternals,
  check,
  checkAcquireOptions,
  checkDuration,
  checkKnown,
  isWhole,
} from "@leasehold/client/internal";
import type { RunState } from "./run.ts";
import { checkSlotTime, type Slot } from "./slots.ts";

/** Options of {@link JobRuns}. */
export interface JobRunsOptions {
  /** How often a slot is tried before it is parked; failed and lost attempts count alike. From 1 to 1000. @default 3 */
  readonly maxAttempts?: number;
  /**
   * For how long a run stays in the ledger, from its slot's time or its end, whichever is later. A slot older than
   * that is refused, for the ledger could not tell whether it has run; so all who run a job have to agree on it. From
   * 1 minute to 366 days.
   * @default 2592000000 (30 days)
   */
  readonly keepForMs?: number;
  /** How long an attempt's lease lasts unless it is renewed. @default - the client's `leaseDurationMs` */
  readonly leaseDurationMs?: number;
  /** As for `client.acquire`; without it, the lease has to outlast the work. @default true */
  readonly heartbeat?: boolean | number;
  /** @default - the client's owner */
  readonly owner?: string;
  /**
   * The text that a failed attempt leaves as its remark, of which 1024 bytes are kept. Everybody who can read the
   * table reads it: say here what must not be in it.
   * @default - the error's name and message
   */
  readonly describeError?: (error: unknown) => string;
}

/** Options of one run. */
export interface RunOptions {
  /** How long to wait for another attempt at the slot to end. @default 0 */
  readonly waitMs?: number;
  /** The rhythm of waiting. @default { strategy: "untilExpiry" } */
  readonly retry?: RetryStrategy;
  /** Gives up waiting, and aborts the signal that the work is given. @default - none */
  readonly signal?: AbortSignal;
  /** @default - the ledger's */
  readonly owner?: string;
  /**
   * Lets the same owner begin again at once where its earlier attempt has not ended, as when Lambda retries an
   * invocation that has died: that attempt counts as lost. One that runs in this very object is not touched, nor one that
   * was begun without `reentrant`. Needs an `owner`, here or of the ledger: an identity that no two workers share.
   * @default false
   */
  readonly reentrant?: boolean;
}

/** What the work of a run is given. */
export interface RunContext {
  readonly job: string;
  readonly slot: string;
  /** Of this attempt. Leave its end to the ledger. */
  readonly lease: Lease;
  /** Aborts when the lease is lost, and with the caller's own signal. */
  readonly signal: AbortSignal;
  /** The number of this attempt, from 1. */
  readonly attempt: number;
  /**
   * Keeps a report for the next renewal, or the outcome, to take along: plain JSON values, at most 4096 bytes. Sends
   * nothing by itself; `await lease.renew()` after it brings it at once. Throws InvalidOptionsError.
   */
  progress(report: unknown): void;
  /** Keeps a remark for the outcome: at most 1024 bytes. An error's text comes before it. Throws InvalidOptionsError. */
  remark(text: string): void;
}

/** What a run does. */
export type RunWork<T> = (context: RunContext) => Promise<T> | T;

/** Which runs to list. */
export interface RunQuery {
  /** From this slot on. @default - the first that is kept */
  readonly since?: Slot;
  /** Up to, and without, this slot. @default - the last */
  readonly until?: Slot;
  /** Only those in this state, or in one of these. All of the range are read. @default - every state */
  readonly state?: RunState | readonly RunState[];
  /** Latest first. @default false */
  readonly descending?: boolean;
  /** At most so many. @default - all */
  readonly limit?: number;
}

/** Options that have been validated. */
export interface JobRunsTerms {
  readonly maxAttempts: number;
  readonly keepForMs: number;
  readonly describeError: (error: unknown) => string;
  readonly acquisition: AcquisitionTerms;
  /** The ledger's own owner; undefined where it goes by the client's. */
  readonly owner: string | undefined;
}

const jobRunsOptionNames: readonly (keyof JobRunsOptions)[] = [
  "maxAttempts",
  "keepForMs",
  "leaseDurationMs",
  "heartbeat",
  "owner",
  "describeError",
];
const runOptionNames: readonly (keyof RunOptions)[] = ["waitMs", "retry", "signal", "owner", "reentrant"];
const runQueryNames: readonly (keyof RunQuery)[] = ["since", "until", "state", "descending", "limit"];
const states: readonly RunState[] = ["running", "succeeded", "failed", "lost", "skipped"];

const shortestKeepMs = 60_000;
const defaultKeepMs = 30 * 24 * 60 * 60 * 1000;

/** Validates the options of a ledger. */
export function checkJobRunsOptions(
  options: JobRunsOptions,
  { owner, times }: ClientInternals,
): JobRunsTerms {
  const given = checkKnown(options, jobRunsOptionNames, "options");
  const { maxAttempts = 3, keepForMs = defaultKeepMs, describeError = nameAndMessage } = given;
  const isBound = isWhole(maxAttempts) && maxAttempts >= 1 && maxAttempts <= 1000;
  check(isBound, "maxAttempts", maxAttempts, "a whole number from 1 to 1000");
  check(typeof describeError === "function", "describeError", describeError, "a function of an error");
  const lease = {
    leaseDurationMs: given.leaseDurationMs ?? times.leaseDurationMs,
    heartbeat: given.heartbeat ?? true,
    owner: given.owner ?? owner,
  };
  return {
    maxAttempts,
    keepForMs: checkDuration("keepForMs", keepForMs, shortestKeepMs),
    describeError,
    acquisition: checkAcquireOptions(lease, true, owner, times),
    owner: options.owner,
  };
}

/** Validates one run's options, and gives its terms. */
export function checkRunOptions(
  options: RunOptions,
  { acquisition, owner: ledgerOwner }: JobRunsTerms,
  { times }: ClientInternals,
): AcquisitionTerms {
  const own = checkKnown(options, runOptionNames, "options");
  const isOwners = own.owner === undefined && ledgerOwner !== undefined;
  const given = isOwners ? { ...own, owner: ledgerOwner } : own;
  const terms = checkAcquireOptions(given, true, acquisition.owner, times);
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
  const given = checkKnown(query, runQueryNames, "query");
  const { state, descending = false, limit } = given;
  const wanted = state === undefined ? undefined : [state].flat();
  const isKnown = wanted === undefined || (wanted.length > 0 && wanted.every((one) => states.includes(one)));
  check(isKnown, "state", state, `${states.join(", ")}, or an array of these`);
  check(typeof descending === "boolean", "descending", descending, "true or false");
  if (limit !== undefined) check(isWhole(limit) && limit >= 1, "limit", limit, "a whole number from 1");
  return {
    since: given.since === undefined ? undefined : checkSlotTime("since", given.since),
    until: given.until === undefined ? undefined : checkSlotTime("until", given.until),
    states: wanted,
    descending,
    limit: limit ?? Number.POSITIVE_INFINITY,
  };
}

function nameAndMessage(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}
