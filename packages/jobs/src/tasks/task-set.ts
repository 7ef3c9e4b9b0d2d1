import type {
  ConditionCheckOptions,
  LeaseClient,
  LeaseTransactItem,
  TransactionResult,
} from "@leasehold/client";
import {
  check,
  checkKey,
  checkOptions,
  checkText,
  coreOf,
  InvalidOptionsError,
  isOperational,
  LeaseError,
  readable,
  sortKeyOf,
  transact,
  type Write,
  whileOpen,
} from "@leasehold/client/internal";
import { entriesOf, formatOf } from "../own-transaction.ts";
import { type TraceOptions, traceRules } from "../trace.ts";
import { TaskAdmin, tasksPerTransaction } from "./admin.ts";
import { ClaimAttempt, ClaimRate } from "./claim-attempt.ts";
import { addTask, mostBehindMs } from "./expressions.ts";
import {
  checkListOptions,
  checkProcessOptions,
  checkRemark,
  checkRequeueAllOptions,
  checkRequeueOptions,
  checkTaskSetOptions,
  checkTasks,
  checkWorkOptions,
  type RequeueAllOptions,
  type RequeueOptions,
  type TaskInput,
  type TaskSetOptions,
  type TaskTerms,
  type WorkerOptions,
  type WorkTerms,
} from "./options.ts";
import type { RateUsedUp, TaskSource } from "./polled-set.ts";
import { readTask, serialKeyOf, type TaskRecord, type TaskState } from "./record.ts";
import { serialKeyItemKey, taskAttributeNames, taskLimits } from "./schema.ts";
import { Task } from "./task.ts";
import type { TaskContext } from "./task-context.ts";
import { callWithRetry } from "./task-context.ts";
import { type FindTerms, type NothingFound, TaskFinder } from "./task-finder.ts";
import { listenToAdds, type ProcessSummary, processTasks, tellOfAdd, Worker } from "./worker.ts";

/** Options of {@link TaskSet.work}. */
export interface WorkOptions extends WorkerOptions {
  /**
   * Sets whose tasks come first, the most urgent first: the worker claims a task of this set when it finds none there.
   * It looks there as often as `pollMs` says, so an empty set costs little. `until` is about all sets. @default - none
   */
  readonly moreUrgent?: readonly TaskSet[];
}

/** Options of {@link TaskSet.process}. */
export interface ProcessOptions extends WorkOptions {
  /** How long a task waits after its work has failed, in milliseconds. @default - the set's `backoff` */
  readonly retryAfterMs?: number;
}

/**
 * A set of tasks for many workers, which does each task once.
 *
 * Promised:
 * - A task that has succeeded is never claimed again while the table remembers it (`keepForMs`).
 * - A task has at most one unexpired claim, while clocks differ by no more than the client's `clockSkewMs`.
 * - A worker that does not own a task any more changes nothing.
 * - A task is claimed at most `maxAttempts` times.
 * - Of the tasks with one `serialKey`, at most one has a claim.
 *
 * Not promised: an order. Nor that a lost worker has changed nothing before it was lost: fence its writes
 * ({@link Task.fence}).
 *
 * An unreadable item is left out, and the client's `unreadable` event names it.
 *
 * A task costs 2 requests, one to claim it and one to end it, and its share of a query: 1 for about 32 open tasks. A
 * set is one partition in DynamoDB: about 200 small tasks a second. Every method rejects with InvalidOptionsError
 * before it sends anything, and with the errors of a {@link LeaseClient}.
 *
 * ```ts
 * const files = new TaskSet(client, "import/2026-11-21");
 * await files.add([{ id: "orders.csv", payload: { rows: 1200 } }, { id: "prices.csv" }]);
 * await files.process((task) => importFile(task.id, { signal: task.signal }), { concurrency: 4 });
 * ```
 */
export class TaskSet {
  readonly #context: TaskContext;
  readonly #finder: TaskFinder;
  readonly #admin: TaskAdmin;
  readonly #rate: ClaimRate | undefined;

  /** Throws InvalidOptionsError. Sends nothing. */
  constructor(client: LeaseClient, setName: string, options: TaskSetOptions = {}) {
    const core = coreOf(client);
    const terms = checkTaskSetOptions(options, core);
    this.#context = { core, set: checkKey(setName), terms };
    this.#finder = new TaskFinder(this.#context);
    this.#admin = new TaskAdmin(this.#context);
    this.#rate = terms.rate && new ClaimRate(this.#context, terms.rate);
  }

  /** The set's name. */
  get name(): string {
    return this.#context.set;
  }

