import { brandClass, LeaseError } from "@leasehold/client/internal";

/**
 * Why a worker cannot end a task.
 *
 * - `taken`: another worker has claimed the task, after this worker's claim had expired.
 * - `returned`: the task is waiting again.
 * - `ended`: the task has ended already, by an earlier call of this worker or by another worker.
 * - `gone`: the task is not in the table any more.
 */
export type TaskLostReason = "taken" | "returned" | "ended" | "gone";

const meanings: Record<TaskLostReason, string> = {
  taken: "another worker has claimed it since",
  returned: "it is waiting again",
  ended: "it has ended already",
  gone: "it is not in the table any more",
};

/**
 * Throw this from the work of {@link TaskSet.process} when no further attempt can succeed. The task is parked with
 * the message as its remark, whatever attempts are left.
 *
 * ```ts
 * const letters = new TaskSet(client, "letters/2026-11-21");
 * await letters.process(async ({ payload, signal }) => {
 *   const { address } = payload as { address?: string };
 *   if (address === undefined) throw new FinalFailureError("the letter has no address");
 *   await shop.ship(address, signal);
 * });
 * ```
 */
export class FinalFailureError extends Error {
  static {
    brandClass(FinalFailureError, "FinalFailureError");
  }
}

/** A worker has tried to end a task that it does not own any more. Nothing was changed. */
export class TaskLostError extends LeaseError {
  static {
    brandClass(TaskLostError, "TaskLostError");
  }
  /** The set's name. */
  declare readonly set: string;
  declare readonly taskId: string;
  declare readonly reason: TaskLostReason;

  constructor(set: string, taskId: string, reason: TaskLostReason, detail = "") {
    super(
      "LEASE_TASK_LOST",
      `the task ${JSON.stringify(taskId)} of ${JSON.stringify(set)} cannot be ended by this worker (${reason}): ` +
        `${meanings[reason]}${detail}; nothing was changed`,
      { set, taskId, reason },
    );
  }
}
