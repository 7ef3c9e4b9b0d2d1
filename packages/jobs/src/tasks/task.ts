import type {
  ConditionCheckOptions,
  Fence,
  FenceOptions,
  Item,
  LeaseConditionCheck,
  LeaseTransactItem,
  ValueFormat,
} from "@leasehold/client";
import {
  backoffMs,
  checkWork,
  deferred,
  type Ended,
  type HeldLease,
  Lease,
  lastReleasedToken,
  runTraced,
  transact,
  type Write,
  wasReleasedByHolder,
} from "@leasehold/client/internal";
import { entriesOf, formatOf, type SendEntries, sendByUser } from "../own-transaction.ts";
import { TaskLostError, type TaskLostReason } from "./errors.ts";
import {
  type ClaimProof,
  type EndedTask,
  endedTask,
  endTask,
  giveBackTask,
  undoClaim,
} from "./expressions.ts";
import { checkFailOptions, checkRemark, type FailOptions } from "./options.ts";
import { isExhausted, readTask, type TaskRecord, taskStateOf } from "./record.ts";
import { endedTaskKey, taskAttributeNames } from "./schema.ts";
import type { TaskContext } from "./task-context.ts";
import { callWithRetry } from "./task-context.ts";
import type { TaskForm } from "./task-form.ts";

/**
 * A task that this worker has claimed.
 *
 * Its claim is a lease: it is renewed in the background, it is lost when it is not renewed, and its writes can be
 * fenced. Exactly one of `succeed`, `fail` and `release` ends the task. Each costs 1 request, which is repeated when
 * the service does not reply, and recognises its own earlier copy.
 *
 * Each of the three rejects:
 * - with {@link TaskLostError} when the task does not belong to this worker any more. Nothing was changed.
 * - with LeaseServiceError when the result is not known. The claim stays, is still renewed, and the call may be repeated.
 * - with InvalidOptionsError.
 *
 * The table decides: when its claim has expired, a worker may still end a task that no other worker has claimed since.
 */
export class Task {
  readonly #context: TaskContext;
  readonly #claim: HeldLease;
  readonly #item: Item;
  readonly #record: TaskRecord;
  readonly #lease: Lease;
  readonly #ended = deferred<void>();
  #ending: TaskEnding | undefined;
  #isOpen = true;
  #waitsForMs = 0;

