import type { Item, LeaseRecord } from "@leasehold/client";
import {
  type Availability,
  type Cancellation,
  type Ended,
  type Grant,
  LockForm,
  type Write,
} from "@leasehold/client/internal";
import { isExhausted } from "./ended.ts";
import { claimTask, revokeClaim, type TaskId, takeBackClaim, takeOverTask } from "./expressions.ts";
import { taskFenceOf } from "./record.ts";
import { openTaskKey } from "./schema.ts";

/**
 * The lease of one claim of a task. The write that takes it counts the attempt, and is refused without attempts left.
 */
export class TaskForm extends LockForm {
  /** The task as it was last read: a claim is refused if another worker has had it since. */
  seen: Item;
  readonly retentionMs: number;
  /** Whether another task with the same serial key kept the last try from claiming this one. */
  isKeyBusy = false;
  /** Gives the task back. Set by the claimed task. */
  endBy?: () => Promise<Ended>;
  readonly #task: TaskId;

  constructor(task: TaskId, seen: Item, keepForMs: number) {
    super(task.set, openTaskKey(task.set, task.id).sk);
    this.retentionMs = keepForMs;
    this.#task = task;
    this.seen = seen;
  }

  override acquire(grant: Grant, [passed]: readonly LeaseRecord[]): Write {
    return passed === undefined
      ? claimTask(this.#task, grant, taskFenceOf(this.seen))
      : takeOverTask(this.#task, grant, passed);
  }

  override cancel({ token, now, retentionMs }: Cancellation): Write {
    return takeBackClaim({ ...this.#task, token, now, keepForMs: retentionMs });
  }

  /** A waiting task keeps its attempts. So `cancel` does not change it, and only this write revokes the token. */
  override revoke({ token }: Cancellation): Write {
    return revokeClaim({ ...this.#task, token });
  }

  /** A task without attempts left is parked, and not taken over. */
  override judge(...asked: Parameters<LockForm["judge"]>): Availability {
    const availability = super.judge(...asked);
    const [item] = asked;
    return item !== undefined && isExhausted(item) ? { ...availability, takeovers: [] } : availability;
  }
}
