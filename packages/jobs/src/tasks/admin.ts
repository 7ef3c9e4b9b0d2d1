import type { Item } from "@leasehold/client";
import {
  callStore,
  type ItemKey,
  LeaseServiceError,
  lastReleasedToken,
  unlessUnreadable,
  unreadableIn,
} from "@leasehold/client/internal";
import type { TaskDesk } from "./desk.ts";
import { endedTask } from "./ended.ts";
import { cancelTask, itemsUnder, requeueTask, unknownTask } from "./expressions.ts";
import type { checkRequeueAllOptions, RequeueTerms } from "./options.ts";
import { persist } from "./persistence.ts";
import { fenceOf, isRequeueable, readTask, stateOf, type TaskRecord, type TaskState } from "./record.ts";
import { endedTaskKey, endedTaskPrefix, openTaskKey, openTaskPrefix, taskAttributeNames } from "./schema.ts";

/** A transaction takes 100 entries, and a task two of them. */
export const tasksPerTransaction = 50;

/** A cancel begins anew where workers had the task between its read and its write; after so many times it gives up. */
const mostCancelTries = 3;

/** What people do with a set's tasks: look at them, cancel them, let them begin again. */
export class TaskAdmin {
  readonly #desk: TaskDesk;

  constructor(desk: TaskDesk) {
    this.#desk = desk;
  }

  /** Finds a task's item: 1 request for an open one, 2 for an ended one, 3 for none. */
  async find(id: string): Promise<Item | undefined> {
    const { set, context } = this.#desk;
    const item = (await this.#get(openTaskKey(set, id))) ?? (await this.#get(endedTaskKey(set, id)));
    if (item !== undefined) return item;
    // It may have moved between the two reads, and back: this looks at both places at one moment.
    const check = unknownTask({ set, id });
    const { refusals } = await persist(context, (store, call) => store.transact(check, call));
    return refusals.find((refusal) => refusal !== undefined)?.item;
  }

  async cancel(id: string, remark: string | undefined): Promise<boolean> {
    const { context } = this.#desk;
    const token = context.randomness.token();
    for (let tries = 0; tries < mostCancelTries; tries += 1) {
      const item = await this.find(id);
      if (item === undefined || stateOf(item) !== "waiting")
        return item !== undefined && stateOf(item) === "cancelled";
      const text = remark ?? String(item[taskAttributeNames.remark]);
      const ended = endedTask(this.#desk, item, undefined, "cancelled", text, token);
      const entries = cancelTask(ended, fenceOf(item));
      const result = await persist(context, (store, call) => store.transact(entries, call));
      if (result.applied || lastReleasedToken(result.refusals[1]?.item) === token) return true;
    }
    throw new LeaseServiceError(
      "LEASE_CONFLICT",
      `the task ${JSON.stringify(id)} was not cancelled: workers had it each time between its read and its write; ` +
        "cancel it again",
    );
  }

  async requeue(id: string, terms: RequeueTerms): Promise<boolean> {
    const item = await this.#get(endedTaskKey(this.#desk.set, id));
    return (
      item !== undefined && isRequeueable(stateOf(item)) && (await this.#requeueSome([item], terms)) === 1
    );
  }

  async requeueAll({ isMeant, limit, ...terms }: ReturnType<typeof checkRequeueAllOptions>): Promise<number> {
    let requeued = 0;
    let batch: Item[] = [];
    const flush = async (): Promise<void> => {
      const items = batch;
      batch = [];
      if (items.length > 0) requeued += await this.#requeueSome(items, terms);
    };
    for await (const { item, task } of this.#under(endedTaskPrefix, true)) {
      if (!isMeant(task)) continue;
      batch.push(item);
      if (batch.length < Math.min(tasksPerTransaction, limit - requeued)) continue;
      await flush();
      if (requeued >= limit) break;
    }
    await flush();
    return requeued;
  }

  /** Lets as many tasks begin again as still are as they were read; gives how many have, by this call or another. */
  async #requeueSome(items: readonly Item[], { maxAttempts, delayMs }: RequeueTerms): Promise<number> {
    const { set, context, terms } = this.#desk;
    let left = items;
    let requeued = 0;
    while (left.length > 0) {
      const entries = left.flatMap((item) => {
        const task = readTask(item);
        return requeueTask({
          set,
          id: task.id,
          payload: String(item[taskAttributeNames.payload]),
          maxAttempts: maxAttempts ?? task.maxAttempts,
          delayMs,
          seenFence: fenceOf(item) ?? 0,
          now: context.clock.now(),
          keepForMs: terms.keepForMs,
        });
      });
      const { applied, refusals } = await persist(context, (store, call) => store.transact(entries, call));
      if (applied) return requeued + left.length;
      const refusalsOf = (index: number) => [refusals[2 * index], refusals[2 * index + 1]] as const;
      // An earlier copy of this request, or somebody else's, has done it: the task is open, or has ended once more.
      requeued += left.filter((_, index) => {
        const [ended, open] = refusalsOf(index);
        return ended !== undefined && (open !== undefined || ended.item !== undefined);
      }).length;
      left = left.filter((_, index) => refusalsOf(index).every((refusal) => refusal === undefined));
    }
    return requeued;
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

  /** Goes through the tasks of a set; one that cannot be read is passed over, and told of. */
  async *#under(
    prefix: string,
    consistent: boolean,
  ): AsyncGenerator<{ readonly item: Item; readonly task: TaskRecord }, void, undefined> {
    const { set, context } = this.#desk;
    let after: ItemKey | undefined;
    do {
      const request = { ...itemsUnder(set, prefix), consistent, ...(after ? { after } : {}) };
      const page = await callStore(context, (store, call) => store.query(request, call));
      for (const item of page.items) {
        const task = unlessUnreadable(() => readTask(item), unreadableIn(context));
        if (task !== undefined) yield { item, task };
      }
      after = page.next;
    } while (after !== undefined);
  }

  #get(key: ItemKey): Promise<Item | undefined> {
    return callStore(this.#desk.context, (store, call) => store.get({ key, consistent: true }, call));
  }
}
