import { brandClass, LeaseError } from "@leasehold/client/internal";

/**
 * Why a task is not its worker's to end.
 *
 * - `taken`: another worker has claimed it, after this one's claim ran out.
 * - `returned`: it is waiting again.
 * - `ended`: it has ended already, by this worker's own earlier call or by another worker.
 * - `gone`: it is not in the table any more.
 */
export type TaskLostReason = "taken" | "returned" | "ended" | "gone";

const meanings: Record<TaskLostReason, string> = {
  taken: "another worker has claimed it since",
  returned: "it is waiting again",
  ended: "it has ended already",
  gone: "it is not in the table any more",
};

/**
 * Work of {@link TaskSet.process} throws this where no further attempt can succeed: its task is parked, however many
 * attempts are left, with the message as its remark.
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
  override readonly name: string = "FinalFailureError";
}

/** A worker ends a task that it does not own any more. Nothing was changed. */
export class TaskLostError extends LeaseError {
  static {
    brandClass(TaskLostError, "TaskLostError");
  }
  override readonly name: string = "TaskLostError";
  /** The set's name. */
  readonly set: string;
  readonly taskId: string;
  readonly reason: TaskLostReason;

  constructor(set: string, taskId: string, reason: TaskLostReason, detail = "") {
    super(
      "LEASE_TASK_LOST",
      `the task ${JSON.stringify(taskId)} of ${JSON.stringify(set)} is not this worker's to end (${reason}): ` +
        `${meanings[reason]}${detail}; nothing was changed`,
    );
    this.set = set;
    this.taskId = taskId;
    this.reason = reason;
  }
}
