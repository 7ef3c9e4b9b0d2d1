import { checkSize } from "../../base/check-values.ts";
import { WakeableSleep } from "../../base/clock.ts";
import type { LeaseServiceError, LeaseUnavailableError } from "../../base/errors.ts";
import { unlessUnreadable } from "../../base/item-values.ts";
import type { LeaseRecord } from "../../base/lease-record.ts";
import { passing } from "../../base/operational.ts";
import { utf8Bytes } from "../../base/schema.ts";
import type { Item } from "../../base/store.ts";
import { type CallBudget, callBudgetMs } from "../../base/timed-call.ts";
import { type Attempt, type Granted, inBackground } from "../../core/attempt.ts";
import type { Core } from "../../core/core.ts";
import { unreadableIn } from "../../core/core.ts";
import { type Availability, type LeaseForm, refusalOf } from "../../core/form.ts";
import type { AcquireCall, OrderedWait } from "../../core/order.ts";
import { WaitBudget } from "../../core/wait-loop.ts";
import { isOlder, type LocalWaiter, queues } from "./queue.ts";
import { QueueCaller } from "./queue-caller.ts";
import { estimatedWaitMs, pollIntervalMs } from "./queue-estimate.ts";
import { type NewTicket, type QueueTicket, queueLimits, ticketIdOf } from "./queue-ticket.ts";
import { leave } from "./queue-writes.ts";

/** A waiter's position in line. */
export interface QueuePosition {
  /** 1 for the waiter whose turn comes next. */
  readonly position: number;
  /**
   * About when its turn comes, in milliseconds: the typical duration of a hold times the position; undefined before the
   * first release.
   */
  readonly estimatedWaitMs: number | undefined;
}

/** A caller's options, validated. */
export interface FairTerms {
  readonly maxWaiters: number;
  readonly onPosition: ((position: QueuePosition) => void) | undefined;
}

/** Sleeps are shortened by up to this share, so that waiters do not look in step. */
const lookJitterShare = 0.05;
/** A look without an answer is repeated after this time. */
const lookBudgetMs = 2_000;
/** The shortest and the longest lease of a ticket... */
export const shortestTicketMs = 60_000;
const longestTicketMs = 300_000;
/** ...but not much beyond the end of its waiter's wait. */
export const ticketGraceMs = 10_000;
/** A look renews a ticket that would end less than this after the next look. */
const renewAheadMs = 15_000;
/** If a lease has stayed free for this long, the head may be dead: then living waiters look this often. */
const freeLookMs = 1_000;
/**
 * The first living waiter writes its ticket when the ticket proves its life for at most this long. The waiters behind
 * it wait for one more look before they write theirs.
 */
const respondAheadMs = 7_000;
/** If several leases share an item, a waiter looks again this soon after one of them could be had. */
const sharedLookMs = 25;
/** How often a waiter tries to join before its next look while others change the line. */
const joinTries = 3;

/**
 * One caller's way to a lease in its turn: directly while nobody waits, otherwise with a ticket.
 *
 * The token and the ticket's id stay the same all the way. So the next request recognises every write that has landed
 * without an answer.
 */
export class QueueWaiter extends QueueCaller implements OrderedWait, LocalWaiter {
  readonly #call: AcquireCall;
  readonly #terms: FairTerms;
  readonly #budget: WaitBudget;
  readonly #sleep: WakeableSleep;
  readonly #since: number;
  /** What the last answer has shown; undefined before the first. */
  #seen: { readonly item: Item | undefined } | undefined;
  /**
   * No try before this time, on the monotonic clock: the last try failed, or was refused for a reason that a look
   * cannot show.
   */
  #notBefore = 0;
  #failure: LeaseServiceError | undefined;
  /** Whether a holder of this process has released the lease since the last answer. */
  #isReleased = false;
  #mayHaveTicket = false;
  #lastPosition: number | undefined;
  #pass: () => void = () => undefined;
  /** `grant` sets both, and is called first. */
  #attempt!: Attempt;
  #onContended!: (record: LeaseRecord) => void;

  /** Throws InvalidOptionsError if the payload leaves no room for the line. */
  constructor(core: Core, inner: LeaseForm, call: AcquireCall, terms: FairTerms) {
    super(core, inner, queues.of(core, inner.key, inner.sortKey), call.resumes);
    checkSize("data", utf8Bytes(call.data ?? ""), queueLimits.dataBytes, " with fair");
    this.#call = call;
    this.#terms = terms;
    this.#budget = new WaitBudget(core.clock, call.waitMs);
    this.#sleep = new WakeableSleep(core.clock);
    this.#since = core.clock.now();
  }

