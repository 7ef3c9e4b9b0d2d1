import type {
  ConditionCheckOptions,
  Fence,
  FenceOptions,
  Item,
  LeaseConditionCheck,
  UpdateRequest,
} from "@leasehold/client";
import { backoffMs, Lease, lastReleasedToken, wasReleasedByHolder } from "@leasehold/client/internal";
import type { ClaimTenancy } from "./claim-tenancy.ts";
import type { TaskDesk } from "./desk.ts";
import { endedTask, isExhausted } from "./ended.ts";
import { TaskLostError, type TaskLostReason } from "./errors.ts";
import { type ClaimProof, type EndedTask, endTask, giveBackTask, undoClaim } from "./expressions.ts";
import { checkFailOptions, checkRemark, type FailOptions } from "./options.ts";
import { persist } from "./persistence.ts";
import { readTask, stateOf, type TaskRecord } from "./record.ts";

/** What became of a task by its worker's word. */
export type TaskOutcome = "succeeded" | FailOutcome;

/** What becomes of a task whose worker gives up an attempt. */
export type FailOutcome = "failed" | "parked" | "waiting";

/**
 * A task that this worker has claimed.
 *
 * Its claim is a lease: renewed in the background, lost when it is not, fenced. Exactly one of `succeed`, `fail` and
 * `release` ends it. Each of them costs 1 request, is repeated where the service does not answer, and recognises what
 * its own earlier copy has done. Each rejects with {@link TaskLostError} where the task is not this worker's any more,
 * in which case nothing was changed; with LeaseServiceError where it is not known what became of it, in which case
 * the claim stands and is renewed on, and the call may be repeated; and with InvalidOptionsError.
 *
 * The table decides: a worker whose claim has run out may still end a task that nobody else has claimed since.
 */
export class Task {
  readonly #desk: TaskDesk;
  readonly #tenancy: ClaimTenancy;
  readonly #item: Item;
  readonly #record: TaskRecord;
  readonly #lease: Lease;
  readonly #ended = Promise.withResolvers<void>();
  #ending: { readonly wish: string; readonly done: Promise<TaskOutcome> } | undefined;
  #isOpen = true;
  #waitsForMs = 0;

  /** @internal Tasks are made by a TaskSet. */
  constructor(desk: TaskDesk, tenancy: ClaimTenancy, item: Item) {
    this.#desk = desk;
    this.#tenancy = tenancy;
    this.#item = item;
    this.#record = readTask(item);
    this.#lease = new Lease(desk.context, tenancy, desk.format, undefined);
    tenancy.onEnd(() => this.#ended.resolve());
    tenancy.releaseBy(() => this.#giveBackIfOurs());
    desk.context.hold(tenancy);
    const { maxRunMs } = desk.terms;
    if (maxRunMs === undefined) return;
    const tooLong = (): void => tenancy.validity.end("expired", `it has run for longer than ${maxRunMs} ms`);
    tenancy.onEnd(desk.context.clock.schedule(tooLong, maxRunMs, { background: true }));
  }

  /** The task's name within its set. */
  get id(): string {
    return this.#record.id;
  }

  get payload(): unknown {
    return this.#record.payload;
  }

  /** Which attempt this is: 1 for the first. A worker that died before it began has used up one, too. */
  get attempt(): number {
    return this.#record.attempts;
  }

  /** How many attempts it may have. */
  get maxAttempts(): number {
    return this.#record.maxAttempts;
  }

  /** What the attempt before was given back with; empty for nothing. */
  get remark(): string {
    return this.#record.remark;
  }

  /** Grows with every claim of the task. */
  get fencingToken(): number {
    return this.#lease.fencingToken;
  }

  /** When the claim ends unless it is renewed, in epoch milliseconds of this machine's clock. */
  get expiresAt(): number {
    return this.#lease.expiresAt;
  }

  /**
   * Whether the claim protects its worker at this moment, by the worker's own clock; not while it is being ended, for
   * another may have the task before the answer is here. Sends nothing.
   */
  get held(): boolean {
    return this.#ending === undefined && this.#lease.held;
  }

  /**
   * Aborts, with a LeaseLostError, as soon as the claim does not protect its worker any more, after `maxRunMs`, and
   * when the task is ended.
   */
  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  /** @internal Resolves when the claim has ended, for whatever reason. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** @internal When it may be claimed next, on the monotonic clock, as far as this worker knows; undefined once it has ended. */
  get claimableAt(): number | undefined {
    return this.#isOpen ? this.#desk.context.clock.monotonic() + this.#waitsForMs : undefined;
  }

  /** @internal Waits for an ending that is under way; gives whether its worker has ended it. */
  async settled(): Promise<boolean> {
    // Ignored: the call that ends it has the error.
    await this.#ending?.done.catch(() => undefined);
    return this.#ending !== undefined;
  }

  /** @internal Renews it no more: it returns when its claim has run out. */
  abandon(): void {
    this.#tenancy.validity.end("expired", "its worker has given it up");
  }

  /** Prolongs the claim by its duration; heartbeats do. 1 request. As `lease.renew`. */
  renew(): Promise<void> {
    return this.#lease.renew();
  }

  /** As `lease.fence`: parts of a write to your own item that no earlier claim of this task can undo. */
  fence(options: FenceOptions = {}): Fence {
    return this.#lease.fence(options);
  }

  /** As `lease.conditionCheck`: an entry for your own transaction, which then succeeds only while the claim stands. */
  conditionCheck(options: ConditionCheckOptions = {}): LeaseConditionCheck {
    return this.#lease.conditionCheck(options);
  }

  /** Ends the task for good. 1 transaction: the task moves to those that are done. */
  async succeed(remark?: string): Promise<void> {
    const text = checkRemark(remark);
    await this.#end("succeeded", () => this.#finish("succeeded", text));
  }

  /**
   * Gives up this attempt. The task waits, for `retryAfterMs` or by the set's `backoff`, and then for its next attempt;
   * without one left, it has failed. With `final` it is parked at once, be it its last attempt or not. Resolves to which
   * of the three.
   */
  async fail(remark: string, options: FailOptions = {}): Promise<FailOutcome> {
    const { retryAfterMs, final } = checkFailOptions(options);
    const text = checkRemark(remark);
    const state = final ? "parked" : "failed";
    const isLast = final || isExhausted(this.#item);
    const outcome = await this.#end(state, () =>
      isLast ? this.#finish(state, text) : this.#giveBack(text, retryAfterMs ?? this.#backoffMs()),
    );
    // Nothing but `succeed` comes to the other one.
    return outcome as FailOutcome;
  }

  /** Gives the task back as if it had not been claimed: this attempt does not count. */
  async release(): Promise<void> {
    const { set, terms, context } = this.#desk;
    await this.#end("waiting", () => {
      const now = context.clock.now();
      return this.#return(undoClaim({ set, id: this.id, ...this.#proof, now, keepForMs: terms.keepForMs }));
    });
  }

