import type { LeaseServiceError, LeaseUnavailableError } from "../errors/errors.ts";
import { passing } from "../errors/operational.ts";
import { unlessUnreadable, unreadableIn } from "../looks.ts";
import { checkSize } from "../options/check-values.ts";
import type { AcquireAttempt, Granted } from "../protocol/acquire-attempt.ts";
import type { AcquireCall } from "../protocol/acquirer.ts";
import { inBackground, type ProtocolContext } from "../protocol/context.ts";
import { type LeaseForm, type Prospect, refusalOf } from "../protocol/lease-form.ts";
import { WaitBudget } from "../protocol/wait-loop.ts";
import type { OrderedWait } from "../protocol/wait-order.ts";
import type { LeaseRecord } from "../record.ts";
import { utf8Bytes } from "../schema.ts";
import { type Bounds, callBudgetMs } from "../store/timed-store.ts";
import type { Item } from "../store.ts";
import { WakeableSleep } from "../time/wakeable-sleep.ts";
import type { FairTerms } from "./fair.ts";
import { isOlder, type LocalWaiter, queues } from "./queue.ts";
import { QueueCaller } from "./queue-caller.ts";
import { estimatedWaitMs, pollIntervalMs } from "./queue-estimate.ts";
import { type NewTicket, type QueueTicket, queueLimits, ticketIdOf } from "./queue-ticket.ts";
import { leave } from "./queue-writes.ts";

/** Sleeps are shortened by up to this share, so that waiters do not look in step. */
const jitterShare = 0.05;
/** A look that is not answered within this time is made again. */
const lookBudgetMs = 2_000;
/** A ticket lasts at least as long, and at most... */
export const shortestTicketMs = 60_000;
const longestTicketMs = 300_000;
/** ...but not much beyond the end of its waiter's patience. */
export const ticketGraceMs = 10_000;
/** A ticket is renewed by a look that leaves it no more than this beyond the next one. */
const renewAheadMs = 15_000;
/** A lease that has stayed free for this long has a head that may be dead: then living waiters look so often. */
const freeLookMs = 1_000;
/**
 * The first living waiter writes its ticket when that proves its life for no longer than this. Those behind leave it the time
 * of a look: then they write theirs.
 */
const respondAheadMs = 7_000;
/** Where several leases stand side by side, a waiter looks again so soon after one of them could be had. */
const sharedLookMs = 25;
/** How often a waiter tries to join while others change the line, before its next look. */
const joinTries = 3;

/**
 * One caller's way to a lease in its turn: straight to it while nobody waits, else by a ticket.
 *
 * The token, and with it the ticket's id, stays the same all the way: so whatever has landed unknown to the caller is
 * recognised by its next request.
 */
export class QueueWaiter extends QueueCaller implements OrderedWait, LocalWaiter {
  readonly #call: AcquireCall;
  readonly #terms: FairTerms;
  readonly #budget: WaitBudget;
  readonly #sleep: WakeableSleep;
  readonly #since: number;
  /** What the last answer has shown; undefined before the first. */
  #seen: { readonly item: Item | undefined } | undefined;
  /** No try before this, on the monotonic clock: the last one failed, or was refused for what a look cannot show. */
  #notBefore = 0;
  #failure: LeaseServiceError | undefined;
  /** Whether a holder of this process has let the lease go since the last answer. */
  #isReleased = false;
  #mayHaveTicket = false;
  #lastPosition: number | undefined;
  #pass: () => void = () => undefined;
  /** Both are set by `grant`, which begins everything. */
  #attempt!: AcquireAttempt;
  #onContended!: (record: LeaseRecord) => void;

  /** Throws InvalidOptionsError for a payload that leaves the line no room. */
  constructor(context: ProtocolContext, inner: LeaseForm, call: AcquireCall, terms: FairTerms) {
    super(context, inner, queues.of(context, inner.key, inner.sortKey), call.resumes);
    checkSize("data", utf8Bytes(call.data ?? ""), queueLimits.dataBytes, " with fair");
    this.#call = call;
    this.#terms = terms;
    this.#budget = new WaitBudget(context.clock, call.waitMs);
    this.#sleep = new WakeableSleep(context.clock);
    this.#since = context.clock.now();
  }

  /**
   * Gives the grant.
   *
   * Rejects with LeaseUnavailableError, QueueFullError, the service's error if that is what the last try ended with, or the
   * signal's reason. Then its ticket is given up in the background, and the caller abandons the attempt.
   */
  async grant(attempt: AcquireAttempt, onContended: (record: LeaseRecord) => void): Promise<Granted> {
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
      // An owner that came back to a lease of its own has not taken its ticket along.
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

  /** The line shows nothing that is older than what it has shown before. */
  onItem(item: Item | undefined): void {
    this.#seen = { item };
    this.#sleep.wake();
  }

  onReleased(): void {
    if (this.estimate.position > 1) return;
    this.#isReleased = true;
    this.#sleep.wake();
  }

  /** Waits until the callers of this process that came before have a ticket, or have given up. */
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

  /** What the last answer promises now; undefined before the first, and where a release has made it obsolete. */
  #prospect(): Prospect | undefined {
    const prospect = this.#seen && this.#attempt.judge(this.#seen.item);
    return this.#isReleased ? undefined : prospect;
  }

