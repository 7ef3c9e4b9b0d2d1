import type { LeaseClient } from "../client.ts";
import { InvalidOptionsError } from "../errors.ts";
import { addTask, itemsUnder, requeueTask } from "../expressions-tasks.ts";
import { internalsOf } from "../internals.ts";
import { callStore } from "../protocol/context.ts";
import { Heartbeat } from "../protocol/heartbeat.ts";
import { Judge } from "../protocol/judge.ts";
import { attributeNames, type ItemKey } from "../schema.ts";
import {
  endedTaskKey,
  endedTaskPrefix,
  openTaskPrefix,
  taskAttributeNames,
  taskLimits,
} from "../schema-tasks.ts";
import type { Item } from "../store.ts";
import { checkKey, checkKnown, checkText } from "../validation.ts";
import { ClaimAttempt } from "./claim.ts";
import type { TaskDesk } from "./desk.ts";
import {
  checkProcessOptions,
  checkState,
  checkTaskSetOptions,
  checkTasks,
  checkWorkOptions,
  type ProcessOptions,
  type TaskInput,
  type TaskSetOptions,
  type WorkOptions,
} from "./options.ts";
import { persist } from "./persistence.ts";
import { type ProcessSummary, processTasks } from "./process.ts";
import { readTask, type TaskRecord, type TaskState } from "./record.ts";
import { type NothingFound, placeOf, Scout } from "./scout.ts";
import type { Task } from "./task.ts";
import { WorkLoop } from "./work-loop.ts";

/** A transaction takes 100 entries, and a task two of them. */
const tasksPerTransaction = 50;

/** What a task is given back with that the body of a loop has neither ended nor released. */
const leftOpenRemark = "left open by its worker";

/**
 * A set of tasks, each of which is done once among many workers.
 *
 * Promised: a task that has succeeded is never claimed again while the table remembers it (`keepForMs`); at most one
 * unexpired claim for each task while clocks differ by no more than the client's `clockSkewMs`; a worker that does not
 * own a task any more changes nothing; a task is claimed no more than `maxAttempts` times. Not promised: an order, or
 * that the work of a worker that was lost left no trace: fence its writes ({@link Task.fence}).
 *
 * A task costs 2 requests, the claim and the ending, and a share of a look: 1 for about 32 open tasks. A set is one
 * partition of DynamoDB's: about 200 small tasks a second. Every method rejects with InvalidOptionsError before it
 * sends anything, and with the errors of a {@link LeaseClient}.
 *
 * ```ts
 * const files = new TaskSet(client, "import/2026-11-21");
 * await files.add([{ id: "orders.csv", payload: { rows: 1200 } }, { id: "prices.csv" }]);
 * await files.process((task) => importFile(task.id, { signal: task.signal }), { concurrency: 4 });
 * ```
 */
