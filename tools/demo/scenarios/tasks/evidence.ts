import type { TaskRecord } from "@leasehold/jobs";
import type { WorkReport } from "../../../../functions/claim-tasks/worker.ts";
import type { Grant } from "../../lease-history.ts";
import type { LoggedLeaseEvent } from "../../lease-log.ts";

/**
 * What befalls a worker, each time as the ending of a task is on its way to the table.
 *
 * - `killed`: SIGKILL. Another worker does the task.
 * - `killedLast`: SIGKILL in the last attempt of the task. It is parked.
 * - `frozen`: SIGSTOP, until another worker has done the task.
 */
export type Mishap = "killed" | "killedLast" | "frozen";

/** A worker that was killed or frozen. */
export interface Casualty {
  readonly kind: Mishap;
  readonly worker: string;
  readonly taskId: string;
}

/** One call of the worker function, and what it reported. */
export interface Shift {
  readonly worker: string;
  readonly report: WorkReport | "died" | "failed" | "timedOut";
}

/** All that the audit looks at. */
export interface TasksEvidence {
  /** How many the set was given, and said that it added. */
  readonly given: number;
  readonly added: number;
  /** The tasks that cannot succeed, and those of them that are to be parked, in the order of their ids. */
  readonly bad: readonly string[];
  readonly hopeless: readonly string[];
  readonly mostAttempts: number;
  readonly casualties: readonly Casualty[];
  readonly shifts: readonly Shift[];
  /** The claims, as the table granted them; owners are the names of workers. */
  readonly grants: readonly Grant[];
  /** What all processes told of their claims. */
  readonly log: readonly LoggedLeaseEvent[];
  /** What is in the table in the end; owners are the names of workers. */
  readonly tasks: readonly TaskRecord[];
  /** Whether the frozen worker's ending was refused when it arrived after all. */
  readonly wasRefused: boolean;
}
