import type { Task, TaskSet } from "@leasehold/jobs";
import { untilTimeIsUp } from "../support/working-time.ts";

/** The result of a worker. */
export interface WorkReport {
  readonly succeeded: number;
  /** For good: it was their last attempt. */
  readonly failed: number;
  /** Set aside: no attempt can help them, or this worker found that the worker of their last attempt was dead. */
  readonly parked: number;
  /** Attempts that ended with an error, of tasks that have another attempt. */
  readonly putBack: number;
  /** Tasks that this worker has begun and not ended: another worker has them, or will have them. */
  readonly lost: number;
  /** Whether it ran out of time. */
  readonly isUnfinished: boolean;
}

/**
 * Does the tasks of a set that can be claimed now, one after the other, and begins nothing when its time is nearly
 * over.
 *
 * It does not wait for tasks that others are doing, nor for tasks that wait for their next attempt: a later call does
 * those. An error of `work` puts the task back. Any worker may try it again after some seconds, until its attempts
 * are used up. A FinalFailureError parks it.
 */
export async function workOn(
  tasks: TaskSet,
  work: (task: Task) => unknown,
  remainingMs: number,
): Promise<WorkReport> {
  const signal = untilTimeIsUp(remainingMs);
  const { succeeded, failed, parked, returned, lost } = await tasks.process(work, { until: "idle", signal });
  return { succeeded, failed, parked, putBack: returned, lost, isUnfinished: signal.aborted };
}
