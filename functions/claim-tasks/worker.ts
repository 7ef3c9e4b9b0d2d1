import type { Task, TaskSet } from "@leasehold/jobs";
import { untilTimeIsUp } from "../support/working-time.ts";

/** What a worker did. */
export interface WorkReport {
  readonly succeeded: number;
  /** For good: it was their last attempt. */
  readonly failed: number;
  /** Set aside: no attempt can help them, or this worker found that the one of their last attempt had died. */
  readonly parked: number;
  /** Attempts that ended with an error, of tasks that have another attempt. */
  readonly putBack: number;
  /** Tasks that this worker has begun and not ended: somebody else has them, or will. */
  readonly lost: number;
  /** Whether it ran out of time. */
  readonly isUnfinished: boolean;
}

/**
 * Does the tasks of a set that can be claimed now, one after the other, and begins nothing when its time is nearly up.
 *
 * It does not wait for tasks that others are doing, nor for those that wait for their next attempt: those are for a later
 * call. What `work` throws puts the task back, to be tried again after some seconds and by any worker, until its
 * attempts are used up; a FinalFailureError parks it.
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
