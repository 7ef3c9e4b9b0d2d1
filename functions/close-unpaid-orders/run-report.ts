import type { LeaseClient } from "@leasehold/client";
import type { JobRun, JobRuns, MissedSlot } from "@leasehold/jobs";
import { closeUnpaidOrdersKey } from "./job.ts";
import type { OrderBook } from "./orders.ts";
import { closeInRun, openRuns } from "./runs.ts";

/** The state of a run for an operator: a failed or lost run without attempts left is `exhausted`. */
export type Standing = JobRun["state"] | "exhausted";

/** All of them. */
export const standings: readonly Standing[] = [
  "running",
  "succeeded",
  "failed",
  "lost",
  "exhausted",
  "skipped",
];

/** What an operator is shown of a run. */
export interface ShownRun
  extends Pick<
    JobRun,
    "slot" | "attempt" | "owner" | "fencingToken" | "startedAt" | "endedAt" | "remark" | "progress"
  > {
  readonly state: Standing;
}

/** A range's runs. */
export interface RunsAnswer {
  readonly since: string;
  readonly counts: Readonly<Record<Standing, number>>;
  /** The runs of the wanted state, latest first: 100 at most. */
  readonly runs: readonly ShownRun[];
}

/** The slots that were due and have no success. */
export interface MissedAnswer {
  readonly since: string;
  readonly until: string;
  /** Oldest first: 100 at most. */
  readonly missed: readonly { readonly slot: string; readonly run: ShownRun | undefined }[];
  /** Whether these are all. */
  readonly complete: boolean;
}

/** The result of a back-fill; another call goes on where it stopped. */
export interface BackfillAnswer {
  readonly succeeded: readonly string[];
  readonly failed: readonly { readonly slot: string; readonly problem: string }[];
  /** All attempts are used up, or another caller ran them meanwhile. */
  readonly left: readonly string[];
  readonly complete: boolean;
}

/** The parts of the report. */
export interface ReportSources {
  readonly leases: LeaseClient;
  readonly orders: OrderBook;
  /** An expression of EventBridge Scheduler, in UTC. */
  readonly schedule: string;
  readonly leaseDurationMs: number;
  readonly now: () => number;
}

/** An answer stays far below the 6 MB that Lambda takes. */
const mostShown = 100;

/** The scheduler invokes within the minute after a slot. A run that fails at once is left to its own retry first. */
const graceMs = 60_000;

/** Lists the runs of a range: those of one state, or else those that did not succeed. 1 query for 250 runs. */
export async function runsSince(
  { leases }: ReportSources,
  since: string,
  standing: Standing | undefined,
): Promise<RunsAnswer> {
  const counts = { running: 0, succeeded: 0, failed: 0, lost: 0, exhausted: 0, skipped: 0 };
  const shown: ShownRun[] = [];
  for await (const run of jobRuns(leases).runs({ since, descending: true })) {
    const its = standingOf(run);
    counts[its] += 1;
    const isWanted = standing === undefined ? its !== "succeeded" : its === standing;
    if (isWanted && shown.length < mostShown) shown.push(shownRun(run));
  }
  return { since, counts, runs: shown };
}

/** Lists the slots that were due and have neither succeeded nor been skipped. 1 consistent query for 250 runs. */
export async function missedSince(
  { leases, schedule, now }: ReportSources,
  since: string,
): Promise<MissedAnswer> {
  const until = new Date(now() - graceMs).toISOString();
  const missed: MissedSlot[] = [];
  let complete = true;
  for await (const one of jobRuns(leases).missed({ schedule, since, until })) {
    complete = missed.length < mostShown;
    if (!complete) break;
    missed.push(one);
  }
  return {
    since,
    until,
    missed: missed.map(({ slot, run }) => ({ slot, run: run && shownRun(run) })),
    complete,
  };
}

/** How a back-fill is done. */
export interface BackfillTerms {
  /** More than the trigger has, so that exhausted slots run again. */
  readonly maxAttempts: number | undefined;
  /** How long to wait for the lock. */
  readonly waitMs: number;
  /** Milliseconds that its invocation has left. It begins no slot, and no order, when they are nearly over. */
  readonly remainingMs: () => number;
  /** Aborts then. */
  readonly signal: AbortSignal;
}

/**
 * Runs the missed slots of a range, oldest first, under the lock of the schedule's runs.
 *
 * It holds the lock from the first slot to the last, so ticks that come meanwhile are skipped: these slots close
 * their orders. It takes the lock before it begins a slot, as the trigger does, so the two cannot deadlock. It
 * acquires the lock without a slot, so earlier slots are not refused. The run history refuses slots that are done.
 *
 * Rejects with LeaseUnavailableError when the lock stays held, and with LeaseLostError when it is lost.
 */
export async function backfillSince(
  { leases, orders, schedule, leaseDurationMs, now }: ReportSources,
  since: string,
  { maxAttempts, waitMs, remainingMs, signal }: BackfillTerms,
): Promise<BackfillAnswer> {
  const options = maxAttempts === undefined ? {} : { maxAttempts };
  const runs = openRuns(leases, { key: closeUnpaidOrdersKey, leaseDurationMs, ...options });
  const until = new Date(now() - graceMs);
  // Refuses a wrong range before the lock is taken.
  runs.missed({ schedule, since, until });
  const terms = { leaseDurationMs, heartbeat: true, waitMs, signal };
  return await leases.withLease(closeUnpaidOrdersKey, terms, async (lease) => {
    const lock = { lease, signal: AbortSignal.any([lease.signal, signal]) };
    const range = { schedule, since, until, signal: lock.signal };
    const work = { orders, now, remainingMs };
    const report = await runs.backfill(range, (run) => closeInRun(run, { work, lock }));
    return { ...report, failed: report.failed.map(({ slot, error }) => ({ slot, problem: String(error) })) };
  });
}

function jobRuns(leases: LeaseClient): JobRuns {
  return openRuns(leases, { key: closeUnpaidOrdersKey });
}

function standingOf({ exhausted, state }: JobRun): Standing {
  return exhausted ? "exhausted" : state;
}

function shownRun(run: JobRun): ShownRun {
  const { slot, attempt, owner, fencingToken, startedAt, endedAt, remark, progress } = run;
  return { slot, state: standingOf(run), attempt, owner, fencingToken, startedAt, endedAt, remark, progress };
}