  async #giveBackIfOurs(): Promise<boolean> {
    try {
      await this.release();
      return true;
    } catch (error) {
      if (error instanceof TaskLostError) return false;
      throw error;
    }
  }

  /** One ending at a time; the one that came through stands. */
  async #end(wish: string, send: () => Promise<TaskOutcome>): Promise<TaskOutcome> {
    const under = this.#ending;
    if (under?.wish === wish) return await under.done;
    // Ignored: the call that ends it otherwise has the error.
    if (under !== undefined && (await under.done.catch(() => undefined)) !== undefined) {
      throw this.#lost("ended", " by this worker's earlier call");
    }
    const done = this.#endOnce(send);
    this.#ending = { wish, done };
    return await done.catch((error: unknown) => {
      // The task may still be this worker's: the caller may try again.
      if (!(error instanceof TaskLostError)) this.#ending = undefined;
      throw error;
    });
  }

  async #endOnce(send: () => Promise<TaskOutcome>): Promise<TaskOutcome> {
    await this.#tenancy.pause();
    try {
      const outcome = await send();
      this.#tenancy.close(true);
      return outcome;
    } catch (error) {
      if (error instanceof TaskLostError) this.#tenancy.close(false);
      else this.#tenancy.resume();
      throw error;
    }
  }

  async #finish(state: EndedTask["state"] & TaskOutcome, remark: string): Promise<TaskOutcome> {
    const { token } = this.#lease;
    const ended = endedTask(this.#desk, this.#item, this.#tenancy.terms.record, state, remark, token);
    const { context } = this.#desk;
    const result = await persist(context, (store, call) => store.transact(endTask(ended), call));
    const [open, done] = result.refusals;
    const earlier = done?.item;
    if (!result.applied && earlier === undefined) throw this.#lossBy(open?.item);
    this.#isOpen = false;
    if (earlier === undefined) return state;
    const isOurs = lastReleasedToken(earlier) === token;
    if (isOurs && stateOf(earlier) === state) return state;
    throw this.#lost("ended", `: it has ${stateOf(earlier)}, by ${isOurs ? "this worker" : "another"}`);
  }

  #giveBack(remark: string, retryAfterMs: number): Promise<TaskOutcome> {
    const { set, terms, context } = this.#desk;
    const now = context.clock.now();
    const dueAt = now + retryAfterMs;
    this.#waitsForMs = retryAfterMs;
    const { keepForMs } = terms;
    return this.#return(giveBackTask({ set, id: this.id, ...this.#proof, now, keepForMs, remark, dueAt }));
  }

  async #return(update: UpdateRequest): Promise<TaskOutcome> {
    const result = await persist(this.#desk.context, (store, call) => store.update(update, call));
    if (result.applied || wasReleasedByHolder(result.item, this.#lease.token)) return "waiting";
    throw this.#lossBy(result.item);
  }

  #lossBy(item: Item | undefined): TaskLostError {
    if (item === undefined) return this.#lost("gone", " as an open one: it may have ended");
    return this.#lost(stateOf(item) === "running" ? "taken" : "returned");
  }

  /** By what this claim is told from any other, a late copy of its own request included. */
  get #proof(): ClaimProof {
    const { token, fencingToken } = this.#lease;
    return { token, fencingToken };
  }

  #backoffMs(): number {
    const { terms, context } = this.#desk;
    return backoffMs(terms.backoff, this.attempt, context.randomness);
  }

  #lost(reason: TaskLostReason, detail = ""): TaskLostError {
    return new TaskLostError(this.#desk.set, this.id, reason, detail);
  }
}
