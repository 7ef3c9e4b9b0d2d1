// The state of a job: its last runs, and the results of one day.

import type { JobRun, JobRuns, RunState, Schedule } from "@leasehold/jobs";

/** A job in one line. */
export interface JobSummary {
  readonly job: string;
  readonly lastRun: JobRun | undefined;
  readonly lastSuccess: JobRun | undefined;
  /** By the slots of the last 24 hours; exhausted runs are counted as failed or lost too. */
  readonly last24h: Readonly<Record<RunState | "exhausted", number>>;
  /** Slots of the last 24 hours that were due and not done; undefined without a known schedule. */
  readonly missed: number | undefined;
}

const dayMs = 24 * 3_600_000;
/** A success before this many runs is not looked for. */
const mostRuns = 5_000;

/** Reads a job's runs, the latest first, until it has seen a day of them and a success. */
export async function summaryOf(
  runs: JobRuns,
  now: number,
  schedule: Schedule | undefined,
): Promise<JobSummary> {
  const since = new Date(now - dayMs);
  const counts = { running: 0, succeeded: 0, failed: 0, lost: 0, skipped: 0, exhausted: 0 };
  let lastRun: JobRun | undefined;
  let lastSuccess: JobRun | undefined;
  for await (const run of runs.runs({ descending: true, limit: mostRuns })) {
    const isToday = run.slot >= since.toISOString();
    if (!isToday && lastSuccess !== undefined) break;
    lastRun ??= run;
    if (run.state === "succeeded") lastSuccess ??= run;
    if (!isToday) continue;
    counts[run.state] += 1;
    if (run.exhausted) counts.exhausted += 1;
  }
  let missed: number | undefined;
  if (schedule !== undefined) {
    missed = 0;
    for await (const _ of runs.missed({ schedule, since })) missed += 1;
  }
  return { job: runs.job, lastRun, lastSuccess, last24h: counts, missed };
}