export class TaskSet {
  readonly #desk: TaskDesk;
  readonly #scout: Scout;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, setName: string, options: TaskSetOptions = {}) {
    const { context: shared, owner, times, format } = internalsOf(client);
    const terms = checkTaskSetOptions(options, { owner, times });
    const context = { ...shared, retentionMs: terms.keepForMs };
    const judge = new Judge(context.clock, context.clockSkewMs);
    this.#desk = { set: checkKey(setName), terms, context, judge, heartbeat: new Heartbeat(context), format };
    this.#scout = new Scout(this.#desk);
  }

  /** The set's name. */
  get name(): string {
    return this.#desk.set;
  }

  /**
   * Adds those of the tasks whose ids the set does not know yet, whatever their state; the others stay as they are.
   *
   * 1 request for every 50 tasks; 1 more for those of the 50 that are new where others are known. Where it rejects for
   * the service, some may have been added: call it again.
   */
  async add(tasks: readonly TaskInput[]): Promise<{ readonly added: number; readonly known: number }> {
    const given = checkTasks(tasks);
    let added = 0;
    for (let start = 0; start < given.length; start += tasksPerTransaction) {
      added += await this.#addSome(given.slice(start, start + tasksPerTransaction));
    }
    return { added, known: given.length - added };
  }

  async #addSome(tasks: readonly { readonly id: string; readonly payload: string }[]): Promise<number> {
    const { set, context, terms } = this.#desk;
    let left = tasks;
    while (left.length > 0) {
      const common = {
        set,
        maxAttempts: terms.maxAttempts,
        now: context.clock.now(),
        keepForMs: terms.keepForMs,
      };
      const entries = left.flatMap((task) => addTask({ ...common, ...task }));
      const result = await persist(context, (store, call) => store.transact(entries, call));
      if (result.applied) return left.length;
      const isKnown = (index: number): boolean =>
        result.refusals[2 * index] !== undefined || result.refusals[2 * index + 1] !== undefined;
      left = left.filter((_, index) => !isKnown(index));
    }
    return 0;
  }

  /**
   * Claims a task that waits, or one whose worker was lost; undefined where none can be claimed now.
   *
   * 1 request, and now and then 1 to look for tasks; 1 more for each that another worker was quicker with. The
   * attempt counts from here: a worker that dies before it begins has used one up.
   */
  async claim(): Promise<Task | undefined> {
    const found = await this.#find();
    return "id" in found ? found : undefined;
  }

  /** Tells of every task that it has parked on its way. */
  async #find(onParked: () => void = () => undefined): Promise<Task | NothingFound> {
    // Each is tried once at most, so that this ends whatever the others do.
    const tried = new Set<string>();
    for (;;) {
      const next = await this.#scout.next(tried);
      if ("isDrained" in next) return next;
      const { item } = next;
      tried.add(placeOf(item));
      const outcome = await new ClaimAttempt(this.#desk, item).run();
      if (typeof outcome === "object") return outcome;
      if (outcome === "parked") onParked();
      this.#scout.moveOn();
    }
  }

  /**
   * Goes through the set's tasks with a loop.
   *
   * With a `concurrency` of 1, a task that the body has left open when it asks for the next one, leaves the loop or
   * throws is failed with the remark "left open by its worker": it waits for its next attempt if one is left. With
   * more, the body starts its work without waiting for it, and the loop gives the next task when fewer than that many
   * are open; when it ends by itself it waits for those that are, and when it is left they are failed likewise.
   *
   * ```ts
   * const files = new TaskSet(client, "import/2026-11-21");
   * for await (const task of files.work({ pauseMs: 100 })) {
   *   if (task.attempt > 1) await task.fail("left for a person", { retryAfterMs: 3_600_000 });
   *   else await importFile(task.id, { signal: task.signal }).then(() => task.succeed("imported"));
   * }
   * ```
   */
  async *work(options: WorkOptions = {}): AsyncGenerator<Task, void, undefined> {
    const terms = checkWorkOptions(options);
    const loop = new WorkLoop(this.#desk.context, terms, () => this.#find());
    const open = new Set<Task>();
    try {
      for (;;) {
        const task = await loop.next();
        if (task === undefined) break;
        open.add(task);
        void task.ended.then(() => open.delete(task));
        loop.occupy(task.ended);
        yield task;
        if (terms.concurrency === 1) await closeLeftOpen(task);
      }
      await loop.idle();
    } finally {
      await Promise.all([...open].map(closeLeftOpen));
    }
  }

  /**
   * Does the work of every task: what it resolves to, if that is a text, becomes the remark of its success; what it
   * throws becomes the remark of its failure, cut to 1,024 bytes. With a FinalFailureError the task is parked at once,
   * however many attempts are left.
   *
   * Work that has ended its task itself is left at that. Work that is cut off by the caller's own `signal`, which it
   * shows by throwing that signal's reason, has its task released. Resolves when the loop is over and all work has
   * settled. A task whose ending the service does not confirm counts as lost: another worker does it again.
   */
  async process(
    work: (task: Task) => Promise<unknown> | unknown,
    options: ProcessOptions = {},
  ): Promise<ProcessSummary> {
    if (typeof work !== "function") throw new InvalidOptionsError("work", work, "a function of the task");
    const terms = checkProcessOptions(options);
    let found = 0;
    const onParked = (): void => {
      found += 1;
    };
    const loop = new WorkLoop(this.#desk.context, terms, () => this.#find(onParked));
    const summary = await processTasks(loop, work, terms);
    return { ...summary, parked: summary.parked + found };
  }

  /** Counts the tasks of each state. Reads them all, 1 request for about 1 MB: for people, not for hot paths. */
  async counts(): Promise<Readonly<Record<TaskState, number>>> {
    const counts = { waiting: 0, running: 0, succeeded: 0, failed: 0, parked: 0 };
    for await (const { state } of this.list()) counts[state] += 1;
    return counts;
  }

  /**
   * Goes through the tasks, of one state or of all, by pages as they are wanted. Ended ones come in the order of their
   * ids, open ones in none. 1 request for about 1 MB; open tasks are read without the ended ones, and the other way
   * round. May lag a moment behind, and miss a task that ends meanwhile.
   */
  async *list(options: { readonly state?: TaskState } = {}): AsyncGenerator<TaskRecord, void, undefined> {
    checkKnown(options, ["state"], "options");
    const state = checkState(options.state);
    const isOpen = state === "waiting" || state === "running";
    const prefixes =
      state === undefined ? [openTaskPrefix, endedTaskPrefix] : [isOpen ? openTaskPrefix : endedTaskPrefix];
    for (const prefix of prefixes) {
      for await (const item of this.#under(prefix)) {
        const task = readTask(item);
        if (state === undefined || task.state === state) yield task;
      }
    }
  }

  async *#under(prefix: string): AsyncGenerator<Item, void, undefined> {
    const { set, context } = this.#desk;
    let after: ItemKey | undefined;
    do {
      const request = { ...itemsUnder(set, prefix), consistent: false, ...(after ? { after } : {}) };
      const page = await callStore(context, (store, call) => store.query(request, call));
      yield* page.items;
      after = page.next;
    } while (after !== undefined);
  }

  /**
   * Lets a task that has failed or was parked begin again, with all its attempts. Its fencing tokens go on.
   *
   * 2 requests. Resolves to false where the task has not ended so.
   */
  async requeue(id: string): Promise<boolean> {
    checkText("id", id, taskLimits.idBytes);
    const { set, context, terms } = this.#desk;
    const key = endedTaskKey(set, id);
    const item = await callStore(context, (store, call) => store.get({ key, consistent: true }, call));
    const { state } = item === undefined ? {} : readTask(item);
    if (item === undefined || (state !== "failed" && state !== "parked")) return false;
    const entries = requeueTask({
      set,
      id,
      payload: String(item[taskAttributeNames.payload]),
      maxAttempts: terms.maxAttempts,
      fencingToken: Number(item[attributeNames.fence]),
      now: context.clock.now(),
      keepForMs: terms.keepForMs,
    });
    const result = await persist(context, (store, call) => store.transact(entries, call));
    // An earlier copy of this request, or somebody else's, has done it: the task is open.
    return result.applied || (result.refusals[0]?.item === undefined && result.refusals[1] !== undefined);
  }
}

/** A task that cannot be failed now returns when its claim runs out. */
async function closeLeftOpen(task: Task): Promise<void> {
  if (await task.settled()) return;
  await task.fail(leftOpenRemark).catch(() => task.abandon());
}