  /** @internal Tasks are made by a TaskSet. */
  constructor(context: TaskContext, claim: HeldLease, form: TaskForm, item: Item) {
    this.#context = context;
    this.#claim = claim;
    this.#item = item;
    this.#record = readTask(item);
    this.#lease = new Lease(claim, undefined);
    claim.onEnd(() => this.#ended.resolve());
    form.endBy = () => this.#giveBackIfOurs();
    claim.list();
    const { core, terms } = context;
    const { maxRunMs } = terms;
    if (maxRunMs === undefined) return;
    const tooLong = (): void => claim.over("expired", `it has run for longer than ${maxRunMs} ms`);
    claim.onEnd(core.clock.schedule(tooLong, maxRunMs, { background: true }));
  }

  /** The task's name within its set. */
  get id(): string {
    return this.#record.id;
  }

  /** The name of its set. */
  get set(): string {
    return this.#context.set;
  }

  get payload(): unknown {
    return this.#record.payload;
  }

  /** The number of this attempt, from 1. An attempt whose worker died before it began is counted too. */
  get attempt(): number {
    return this.#record.attempts;
  }

  /** How many attempts the task may have. */
  get maxAttempts(): number {
    return this.#record.maxAttempts;
  }

  /** The remark of the attempt before; empty for none. */
  get remark(): string {
    return this.#record.remark;
  }

  /** Grows with every claim of the task; with a `serialKey`, with every claim of a task of that key. */
  get fencingToken(): number {
    return this.#lease.fencingToken;
  }

  /**
   * When the claim ends unless it is renewed, in epoch milliseconds of the service's time, where that is known: compare it
   * with no clock of this machine, which may be wrong, and ask {@link Task.remainingMs}.
   */
  get expiresAt(): number {
    return this.#lease.expiresAt;
  }

  /**
   * How much longer the claim protects its worker, in milliseconds of the monotonic clock; 0 when it does not, for
   * example while the task is being ended. Sends nothing.
   */
  remainingMs(): number {
    return this.#ending === undefined ? this.#lease.remainingMs() : 0;
  }

  /**
   * Whether the claim protects its worker at this moment, by the worker's own clock. False while the task is being ended:
   * another worker may have it before the reply arrives. Sends nothing.
   */
  get held(): boolean {
    return this.remainingMs() > 0;
  }

  /**
   * Aborts with a LeaseLostError when the claim does not protect its worker any more, after `maxRunMs`, and when the
   * task is ended.
   */
  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  /** @internal Runs the work on it, in the context of tools that trace work under a lease. */
  trace<T>(work: () => T): T {
    return runTraced(this.#lease, work);
  }

  /** @internal Resolves when the claim has ended, for any reason. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /**
   * @internal When the task may be claimed next, on the monotonic clock, as far as is known; undefined when it has
   * ended.
   */
  get claimableAt(): number | undefined {
    return this.#isOpen ? this.#context.core.clock.monotonic() + this.#waitsForMs : undefined;
  }

  /** @internal Waits for an end in progress; gives whether the worker has ended the task. */
  async settled(): Promise<boolean> {
    // Ignored: the call that ends it has the error.
    await this.#ending?.done.catch(() => undefined);
    return this.#ending !== undefined;
  }

  /** @internal Stops renewing the claim: the task can be claimed again when the claim has expired. */
  abandon(): void {
    this.#claim.over("expired", "its worker has given it up");
  }

  /** Renews the claim, as heartbeats do; as `lease.renew`. 1 request. */
  renew(): Promise<void> {
    return this.#lease.renew();
  }

  /**
   * As `lease.fence`: conditions for a write to your own item, which refuse the writes of earlier claims of this
   * task.
   */
  fence(options: FenceOptions = {}): Fence {
    return this.#lease.fence(options);
  }

  /** As `lease.conditionCheck`: an entry for your own transaction, which then succeeds only while the claim is valid. */
  conditionCheck(options: ConditionCheckOptions = {}): LeaseConditionCheck {
    return this.#lease.conditionCheck(options);
  }

  /** Ends the task with success. 1 transaction, which moves it to the ended tasks. */
  async succeed(remark?: string): Promise<void> {
    const text = checkRemark(remark);
    await this.#end("succeeded", () => this.#finish("succeeded", text));
  }

  /**
   * Ends the task with success in your own transaction: your writes and the end happen together, or not at all.
   *
   * `send` gets 2 entries. It puts them into the `TransactItems` of one TransactWriteItems beside at most 98 of yours,
   * and resolves when DynamoDB has confirmed it. No renewal runs meanwhile. If `send` rejects, the task is read once: it
   * may have been ended, although the answer was lost. If it was not, the call rejects with that error, and the claim
   * stays. `TransactionCanceledException` with ConditionalCheckFailed for one of the entries means that the task
   * belongs to another worker.
   *
   * Do not end the task inside `send`, in any way: such a call waits for this one, and this one for it, without an end.
   *
   * No request of its own, 1 where `send` rejects; the entries are billed as 4 write units or more. The role needs
   * UpdateItem and DeleteItem on the lease table.
   *
   * ```ts
   * const orders = new TaskSet(client, "orders");
   * await orders.process(async (task) => {
   *   await task.succeedIn(async (entries) => {
   *     const ship = { Put: { TableName: "shipments", Item: { id: task.id } } };
   *     await documents.send(new TransactWriteCommand({ TransactItems: [...entries, ship] }));
   *   });
   * });
   * ```
   */
  async succeedIn(
    send: (entries: LeaseTransactItem[]) => Promise<unknown>,
    { remark, ...options }: SucceedInOptions = {},
  ): Promise<void> {
    checkWork(send);
    const text = checkRemark(remark);
    const format = formatOf(this.#context.core, options);
    await this.#end("succeeded", () => this.#succeedBy(send, text, format), send);
  }

  /**
   * Gives up this attempt. While attempts are left, the task waits for its next one: for `retryAfterMs`, or by the
   * set's `backoff`. Otherwise it has failed. With `final` it is parked at once, whatever attempts are left. Resolves
   * to which of the three.
   */
  async fail(remark: string, options: FailOptions = {}): Promise<FailOutcome> {
    const { retryAfterMs, final } = checkFailOptions(options);
    const text = checkRemark(remark);
    const state = final ? "parked" : "failed";
    const isLast = final || isExhausted(this.#item);
    const outcome = await this.#end(state, () =>
      isLast ? this.#finish(state, text) : this.#giveBack(text, retryAfterMs ?? this.#backoffMs()),
    );
    // Only `succeed` gives the remaining outcome.
    return outcome as FailOutcome;
  }

  /** Gives the task back as if it had not been claimed: this attempt is not counted. */
  async release(): Promise<void> {
    const { core, set, terms } = this.#context;
    await this.#end("waiting", () => {
      const now = core.clock.now();
      return this.#return(undoClaim({ set, id: this.id, ...this.#proof, now, keepForMs: terms.keepForMs }));
    });
  }

  async #giveBackIfOurs(): Promise<Ended> {
    try {
      await this.release();
      return { wasOurs: true, isRecorded: false };
    } catch (error) {
      if (error instanceof TaskLostError) return { wasOurs: false, isRecorded: false };
      throw error;
    }
  }