  #isTurn(): boolean {
    const prospect = this.#prospect();
    if (this.#now() < this.#notBefore) return false;
    // Where nothing is known, a try tells most; and our own write may have landed unknown to us.
    const isOwn = prospect?.blocker?.token === this.#attempt.token;
    return prospect === undefined || prospect.claimableInMs <= 0 || isOwn;
  }

  /** Tries as long as it is our turn: at once where nobody waits, otherwise as the first living waiter. */
  async #tryInTurn(): Promise<Granted | undefined> {
    let granted: Granted | undefined;
    while (granted === undefined && this.#isTurn()) granted = await this.#tolerating(() => this.#tryOnce());
    return granted;
  }

  async #tryOnce(): Promise<Granted | undefined> {
    const { waitMs, signal } = this.#call;
    const prospect = this.#prospect();
    const isFirst = this.#seen === undefined;
    const withinMs = waitMs > 0 ? this.#budget.callMs : callBudgetMs;
    const outcome = await this.#attempt.try({ withinMs, signal }, prospect);
    // Another's seat that cannot be read takes nothing from a lease that was granted; a refusal has been read before.
    unlessUnreadable(() => this.learn(outcome.item), unreadableIn(this.context));
    if (outcome.granted) return outcome;
    this.#failure = undefined;
    const { blocker } = outcome.prospect;
    if (blocker !== undefined) this.#onContended(blocker);
    if (!isFirst) this.#notBefore = this.#now() + this.#headPollMs();
    return undefined;
  }

  /** Joins the line if our ticket is not there: for the first time, or because it was passed. */
  async #join(): Promise<void> {
    for (let tries = 0; tries < joinTries && this.#seen !== undefined; tries += 1) {
      if (this.own !== undefined || this.#isTurn()) return;
      const write = this.joining(this.#terms.maxWaiters);
      this.#mayHaveTicket = true;
      const isAnswered = await this.#tolerating(async () => {
        await this.send(write, this.#bounds(callBudgetMs));
        return true;
      });
      if (!isAnswered) return;
    }
  }

  /** Sleeps as long as our position allows, then looks; ends early when another waiter of this process has news. */
  async #rest(): Promise<void> {
    const mustRespond = this.#mustRespond();
    if (!mustRespond) {
      const delayMs = Math.max(1, Math.min(this.#sleepMs(), this.#budget.leftMs));
      if ((await this.#sleep.sleep(delayMs, this.#call.signal)) || this.#isTurn()) return;
    }
    const { own } = this;
    const renews = own !== undefined && (mustRespond || this.#isDue(own));
    const bounds = this.#bounds(lookBudgetMs);
    await this.#tolerating(async () => {
      const item = await (renews ? this.queue.lookAndRenew(this, bounds) : this.queue.look(bounds));
      if (renews || !isOlder(item, this.#seen?.item)) this.learn(item);
    });
  }

  /** Whether a ticket ends soon, and could last longer: near the end of the waiter's patience a renewal would win no time. */
  #isDue({ until }: QueueTicket): boolean {
    const pollMs = pollIntervalMs(this.estimate);
    const isShort = until - this.context.clock.now() < pollMs + renewAheadMs;
    return isShort && this.newTicket().until - until > pollMs;
  }

  /**
   * Whether to show that we are alive: the lease stays free, so the head may be dead, and neither we nor a waiter in front of us
   * has shown it lately.
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
    const fraction = this.context.randomness.fraction();
    const pollMs = pollIntervalMs(this.estimate) * (1 - jitterShare * fraction);
    const { freeForMs } = this.queue;
    let longestMs = pollMs;
    // While nobody takes a lease that is free, somebody in front may be dead; of several leases, the next one may be ours.
    if (freeForMs !== undefined) {
      longestMs = this.mayJoinFirst
        ? Math.min(Math.max(sharedLookMs, freeForMs / 8), freeLookMs)
        : freeLookMs;
    }
    // When nobody else can have the lease, however long our own sleep would be.
    const turnInMs = Math.max(this.#prospect()?.claimableInMs ?? 0, this.#notBefore - this.#now());
    return Math.min(pollMs, longestMs, turnInMs);
  }

  /** Takes on what an answer has shown. */
  protected learn(item: Item | undefined): void {
    this.#seen = { item };
    this.#isReleased = false;
    this.#attempt.judge(item);
    this.queue.broadcast(item, this);
  }

  /** Makes a request that a later one can make good: after an error that may pass, the next try waits a little. */
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

  #bounds(mostMs: number): Bounds {
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

  /** Gives our ticket up in the background, if there may be one. */
  #leave(): void {
    if (!this.#mayHaveTicket) return;
    const { key, sortKey, owner } = this.#call;
    const expiresAt = Math.ceil((this.own ?? this.newTicket()).until);
    const passed = inBackground(this.context, { key, sortKey, owner, operation: "leaveQueue" });
    const { gate, lifecycle, table } = this.context;
    const left = gate.giveBack(() => table.update(leave(this.queue, this.ticketId)));
    lifecycle.remove({ key, sortKey, expiresAt }, left, passed);
  }

  #unavailable(): LeaseUnavailableError {
    const { blocker, claimableInMs = 0 } = this.#prospect() ?? {};
    const waiting = this.estimate.position - 1;
    return refusalOf(this.form, this.#call, blocker, Math.ceil(claimableInMs), waiting);
  }

  #now(): number {
    return this.context.clock.monotonic();
  }
}