  /**
   * Adds the tasks whose ids are new to the set. Tasks that the set knows stay as they are, whatever their state.
   *
   * 1 request for every 50 tasks, and 1 more when some of the 50 are known and others are not. When it rejects because of
   * the service, some tasks may have been added: call it again. Workers of the same client look for them at once.
   */
  async add(tasks: readonly TaskInput[]): Promise<{ readonly added: number; readonly known: number }> {
    const given = checkTasks(tasks, this.#context.terms);
    let added = 0;
    for (let start = 0; start < given.length; start += tasksPerTransaction) {
      added += await this.#addSome(given.slice(start, start + tasksPerTransaction));
    }
    if (added > 0 && given.some(({ delayMs }) => delayMs === 0)) tellOfAdd(this.#context.core, this.name);
    return { added, known: given.length - added };
  }

  async #addSome(tasks: readonly TaskTerms[]): Promise<number> {
    const { core } = this.#context;
    let left = tasks;
    while (left.length > 0) {
      const now = core.clock.now();
      const writes = this.#additions(left, now);
      let mayHaveLanded = false;
      const send = (): Promise<TransactionResult> =>
        transact(core, writes).catch((error: unknown) => {
          mayHaveLanded ||= error instanceof LeaseError && error.mayHaveLanded;
          throw error;
        });
      const { applied, refusals } = await callWithRetry(core, send);
      const known = left.map((_, index) => refusals[2 * index] ?? refusals[2 * index + 1]);
      // An earlier copy has added all of them, and another caller would have done so at another time.
      const areOwn = known.every((refusal) => refusal?.item?.[taskAttributeNames.addedAt] === now);
      if (applied || (mayHaveLanded && areOwn)) return left.length;
      left = left.filter((_, index) => known[index] === undefined);
    }
    return 0;
  }

  #additions(tasks: readonly TaskTerms[], now: number): Write[] {
    const { core, set, terms } = this.#context;
    // Before the first answer, this machine's clock may be slow, and ttl must not remove what nobody has done.
    const keepForMs = terms.keepForMs + (core.clock.isTold ? 0 : mostBehindMs);
    return tasks.flatMap((task) => addTask({ set, now, keepForMs, ...task }));
  }

  /**
   * Gives the entries that add tasks in your own transaction: your writes and the tasks happen together, or not at all.
   * 2 entries a task, so at most 50 tasks. A transaction that adds a task whose id the set knows is cancelled
   * (ConditionalCheckFailed): give a task the id of what causes it, and a repeated transaction adds it once. Sends
   * nothing. Throws InvalidOptionsError.
   *
   * ```ts
   * const letters = new TaskSet(client, "letters");
   * const order = { Put: { TableName: "orders", Item: { id: "42", state: "paid" } } };
   * const entries = letters.addEntries([{ id: "paid/42", payload: { to: "c-1" } }]);
   * await documents.send(new TransactWriteCommand({ TransactItems: [order, ...entries] }));
   * ```
   */
  addEntries(tasks: readonly TaskInput[], options: ConditionCheckOptions = {}): LeaseTransactItem[] {
    const { core, terms } = this.#context;
    const given = checkTasks(tasks, terms);
    const most = tasksPerTransaction;
    check(
      given.length <= most,
      "tasks",
      `${given.length} tasks`,
      `at most ${most}, as many as a transaction takes`,
    );
    const format = formatOf(core, options);
    return entriesOf(core, this.#additions(given, core.clock.now()), format);
  }

  /**
   * Claims a task that is waiting, or one whose worker was lost. Resolves to undefined when no task can be claimed now.
   *
   * 1 request, 1 more for each task that another worker has claimed first, and sometimes 1 to query for tasks. The claim
   * counts as an attempt, also when the worker dies before it begins the work. With a `rate`, 1 request more.
   */
  async claim(): Promise<Task | undefined> {
    const found = await this.#find({ maxAgeMs: 0, consistent: true });
    return "id" in found ? found : undefined;
  }

  /** Finds a task and claims it; calls `onParked` for each task that it has parked on the way. */
  async #find(
    terms: FindTerms,
    onParked: () => void = () => undefined,
  ): Promise<Task | NothingFound | RateUsedUp> {
    const { lifecycle } = this.#context.core;
    return await whileOpen(lifecycle, terms.signal, (signal) =>
      this.#tryEach({ ...terms, signal }, onParked),
    );
  }

