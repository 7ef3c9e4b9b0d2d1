export type { BackfillOptions, BackfillReport } from "./backfill.ts";
export { RunsExhaustedError } from "./errors.ts";
export { JobRuns } from "./job-runs.ts";
export type { MissedQuery, MissedSlot, Schedule } from "./missed.ts";
export type { JobRunsOptions, RunContext, RunOptions, RunQuery, RunWork } from "./options.ts";
export type { JobRun, RunState } from "./run.ts";
export type { Slot } from "./slots.ts";
