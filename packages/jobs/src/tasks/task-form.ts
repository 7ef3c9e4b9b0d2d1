import type { Item, LeaseRecord, UpdateResult } from "@leasehold/client";
import {
  type Availability,
  attributeNames,
  type CallBudget,
  type Cancellation,
  type Core,
  type Ended,
  type Grant,
  LockForm,
  optionalTextIn,
  readRecord,
  sortKeyOf,
  transact,
  type Write,
} from "@leasehold/client/internal";
import {
  claimSerialKey,
  claimTask,
  revokeClaim,
  type TaskId,
  takeBackClaim,
  takeOverTask,
} from "./expressions.ts";
import { isExhausted, taskFenceOf } from "./record.ts";
import { openTaskKey, serialKeyItemKey, taskAttributeNames, taskIdOf } from "./schema.ts";
import type { TaskContext } from "./task-context.ts";

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
  readonly task: TaskId;

  constructor(task: TaskId, seen: Item, keepForMs: number) {
    super(task.set, openTaskKey(task.set, task.id).sk);
    this.retentionMs = keepForMs;
    this.task = task;
    this.seen = seen;
  }

  override acquire(grant: Grant, [passed]: readonly LeaseRecord[]): Write {
    return passed === undefined
      ? claimTask(this.task, grant, taskFenceOf(this.seen))
      : takeOverTask(this.task, grant, passed);
  }

  override cancel({ token, now, retentionMs }: Cancellation): Write {
    return takeBackClaim({ ...this.task, token, now, keepForMs: retentionMs });
  }

  /** A waiting task keeps its attempts. So `cancel` does not change it, and only this write revokes the token. */
  override revoke({ token }: Cancellation): Write {
    return revokeClaim({ ...this.task, token });
  }

  /** A task without attempts left is parked, and not taken over. */
  override judge(...asked: Parameters<LockForm["judge"]>): Availability {
    const availability = super.judge(...asked);
    const [item] = asked;
    return item !== undefined && isExhausted(item) ? { ...availability, takeovers: [] } : availability;
  }
}

/**
 * The lease of one claim of a task with a serial key. It is taken in a transaction, which is refused while a worker has
 * the task of that key that was claimed last.
 */
export class SerialTaskForm extends TaskForm {
  readonly #core: Core;
  readonly #serialKey: string;
  /** The item that has refused the last try: a takeover is from the record that it shows. */
  #refusing: Item = {};

  constructor({ core, set, terms }: TaskContext, seen: Item, serialKey: string) {
    super({ set, id: taskIdOf(sortKeyOf(seen)) }, seen, terms.keepForMs);
    this.#core = core;
    this.#serialKey = serialKey;
  }

  /**
   * 1 read of the key's item, and 1 transaction of at most three writes. 1 read more for a task that a worker had when it
   * was seen.
   */
  async acquireBy(grant: Grant, passed: readonly LeaseRecord[], budget: CallBudget): Promise<UpdateResult> {
    const { set, id } = this.task;
    const serialKey = this.#serialKey;
    if (passed.length === 0 && readRecord(this.seen) !== undefined) {
      // Its worker may have returned it since, which changes its attempts and its remark, and not its fencing token.
      const item = await this.#core.get({ key: openTaskKey(set, id), consistent: true }, budget);
      if (item === undefined || readRecord(item) !== undefined) {
        this.#refusing = item ?? {};
        return { applied: false, item, retried: false };
      }
      this.seen = item;
    }
    const request = { key: serialKeyItemKey(set, serialKey), consistent: true };
    const named = (await this.#core.get(request, budget)) ?? {};
    const before = passed.length === 0 ? this.seen : this.#refusing;
    const { acquiredAt: now } = grant;
    // Larger than that of each earlier claim, of this task and of the others with its key.
    const fencingToken = Math.max(taskFenceOf(before) ?? now, taskFenceOf(named) ?? 0) + 1;
    const seenTask = optionalTextIn(named, taskAttributeNames.lastTask);
    const beside = claimSerialKey({ set, id, serialKey }, { now, fencingToken }, seenTask);
    const claim = this.acquire({ ...grant, fencingToken }, passed);
    const { applied, refusals, retried } = await transact(this.#core, [claim, ...beside], budget);
    if (applied) return { applied, item: claimed(before, grant, fencingToken), retried };
    const [refusal] = refusals;
    this.isKeyBusy = refusal === undefined;
    this.#refusing = refusal?.item ?? {};
    return { applied, item: refusal?.item, retried };
  }
}

/**
 * What a claim has made of an item. A transaction brings no item, but it insists on the item's fencing token: a task that
 * waits, or a judged record, is otherwise as it was seen.
 */
function claimed(before: Item, grant: Grant, fencingToken: number): Item {
  const { token, version, owner, acquiredAt, expiresAt, leaseDurationMs, fence, ownClock, revocation } =
    attributeNames;
  const { attempts } = taskAttributeNames;
  const { [revocation]: _, [ownClock]: __, ...kept } = before;
  return {
    ...kept,
    [token]: grant.token,
    [version]: grant.version,
    [owner]: grant.owner,
    [acquiredAt]: grant.acquiredAt,
    [expiresAt]: grant.expiresAt,
    [leaseDurationMs]: grant.leaseDurationMs,
    [fence]: fencingToken,
    [attempts]: Number(before[attempts]) + 1,
  };
}