  /**
   * Returns the grant.
   *
   * Rejects with LeaseUnavailableError, with QueueFullError, with the service's error if the last try failed with it,
   * or with the signal's reason. Then it gives up its ticket in the background, and the caller abandons the attempt.
   */
  async grant(attempt: Attempt, onContended: (record: LeaseRecord) => void): Promise<Granted> {
    this.#attempt = attempt;
    this.#onContended = onContended;
    this.ticketId = ticketIdOf(attempt.token);
    try {
      if (this.#call.waitMs > 0) await this.#passGate();
      this.queue.add(this);
      const { latest } = this.queue;
      if (this.#call.waitMs > 0 && latest !== undefined) this.#seen = { item: latest };
      const granted = await this.#waitForTurn();
      this.grantedAt = granted.belief.since.monotonic;
      // An owner that took over its own lease has not removed its ticket.
      if (this.own !== undefined) this.#leave();
      return granted;
    } catch (error) {
      this.#leave();
      throw error;
    } finally {
      this.#pass();
      this.queue.remove(this);
    }
  }

  renewal(): ReturnType<LocalWaiter["renewal"]> {
    const { own } = this;
    return own && { ...this.newTicket(), number: own.number };
  }

  /** The line never shows an older item than before. */
  onItem(item: Item | undefined): void {
    this.#seen = { item };
    this.#sleep.wake();
  }

  onReleased(): void {
    if (this.estimate.position > 1) return;
    this.#isReleased = true;
    this.#sleep.wake();
  }

  /** Waits until the earlier callers of this process have a ticket, or have given up. */
  async #passGate(): Promise<void> {
    const { before, pass } = this.queue.enter();
    this.#pass = pass;
    void before.then(() => this.#sleep.wake());
    await this.#sleep.sleep(Math.max(this.#budget.leftMs, 0), this.#call.signal);
  }

  async #waitForTurn(): Promise<Granted> {
    for (;;) {
      const granted = await this.#tryInTurn();
      if (granted !== undefined) return granted;
      this.#call.signal?.throwIfAborted();
      if (this.#budget.leftMs <= 0) throw this.#failure ?? this.#unavailable();
      await this.#join();
      if (this.own !== undefined) this.#pass();
      this.#reportPosition();
      if (!this.#isTurn()) await this.#rest();
    }
  }

  /** What the last answer promises now; undefined before the first answer, and after a release has made it obsolete. */
  #availability(): Availability | undefined {
    const availability = this.#seen && this.#attempt.judge(this.#seen.item);
    return this.#isReleased ? undefined : availability;
  }

  #isTurn(): boolean {
    const availability = this.#availability();
    if (this.#now() < this.#notBefore) return false;
    // Without an answer, a try tells most. And an own write may have landed without an answer.
    const isOwn = availability?.blocker?.token === this.#attempt.token;
    return availability === undefined || availability.claimableInMs <= 0 || isOwn;
  }

  /** Tries while it is this caller's turn: at once if nobody waits, otherwise as the first living waiter. */
  async #tryInTurn(): Promise<Granted | undefined> {
    let granted: Granted | undefined;
    while (granted === undefined && this.#isTurn()) granted = await this.#tolerating(() => this.#tryOnce());
    return granted;
  }

  async #tryOnce(): Promise<Granted | undefined> {
    const { waitMs, signal } = this.#call;
    const availability = this.#availability();
    const isFirst = this.#seen === undefined;
    const withinMs = waitMs > 0 ? this.#budget.callMs : callBudgetMs;
    const outcome = await this.#attempt.try({ withinMs, signal }, availability);
    // Another caller's unreadable seat does not harm a granted lease. A refusal has been read before.
    unlessUnreadable(() => this.learn(outcome.item), unreadableIn(this.core));
    if (outcome.granted) return outcome;
    this.#failure = undefined;
    const { blocker } = outcome.availability;
    if (blocker !== undefined) this.#onContended(blocker);
    if (!isFirst) this.#notBefore = this.#now() + this.#headPollMs();
    return undefined;
  }

  /** Joins the line if this caller's ticket is not there: for the first time, or because others passed it. */
  async #join(): Promise<void> {
    for (let tries = 0; tries < joinTries && this.#seen !== undefined; tries += 1) {
      if (this.own !== undefined || this.#isTurn()) return;
      const write = this.joining(this.#terms.maxWaiters);
      this.#mayHaveTicket = true;
      const isAnswered = await this.#tolerating(async () => {
        await this.send(write, this.#callBudget(callBudgetMs));
        return true;
      });
      if (!isAnswered) return;
    }
  }

  /** Sleeps as long as the position allows, then looks. Ends early when another waiter of this process has news. */
  async #rest(): Promise<void> {
    const mustRespond = this.#mustRespond();
    if (!mustRespond) {
      const delayMs = Math.max(1, Math.min(this.#sleepMs(), this.#budget.leftMs));
      if ((await this.#sleep.sleep(delayMs, this.#call.signal)) || this.#isTurn()) return;
    }
    const { own } = this;
    const renews = own !== undefined && (mustRespond || this.#isDue(own));
    const budget = this.#callBudget(lookBudgetMs);
    await this.#tolerating(async () => {
      const item = await (renews ? this.queue.lookAndRenew(this, budget) : this.queue.look(budget));
      if (renews || !isOlder(item, this.#seen?.item)) this.learn(item);
    });
  }

  /**
   * Whether a ticket ends soon and could last longer. Near the end of the waiter's wait, a renewal would gain no time.
   */
  #isDue({ until }: QueueTicket): boolean {
    const pollMs = pollIntervalMs(this.estimate);
    const isShort = until - this.core.clock.now() < pollMs + renewAheadMs;
    return isShort && this.newTicket().until - until > pollMs;
  }

  /**
   * Whether this waiter has to show that it is alive. The lease stays free, so the head may be dead, and neither this
   * waiter nor one in front of it has shown life lately.
   */
  #mustRespond(): boolean {
    const { own, ahead, queue } = this;
    const { freeForMs = 0 } = queue;
    if (own === undefined || freeForMs < freeLookMs || this.#now() < this.#notBefore) return false;
    const aheadMs = respondAheadMs - lookBudgetMs;
    return (
      queue.provesLifeFor(own) <= respondAheadMs &&
      ahead.every((ticket) => queue.provesLifeFor(ticket) <= aheadMs)
    );
  }

  #sleepMs(): number {
    const fraction = this.core.randomness.fraction();
    const pollMs = pollIntervalMs(this.estimate) * (1 - lookJitterShare * fraction);
    const { freeForMs } = this.queue;
    let longestMs = pollMs;
    // While a lease is free and nobody takes it, a waiter in front may be dead. If several leases share the item, the
    // next one may be this waiter's.
    if (freeForMs !== undefined) {
      longestMs = this.mayJoinFirst
        ? Math.min(Math.max(sharedLookMs, freeForMs / 8), freeLookMs)
        : freeLookMs;
    }
    // The time when no other caller can have the lease, however long this waiter's own sleep would be.
    const turnInMs = Math.max(this.#availability()?.claimableInMs ?? 0, this.#notBefore - this.#now());
    return Math.min(pollMs, longestMs, turnInMs);
  }

  /** Takes over what an answer shows. */
  protected learn(item: Item | undefined): void {
    this.#seen = { item };
    this.#isReleased = false;
    this.#attempt.judge(item);
    this.queue.broadcast(item, this);
  }

  /** Makes a request that a later one can repeat: after an error that may pass, the next try waits a little. */
  async #tolerating<T>(request: () => Promise<T>): Promise<T | undefined> {
    try {
      return await request();
    } catch (error) {
      this.#call.signal?.throwIfAborted();
      this.#failure = passing(error);
      this.#notBefore = this.#now() + this.#headPollMs();
      return undefined;
    }
  }

  #callBudget(mostMs: number): CallBudget {
    return { withinMs: Math.min(this.#budget.callMs, mostMs), signal: this.#call.signal };
  }

  #headPollMs(): number {
    return Math.min(pollIntervalMs({ ...this.estimate, round: 1 }), freeLookMs);
  }

  protected newTicket(): NewTicket {
    const expectedMs = estimatedWaitMs(this.estimate) ?? 0;
    const usefulMs = Math.min(Math.max(expectedMs, shortestTicketMs), longestTicketMs);
    const leaseMs = Math.min(usefulMs, Math.max(this.#budget.leftMs, 0) + ticketGraceMs);
    const { owner } = this.#call;
    return this.ticket({ since: this.#since, leaseMs, isWatching: true, owner });
  }

  #reportPosition(): void {
    const { estimate, own } = this;
    if (own === undefined || estimate.position === this.#lastPosition) return;
    this.#lastPosition = estimate.position;
    this.#terms.onPosition?.({ position: estimate.position, estimatedWaitMs: estimatedWaitMs(estimate) });
  }

  /** Gives up this caller's ticket in the background, if it may have one. */
  #leave(): void {
    if (!this.#mayHaveTicket) return;
    const { key, sortKey, owner } = this.#call;
    const expiresAt = Math.ceil((this.own ?? this.newTicket()).until);
    const passed = inBackground(this.core, { key, sortKey, owner, operation: "leaveQueue" });
    const { core } = this;
    const left = core.gate.giveBack(() => core.update(leave(this.queue, this.ticketId)));
    core.lifecycle.remove({ key, sortKey, expiresAt }, left, passed);
  }

  #unavailable(): LeaseUnavailableError {
    const { blocker, claimableInMs = 0 } = this.#availability() ?? {};
    const waiting = this.estimate.position - 1;
    return refusalOf(this.form, this.#call, blocker, Math.ceil(claimableInMs), waiting);
  }

  #now(): number {
    return this.core.clock.monotonic();
  }
}
