export type { BackoffOptions } from "../backoff.ts";
export type { TaskLostReason } from "./errors.ts";
export { FinalFailureError, TaskLostError } from "./errors.ts";
export type {
  FailOptions,
  ProcessOptions,
  RequeueAllOptions,
  RequeueOptions,
  TaskInput,
  TaskSetOptions,
  WorkOptions,
} from "./options.ts";
export type { ProcessSummary } from "./process.ts";
export type { TaskRecord, TaskState } from "./record.ts";
export type { FailOutcome, Task } from "./task.ts";
export { TaskSet } from "./task-set.ts";