  /**
   * Ends the task once: calls with the same outcome share one request, and a later call with another one is refused. So
   * is one whose own transaction, sent `by` the user, is another one: its writes would be missing.
   */
  async #end(as: string, send: () => Promise<TaskOutcome>, by?: SendEntries): Promise<TaskOutcome> {
    let ending = this.#ending;
    while (ending !== undefined) {
      if (ending.as === as && (by === undefined || ending.by === by)) return await ending.done;
      // Ignored: the call with the other outcome has the error.
      if ((await ending.done.catch(() => undefined)) !== undefined) {
        throw this.#lost("ended", " by this worker's earlier call");
      }
      // Another call that has waited for the same one may have come first.
      ending = this.#ending === ending ? undefined : this.#ending;
    }
    const done = this.#endOnce(send);
    this.#ending = { as, by, done };
    return await done.catch((error: unknown) => {
      // The task may still belong to this worker: the caller may try again.
      if (!(error instanceof TaskLostError)) this.#ending = undefined;
      throw error;
    });
  }

  async #endOnce(send: () => Promise<TaskOutcome>): Promise<TaskOutcome> {
    const resume = await this.#claim.still();
    try {
      const outcome = await send();
      this.#claim.close(true);
      return outcome;
    } catch (error) {
      if (error instanceof TaskLostError) this.#claim.close(false);
      else resume();
      throw error;
    }
  }

  async #finish(state: EndedTask["state"] & TaskOutcome, remark: string): Promise<TaskOutcome> {
    const { token } = this.#lease;
    const context = this.#context;
    const ended = endedTask(context, this.#item, this.#claim.record, state, remark, token);
    const { core } = context;
    const result = await callWithRetry(core, () => transact(core, endTask(ended)));
    const [open, done] = result.refusals;
    let earlier = done?.item;
    if (!result.applied && earlier === undefined) {
      // A refusal may tell of the open item alone, where another transaction has the ended one at that moment.
      if (open?.item === undefined)
        earlier = await core.get({ key: endedTaskKey(ended.set, ended.id), consistent: true });
      if (earlier === undefined) throw this.#lossBy(open?.item);
    }
    this.#isOpen = false;
    if (earlier === undefined) return state;
    const isOurs = lastReleasedToken(earlier) === token;
    if (isOurs && taskStateOf(earlier) === state) return state;
    throw this.#lost("ended", `: it has ${taskStateOf(earlier)}, by ${isOurs ? "this worker" : "another"}`);
  }

  async #succeedBy(send: SendEntries, remark: string, format: ValueFormat): Promise<TaskOutcome> {
    const { token } = this.#lease;
    const context = this.#context;
    const { core, set } = context;
    const ended = endedTask(context, this.#item, this.#claim.record, "succeeded", remark, token);
    const { state, endedAt } = taskAttributeNames;
    await sendByUser(core, send, entriesOf(core, endTask(ended), format), {
      key: endedTaskKey(set, this.id),
      // An earlier end by this worker, which arrived meanwhile, has another time.
      isWritten: (item) =>
        lastReleasedToken(item) === token && item?.[state] === "succeeded" && item[endedAt] === ended.now,
    });
    this.#isOpen = false;
    return "succeeded";
  }

  #giveBack(remark: string, retryAfterMs: number): Promise<TaskOutcome> {
    const { core, set, terms } = this.#context;
    const now = core.clock.now();
    const dueAt = now + retryAfterMs;
    this.#waitsForMs = retryAfterMs;
    const { keepForMs } = terms;
    return this.#return(giveBackTask({ set, id: this.id, ...this.#proof, now, keepForMs, remark, dueAt }));
  }

  async #return(write: Write): Promise<TaskOutcome> {
    const { core } = this.#context;
    const result = await callWithRetry(core, () => core.update(write));
    if (result.applied || wasReleasedByHolder(result.item, this.#lease.token)) return "waiting";
    throw this.#lossBy(result.item);
  }

  #lossBy(item: Item | undefined): TaskLostError {
    if (item === undefined) return this.#lost("gone", " as an open one: it may have ended");
    return this.#lost(taskStateOf(item) === "running" ? "taken" : "returned");
  }

  /** What distinguishes this claim from every other one, also from a late copy of its own request. */
  get #proof(): ClaimProof {
    const { token, fencingToken } = this.#lease;
    return { token, fencingToken };
  }

  #backoffMs(): number {
    const { core, terms } = this.#context;
    return backoffMs(terms.backoff, this.attempt, core.randomness);
  }

  #lost(reason: TaskLostReason, detail = ""): TaskLostError {
    return new TaskLostError(this.#context.set, this.id, reason, detail);
  }
}

/** An end of a task under way, or done. */
interface TaskEnding {
  readonly as: string;
  readonly by: SendEntries | undefined;
  readonly done: Promise<TaskOutcome>;
}

/** Options of {@link Task.succeedIn}. */
export interface SucceedInOptions extends ConditionCheckOptions {
  /** At most 1024 bytes. @default - none */
  readonly remark?: string;
}

/** How a worker has ended a task. */
export type TaskOutcome = "succeeded" | FailOutcome;

/** What happens to a task when its worker gives up an attempt. */
export type FailOutcome = "failed" | "parked" | "waiting";
