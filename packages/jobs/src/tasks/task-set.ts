import type { LeaseClient } from "@leasehold/client";
import {
  checkKey,
  checkKnown,
  checkText,
  Heartbeat,
  InvalidOptionsError,
  internalsOf,
  isOperational,
  Judge,
} from "@leasehold/client/internal";
import { TaskAdmin, tasksPerTransaction } from "./admin.ts";
import { ClaimAttempt } from "./claim.ts";
import type { TaskDesk } from "./desk.ts";
import { addTask } from "./expressions.ts";
import {
  checkProcessOptions,
  checkRemark,
  checkRequeueAllOptions,
  checkRequeueOptions,
  checkState,
  checkTaskSetOptions,
  checkTasks,
  checkWorkOptions,
  type ProcessOptions,
  type RequeueAllOptions,
  type RequeueOptions,
  type TaskInput,
  type TaskSetOptions,
  type TaskTerms,
  type WorkOptions,
} from "./options.ts";
import { persist } from "./persistence.ts";
import { type ProcessSummary, processTasks } from "./process.ts";
import { readTask, type TaskRecord, type TaskState } from "./record.ts";
import { taskLimits } from "./schema.ts";
import { type LookTerms, type NothingFound, placeOf, Scout } from "./scout.ts";
import { Task } from "./task.ts";
import { type TaskSource, WorkLoop } from "./work-loop.ts";

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
 * An item that cannot be read is passed over, and the client's `unreadable` event names it.
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
  readonly #admin: TaskAdmin;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, setName: string, options: TaskSetOptions = {}) {
    const { context: shared, owner, times, format } = internalsOf(client);
    const terms = checkTaskSetOptions(options, { owner, times });
    const context = { ...shared, retentionMs: terms.keepForMs };
    const judge = new Judge(context.clock, context.clockSkewMs);
    this.#desk = { set: checkKey(setName), terms, context, judge, heartbeat: new Heartbeat(context), format };
    this.#scout = new Scout(this.#desk);
    this.#admin = new TaskAdmin(this.#desk);
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
    const given = checkTasks(tasks, this.#desk.terms);
    let added = 0;
    for (let start = 0; start < given.length; start += tasksPerTransaction) {
      added += await this.#addSome(given.slice(start, start + tasksPerTransaction));
    }
    return { added, known: given.length - added };
  }

  async #addSome(tasks: readonly TaskTerms[]): Promise<number> {
    const { set, context, terms } = this.#desk;
    let left = tasks;
    while (left.length > 0) {
      const common = { set, now: context.clock.now(), keepForMs: terms.keepForMs };
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
    const found = await this.#find({ maxAgeMs: 0, consistent: true });
    return "id" in found ? found : undefined;
  }

  /** Tells of every task that it has parked on its way. */
  async #find(terms: LookTerms, onParked: () => void = () => undefined): Promise<Task | NothingFound> {
    const { lifecycle } = this.#desk.context;
    return await lifecycle.run(undefined, (signal) => this.#tryEach(terms, onParked, signal));
  }

  async #tryEach(terms: LookTerms, onParked: () => void, signal: AbortSignal): Promise<Task | NothingFound> {
    const { clock } = this.#desk.context;
    // Each is tried once at most, so that this ends whatever the others do.
    const tried = new Map<string, number>();
    for (;;) {
      const next = await this.#scout.next(tried, terms);
      if ("survey" in next) return next;
      const place = placeOf(next.item);
      const outcome = await new ClaimAttempt(this.#desk, next.item).run();
      if (outcome instanceof Task) {
        void outcome.ended.then(() => this.#scout.expect(place, outcome.claimableAt));
        return outcome;
      }
      if (outcome.isParked) onParked();
      const claimableAt = clock.monotonic() + outcome.claimableInMs;
      tried.set(place, claimableAt);
      this.#scout.expect(place, claimableAt);
      this.#scout.moveOn();
      signal.throwIfAborted();
    }
  }

  #source(onParked?: () => void): TaskSource {
    const scout = this.#scout;
    return {
      get survey() {
        return scout.survey;
      },
      find: (terms) => this.#find(terms, onParked),
    };
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
    const loop = new WorkLoop(this.#desk.context, terms, this.#source());
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
    const stop = new AbortController();
    const signal = terms.signal === undefined ? stop.signal : AbortSignal.any([terms.signal, stop.signal]);
    const loop = new WorkLoop(this.#desk.context, { ...terms, signal }, this.#source(onParked));
    const summary = await processTasks(loop, work, terms, stop);
    return { ...summary, parked: summary.parked + found };
  }

  /**
   * Gives one task as the table shows it; undefined where the set does not know it. Sees every earlier write.
   *
   * 1 request for a task that waits or runs, 2 for one that has ended, 3 for one that is not known: the third is a
   * transaction that writes nothing, and is billed as 4 write units.
   */
  async get(id: string): Promise<TaskRecord | undefined> {
    checkText("id", id, taskLimits.idBytes);
    const item = await this.#admin.find(id);
    return item && readTask(item);
  }

  /**
   * Cancels a task that waits, also one that waits for its next attempt: no worker claims it any more, and adding its id
   * again changes nothing. `requeue` lets it begin after all.
   *
   * Resolves to whether it is cancelled, by this call or an earlier one; false where it is running, has ended otherwise
   * or is not known: nothing was changed then. To stop a task that runs, break its claim (`client.forceRelease`), and
   * cancel it once it waits. The remark is kept with it; without one, the last attempt's is. 2 requests, and 2 more each
   * time a worker has had the task in between.
   */
  async cancel(id: string, remark?: string): Promise<boolean> {
    checkText("id", id, taskLimits.idBytes);
    return await this.#admin.cancel(id, remark === undefined ? undefined : checkRemark(remark));
  }

  /**
   * Lets a task that has failed, was parked or was cancelled begin again, with all its attempts. Its fencing tokens go on.
   *
   * 2 requests. Resolves to false where the task has not ended so.
   */
  async requeue(id: string, options: RequeueOptions = {}): Promise<boolean> {
    checkText("id", id, taskLimits.idBytes);
    return await this.#admin.requeue(id, checkRequeueOptions(options));
  }

  /**
   * Lets many tasks begin again, each as `requeue` does: those that have failed or were parked, or those of one state.
   *
   * Resolves to how many are open again, by this call or by another at the same time. Goes through the ended tasks once, in
   * the order of their ids: 1 request for about 1 MB of them, and 1 for every 50 that begin again. Where it rejects, for
   * the service or because `filter` throws, some may have begun again: call it once more.
   *
   * ```ts
   * const letters = new TaskSet(client, "letters/2026-11-21");
   * const requeued = await letters.requeueAll({
   *   state: "failed",
   *   filter: ({ remark }) => remark.includes("ECONNREFUSED"),
   *   limit: 1_000,
   * });
   * ```
   */
  async requeueAll(options: RequeueAllOptions = {}): Promise<number> {
    return await this.#admin.requeueAll(checkRequeueAllOptions(options));
  }

  /** Counts the tasks of each state. Reads them all, 1 request for about 1 MB: for people, not for hot paths. */
  async counts(): Promise<Readonly<Record<TaskState, number>>> {
    const counts = { waiting: 0, running: 0, succeeded: 0, failed: 0, parked: 0, cancelled: 0 };
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
    yield* this.#admin.list(checkState(options.state));
  }
}

/** A task that cannot be failed now returns when its claim runs out. */
async function closeLeftOpen(task: Task): Promise<void> {
  if (await task.settled()) return;
  try {
    await task.fail(leftOpenRemark);
  } catch (error) {
    task.abandon();
    if (!isOperational(error)) throw error;
  }
}
