import type { Item } from "@leasehold/client";
import {
  type ItemKey,
  LeaseServiceError,
  lastReleasedToken,
  pagesOf,
  query,
  traceNow,
  transact,
  unlessUnreadable,
  unreadableIn,
  type Write,
} from "@leasehold/client/internal";
import { cancelTask, endedTask, itemsUnder, requeueTask, unknownTask } from "./expressions.ts";
import type { checkRequeueAllOptions, RequeueTerms } from "./options.ts";
import {
  isRequeueable,
  readTask,
  type TaskRecord,
  type TaskState,
  taskFenceOf,
  taskStateOf,
} from "./record.ts";
import { endedTaskKey, endedTaskPrefix, openTaskKey, openTaskPrefix, taskAttributeNames } from "./schema.ts";
import type { TaskContext } from "./task-context.ts";
import { callWithRetry } from "./task-context.ts";

/** What operators do with a set's tasks: read, cancel and requeue them. */
export class TaskAdmin {
  readonly #context: TaskContext;

  constructor(context: TaskContext) {
    this.#context = context;
  }

  /** Finds a task's item: 1 request for an open task, 2 for an ended one, 3 for an unknown one. */
  async find(id: string): Promise<Item | undefined> {
    const { set } = this.#context;
    const item = (await this.#get(openTaskKey(set, id))) ?? (await this.#get(endedTaskKey(set, id)));
    if (item !== undefined) return item;
    // The task may have moved between the two reads, and back: this looks at both items at one moment.
    const check = unknownTask({ set, id });
    const { core } = this.#context;
    const { refusals } = await callWithRetry(core, () => transact(core, check));
    return refusals.find((refusal) => refusal !== undefined)?.item;
  }

  async cancel(id: string, remark: string | undefined, by: string | undefined): Promise<boolean> {
    const context = this.#context;
    const { core } = context;
    const token = core.randomness.token();
    for (let tries = 0; tries < mostCancelTries; tries += 1) {
      const item = await this.find(id);
      if (item === undefined || taskStateOf(item) !== "waiting")
        return item !== undefined && taskStateOf(item) === "cancelled";
      const text = remark ?? String(item[taskAttributeNames.remark]);
      const ended = endedTask(context, item, undefined, "cancelled", text, token);
      const trace = this.#traceOf("cancel", id, { by, reason: remark });
      const writes = [...cancelTask(ended, taskFenceOf(item)), ...trace];
      const result = await callWithRetry(core, () => transact(core, writes));
      if (result.applied || lastReleasedToken(result.refusals[1]?.item) === token) return true;
    }
    throw new LeaseServiceError(
      "LEASE_CONFLICT",
      `the task ${JSON.stringify(id)} was not cancelled: each time, a worker had it between the read and the write; ` +
        "cancel it again",
    );
  }

  async requeue(id: string, terms: RequeueTerms): Promise<boolean> {
    const item = await this.#get(endedTaskKey(this.#context.set, id));
    return (
      item !== undefined && isRequeueable(taskStateOf(item)) && (await this.#requeueSome([item], terms)) === 1
    );
  }

  async requeueAll({
    isSelected,
    limit,
    ...terms
  }: ReturnType<typeof checkRequeueAllOptions>): Promise<number> {
    let requeued = 0;
    let batch: Item[] = [];
    const flush = async (): Promise<void> => {
      const items = batch;
      batch = [];
      requeued += await this.#requeueSome(items, terms);
    };
    const most = terms.by === undefined ? tasksPerTransaction : tracedTasksPerTransaction;
    for await (const { item, task } of this.#under(endedTaskPrefix, true)) {
      if (!isSelected(task)) continue;
      batch.push(item);
      if (batch.length < Math.min(most, limit - requeued)) continue;
      await flush();
      if (requeued >= limit) break;
    }
    await flush();
    return requeued;
  }

  /**
   * Requeues the tasks that have not changed since they were read; gives how many are requeued, by this call or
   * another.
   */
  async #requeueSome(items: readonly Item[], given: RequeueTerms): Promise<number> {
    const context = this.#context;
    const { core, set, terms } = context;
    const { maxAttempts, delayMs, by } = given;
    const writesPerTask = by === undefined ? 2 : 3;
    let left = items;
    let requeued = 0;
    while (left.length > 0) {
      const writes = left.flatMap((item) => {
        const task = readTask(item);
        const requeueing = requeueTask({
          set,
          id: task.id,
          payload: String(item[taskAttributeNames.payload]),
          serialKey: task.serialKey,
          maxAttempts: maxAttempts ?? task.maxAttempts,
          delayMs,
          seenFence: taskFenceOf(item) ?? 0,
          now: core.clock.now(),
          keepForMs: terms.keepForMs,
        });
        return [...requeueing, ...this.#traceOf("requeue", task.id, given)];
      });
      const { applied, refusals } = await callWithRetry(core, () => transact(core, writes));
      if (applied) return requeued + left.length;
      const refusalsOf = (index: number) =>
        [refusals[writesPerTask * index], refusals[writesPerTask * index + 1]] as const;
      // An earlier copy of this request, or another caller's, has done it: the task is open, or has ended once more.
      requeued += left.filter((_, index) => {
        const [ended, open] = refusalsOf(index);
        return ended !== undefined && (open !== undefined || ended.item !== undefined);
      }).length;
      left = left.filter((_, index) => refusalsOf(index).every((refusal) => refusal === undefined));
    }
    return requeued;
  }

  /** The trace of an action on an ended task, in the same transaction; none without `by`. */
  #traceOf(
    action: "requeue" | "cancel",
    id: string,
    { by, reason }: { readonly by: string | undefined; readonly reason: string | undefined },
  ): readonly Write[] {
    const context = this.#context;
    const what = { key: context.set, sortKey: endedTaskPrefix + id, action, reason };
    return by === undefined ? [] : [traceNow(context.core, { ...what, by })];
  }

  async *list(state: TaskState | undefined): AsyncGenerator<TaskRecord, void, undefined> {
    const isOpen = state === "waiting" || state === "running";
    const prefixes =
      state === undefined ? [openTaskPrefix, endedTaskPrefix] : [isOpen ? openTaskPrefix : endedTaskPrefix];
    for (const prefix of prefixes) {
      for await (const { task } of this.#under(prefix, false)) {
        if (state === undefined || task.state === state) yield task;
      }
    }
  }

  /** Yields the tasks of a set. Leaves out and reports an unreadable task. */
  async *#under(
    prefix: string,
    consistent: boolean,
  ): AsyncGenerator<{ readonly item: Item; readonly task: TaskRecord }, void, undefined> {
    const context = this.#context;
    const { core, set } = context;
    const request = { ...itemsUnder(set, prefix), consistent };
    for await (const { items } of pagesOf((after) => query(core, { ...request, ...after }))) {
      for (const item of items) {
        const task = unlessUnreadable(() => readTask(item), unreadableIn(core));
        if (task !== undefined) yield { item, task };
      }
    }
  }

  #get(key: ItemKey): Promise<Item | undefined> {
    return this.#context.core.get({ key, consistent: true });
  }
}

/** A transaction has up to 100 entries, and a task needs two. */
export const tasksPerTransaction = 50;
/** With a trace, a task needs three. */
const tracedTasksPerTransaction = 33;

/** A cancel starts again when a worker had the task between its read and its write. After this many times it gives up. */
const mostCancelTries = 3;
