/**
 * Jobs on leases: runs, one for each scheduled time; sets of tasks; schedules.
 * It loads no AWS SDK, so infrastructure code may import it.
 */
export type { BackoffOptions } from "@leasehold/client/internal";
export type { JobRunAttempt } from "./runs/attempt-history.ts";
export type { BackfillOptions, BackfillReport } from "./runs/backfill.ts";
export { RunsExhaustedError } from "./runs/errors.ts";
export { type RegisteredJob, registeredJobs } from "./runs/job-registry.ts";
export { JobRuns } from "./runs/job-runs.ts";
export type { JobRunsOptions, RunContext, RunOptions, RunQuery, RunWork } from "./runs/options.ts";
export type { JobRun, RunState } from "./runs/run.ts";
export type { SchedulingOptions } from "./runs/scheduling.ts";
export type { MissedQuery, MissedSlot, Schedule, Slot } from "./runs/slots.ts";
export { InvalidScheduleError } from "./schedule/errors.ts";
export {
  parseScheduleExpression,
  type ScheduleExpressionOptions,
  type ScheduleTimes,
} from "./schedule/expression.ts";
export { FinalFailureError, TaskLostError, type TaskLostReason } from "./tasks/errors.ts";
export type {
  FailOptions,
  RequeueAllOptions,
  RequeueOptions,
  TaskInput,
  TaskRate,
  TaskSetOptions,
} from "./tasks/options.ts";
export type { TaskRecord, TaskState } from "./tasks/record.ts";
export type { FailOutcome, SucceedInOptions, Task } from "./tasks/task.ts";
export { type ProcessOptions, TaskSet, type WorkOptions } from "./tasks/task-set.ts";
export type { ProcessSummary } from "./tasks/worker.ts";
export type { TraceOptions } from "./trace.ts";
