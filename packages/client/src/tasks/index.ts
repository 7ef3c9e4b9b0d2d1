export type { TaskLostReason } from "./errors.ts";
export { TaskLostError } from "./errors.ts";
export type { ProcessOptions, TaskInput, TaskSetOptions, WorkOptions } from "./options.ts";
export type { ProcessSummary } from "./process.ts";
export type { TaskRecord, TaskState } from "./record.ts";
export type { Task } from "./task.ts";
export { TaskSet } from "./task-set.ts";