  async #tryEach(terms: FindTerms, onParked: () => void): Promise<Task | NothingFound | RateUsedUp> {
    const { clock } = this.#context.core;
    // Each task is tried at most once, so this ends whatever other workers do.
    const tried = new Map<string, number>();
    let isCounted = false;
    for (;;) {
      const next = await this.#finder.next(tried, terms);
      if ("snapshot" in next) return next;
      const sortKey = sortKeyOf(next.item);
      const remember = (error: unknown): never => {
        // The failure may pass, and the task is still due.
        this.#finder.expect(sortKey, clock.monotonic());
        throw error;
      };
      const waitMs = isCounted ? 0 : ((await this.#rate?.take().catch(remember)) ?? 0);
      if (waitMs > 0) {
        this.#finder.putBack(next.item);
        return { rateUsedUpForMs: waitMs };
      }
      const serialKey = serialKeyOf(next.item);
      const attempt = new ClaimAttempt(this.#context, next.item);
      const outcome = await attempt.run().catch(remember);
      if (outcome instanceof Task) {
        void outcome.ended.then(() => {
          this.#finder.expect(sortKey, outcome.claimableAt);
          if (serialKey !== undefined) this.#finder.free(serialKey);
        });
        return outcome;
      }
      // A claim that was not made leaves its place to the next one.
      isCounted = !attempt.mayHaveLanded;
      if (outcome.isParked) onParked();
      if (outcome.isParked && serialKey !== undefined) this.#finder.free(serialKey);
      const claimableAt = clock.monotonic() + outcome.claimableInMs;
      tried.set(sortKey, claimableAt);
      if (serialKey !== undefined && outcome.isKeyBusy) {
        tried.set(serialKeyItemKey(this.name, serialKey).sk, claimableAt);
        this.#finder.block(serialKey, next.item);
      } else {
        this.#finder.expect(sortKey, claimableAt);
        this.#finder.moveOn();
      }
      terms.signal?.throwIfAborted();
    }
  }

  /** The sets of one worker, the most urgent first. Throws InvalidOptionsError. */
  #inOrder({ moreUrgent = [] }: WorkOptions): readonly TaskSet[] {
    const isAllowed = (set: unknown, index: number, all: readonly unknown[]): boolean =>
      set instanceof TaskSet && set !== this && all.indexOf(set) === index;
    const given: unknown = moreUrgent;
    const allowed = "an array of other TaskSets, each once";
    return readable("moreUrgent", given, () => {
      check(Array.isArray(given) && [...given].every(isAllowed), "moreUrgent", given, allowed);
      return [...moreUrgent, this];
    });
  }

  /** Begins a worker of these sets, which is told of the tasks that are added to them until `forget` is called. */
  #begin(
    sets: readonly TaskSet[],
    terms: WorkTerms,
    onParked?: () => void,
  ): { readonly worker: Worker; readonly forget: () => void } {
    const sources = sets.map((set) => set.#source(onParked));
    const worker = new Worker(this.#context.core, terms, sources);
    const contexts = sets.map((set) => set.#context);
    return { worker, forget: listenToAdds(contexts, worker) };
  }

  #source(onParked?: () => void): TaskSource {
    const finder = this.#finder;
    return {
      get snapshot() {
        return finder.snapshot;
      },
      find: (terms) => this.#find(terms, onParked),
    };
  }

  /**
   * Yields the set's tasks, for a loop.
   *
   * With a `concurrency` of 1, the body has to end each task. A task is failed with the remark "left open by its
   * worker" when the body asks for the next one, leaves the loop or throws, and has not ended it. It waits for its
   * next attempt, if one is left.
   *
   * With a larger `concurrency`, the body starts its work and does not wait for it. The loop yields the next task when
   * fewer tasks than that are open. When the loop ends by itself, it waits for the open tasks. When the body leaves it,
   * they are failed as above.
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
    const sets = this.#inOrder(options);
    const { worker, forget } = this.#begin(sets, terms);
    const open = new Set<Task>();
    try {
      for (;;) {
        const task = await worker.next().catch(async (error: unknown) => {
          // The body has not left the loop: its tasks go on.
          await worker.idle();
          throw error;
        });
        if (task === undefined) break;
        open.add(task);
        void task.ended.then(() => open.delete(task));
        worker.busyUntil(task.ended);
        yield task;
        if (terms.concurrency === 1) await closeLeftOpen(task);
      }
      await worker.idle();
    } finally {
      forget();
      await Promise.all([...open].map(closeLeftOpen));
    }
  }

  /**
   * Does the work of every task and ends the task with its result.
   *
   * A text that the work resolves to becomes the remark of the success. An error that it throws becomes the remark of
   * the failure, cut to 1,024 bytes. After a FinalFailureError the task is parked at once, whatever attempts are
   * left.
   *
   * The work may end its task itself. When the caller's `signal` aborts and the work throws the signal's reason, the
   * task is released. Resolves when no more tasks are claimed and all work has settled. A task whose end the service
   * does not confirm counts as lost: another worker does it again.
   */
  async process(
    work: (task: Task) => Promise<unknown> | unknown,
    options: ProcessOptions = {},
  ): Promise<ProcessSummary> {
    if (typeof work !== "function") throw new InvalidOptionsError("work", work, "a function of the task");
    const terms = checkProcessOptions(options);
    const sets = this.#inOrder(options);
    let found = 0;
    const onParked = (): void => {
      found += 1;
    };
    const stop = new AbortController();
    const signal = terms.signal === undefined ? stop.signal : AbortSignal.any([terms.signal, stop.signal]);
    const { worker, forget } = this.#begin(sets, { ...terms, signal }, onParked);
    const summary = await processTasks(worker, work, terms, stop).finally(forget);
    return { ...summary, parked: summary.parked + found };
  }

  /**
   * Reads one task; undefined when the set does not know it. Sees every earlier write.
   *
   * 1 request for a waiting or running task, 2 for an ended one, 3 for an unknown one. The third is a transaction
   * that writes nothing, billed as 4 write units.
   */
  async get(id: string): Promise<TaskRecord | undefined> {
    checkText("id", id, taskLimits.idBytes);
    const item = await this.#admin.find(id);
    return item && readTask(item);
  }

  /**
   * Cancels a waiting task, also one that waits for its next attempt. No worker claims it any more, and adding its id
   * again changes nothing. `requeue` undoes it.
   *
   * Resolves to true when the task is cancelled, by this call or an earlier one. Resolves to false, and changes
   * nothing, when the task is running, has ended otherwise or is unknown. To stop a running task, break its claim
   * (`LeaseAdmin.forceRelease`), and cancel it when it waits. The task keeps the remark, or that of its last attempt
   * where none is given. 2 requests, and 2 more each time that a worker had the task in between.
   */
  async cancel(id: string, remark?: string, options: TraceOptions = {}): Promise<boolean> {
    checkText("id", id, taskLimits.idBytes);
    const { by } = checkOptions(options, traceRules);
    return await this.#admin.cancel(id, remark === undefined ? undefined : checkRemark(remark), by);
  }

  /**
   * Lets a task that has failed, was parked or was cancelled start again, with all its attempts. Its fencing tokens go on
   * growing.
   *
   * 2 requests. Resolves to false when the task has not ended in one of these ways.
   */
  async requeue(id: string, options: RequeueOptions = {}): Promise<boolean> {
    checkText("id", id, taskLimits.idBytes);
    const terms = checkRequeueOptions(options);
    const isOpen = await this.#admin.requeue(id, terms);
    if (isOpen && terms.delayMs === 0) tellOfAdd(this.#context.core, this.name);
    return isOpen;
  }

  /**
   * Requeues many tasks: those that have failed or were parked, or those of one state.
   *
   * Resolves to the number of tasks that are open again, by this call or by another one at the same time. Reads the
   * ended tasks once, in the order of their ids: 1 request for about 1 MB of them, and 1 for every 50 that are
   * requeued; with `by`, for every 33. When it rejects, because of the service or because `filter` throws, some tasks
   * may be open again: call it once more.
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
    const terms = checkRequeueAllOptions(options);
    const requeued = await this.#admin.requeueAll(terms);
    if (requeued > 0 && terms.delayMs === 0) tellOfAdd(this.#context.core, this.name);
    return requeued;
  }

  /** Counts the tasks of each state. Reads them all, 1 request for about 1 MB: for operators, not for hot paths. */
  async counts(): Promise<Readonly<Record<TaskState, number>>> {
    const counts = { waiting: 0, running: 0, succeeded: 0, failed: 0, parked: 0, cancelled: 0 };
    for await (const { state } of this.list()) counts[state] += 1;
    return counts;
  }

  /**
   * Yields the tasks of one state, or of all states. Ended tasks come in the order of their ids, open tasks in no
   * order.
   *
   * 1 request for about 1 MB of tasks, sent when the caller asks for more. Open tasks are read without the ended
   * ones, and the other way round. The result may lag a moment behind, and miss a task that ends meanwhile.
   */
  async *list(options: { readonly state?: TaskState } = {}): AsyncGenerator<TaskRecord, void, undefined> {
    yield* this.#admin.list(checkListOptions(options));
  }
}

/** The remark of a task that the body of a `work` loop has neither ended nor released. */
const leftOpenRemark = "left open by its worker";

/**
 * Fails a task that the loop's body has left open. Where that is not possible now, the task returns when its claim
 * expires.
 */
async function closeLeftOpen(task: Task): Promise<void> {
  if (await task.settled()) return;
  try {
    await task.fail(leftOpenRemark);
  } catch (error) {
    task.abandon();
    if (!isOperational(error)) throw error;
  }
}
