import { type Clock, sleep, WakeableSleep } from "../base/clock.ts";
import type { LeaseUnavailableError } from "../base/errors.ts";
import type { LeaseRecord } from "../base/lease-record.ts";
import { passing, unlessPassing } from "../base/operational.ts";
import { retryPauses } from "../base/retry.ts";
import { leaseItemKey } from "../base/schema.ts";
import type { Item } from "../base/store.ts";
import { callBudgetMs, shortestBudgetMs } from "../base/timed-call.ts";
import type { Attempt, Granted, LeaseTerms, Refused } from "./attempt.ts";
import type { Core } from "./core.ts";
import { type Availability, type LeaseForm, refusalOf, unblocked } from "./form.ts";
import { type HoldWatch, holdWatches } from "./hold-estimate.ts";
import type { Order, WaitTerms } from "./order.ts";
import { type SharedLooks, sharedLooks } from "./shared-looks.ts";

/** One caller's time for its wait, on the monotonic clock. */
export class WaitBudget {
  readonly #clock: Clock;
  readonly #deadline: number;

  constructor(clock: Clock, waitMs: number) {
    this.#clock = clock;
    this.#deadline = clock.monotonic() + waitMs;
  }

  get leftMs(): number {
    return this.#deadline - this.#clock.monotonic();
  }

  /** How long one more call to the service may take. The last call gets the time that an answer needs. */
  get callMs(): number {
    return Math.max(this.leftMs, shortestBudgetMs);
  }
}

/** The leases that keep a caller out, as a try or a look has shown them. */
export interface Blocked {
  readonly blockers: readonly LeaseRecord[];
  /** When a try can succeed if nothing changes, on the monotonic clock. */
  readonly claimableAt: number;
}

/** The acquisition that is tried repeatedly: of one lease, or of several. */
interface Tries<Outcome, Known> {
  try(
    callBudget: { readonly withinMs: number; readonly signal: AbortSignal | undefined },
    known: Known | undefined,
  ): Promise<Outcome>;
}

/**
 * One caller's wait: it tries until it has the lease or its time is over.
 *
 * Between tries it looks with reads that may lag and cost a tenth of a refused write. It tries only when a read shows
 * room, or when the holder's lease has expired.
 */
export abstract class WaitLoop<
  Granted extends { readonly granted: true },
  Refused extends { readonly granted: false },
  B extends Blocked,
  A extends Tries<Granted | Refused, B>,
> {
  protected readonly core: Core;
  protected readonly terms: WaitTerms;
  protected readonly budget: WaitBudget;
  /** Created when the lease is held: most callers never wait. */
  #nextPauseMs: ReturnType<typeof retryPauses> | undefined;

  constructor(core: Core, terms: WaitTerms) {
    this.core = core;
    this.terms = terms;
    this.budget = new WaitBudget(core.clock, terms.waitMs);
  }

  /** What the next request may take, as of now. */
  protected get callBudget(): Parameters<A["try"]>[0] {
    const { signal, waitMs } = this.terms;
    return { withinMs: waitMs > 0 ? this.budget.callMs : Number.POSITIVE_INFINITY, signal };
  }

  /** The same for a look: one that hangs leaves time for others. */
  protected get lookBudget(): { readonly withinMs: number; readonly signal: AbortSignal | undefined } {
    const { signal, withinMs } = this.callBudget;
    return { withinMs: Math.min(withinMs, callBudgetMs), signal };
  }

  /** What is known of how long holders keep the lease. */
  protected get holds(): HoldWatch | undefined {
    return undefined;
  }

  /** How many callers share their looks. */
  protected get crowd(): number {
    return 1;
  }

  /** Whether another caller's look or try has shown what keeps this caller out; then `look` returns that. */
  protected get hasNews(): boolean {
    return false;
  }

  /** What a refusal has shown. */
  protected abstract blockedBy(refused: Refused): B;

  /** Reads what is in the way, without a write. */
  protected abstract look(attempt: A, blocked: B): Promise<B>;

  /** Tries, or returns what another caller's look or try has shown. */
  protected tryOnce(attempt: A, known: B | undefined): Promise<Granted | Refused | B> {
    return attempt.try(this.callBudget, known);
  }

  /** Sleeps between two looks. */
  protected rest(delayMs: number): Promise<unknown> {
    return sleep(this.core.clock, delayMs, this.terms.signal);
  }

  /** Called when a try or a look has shown for the first time what keeps the caller out. */
  protected beginWaiting(_: A): void {}

  /** Called when the wait is over, however it ends. */
  protected endWaiting(): void {}

  /** The error when the time of the wait is over. */
  protected abstract unavailable(blocked: B): Error;

  /**
   * Returns the grant. Rejects when the time is over: with the service's error if the last try failed with it. Also
   * rejects with the signal's reason. After a rejection the caller abandons the attempt.
   */
  async grant(attempt: A, onContended: (record: LeaseRecord) => void): Promise<Granted> {
    const { signal } = this.terms;
    let known: B | undefined;
    try {
      for (;;) {
        let blocked: B;
        try {
          const outcome = await this.tryOnce(attempt, known);
          if (!("granted" in outcome)) blocked = outcome;
          else if (outcome.granted) return outcome;
          else blocked = this.blockedBy(outcome);
        } catch (error) {
          signal?.throwIfAborted();
          const failure = passing(error);
          const pauseMs = this.#pauseMs(() => failure);
          await sleep(this.core.clock, pauseMs, signal);
          // Nothing is known any more, and an own write may have landed: only a try shows it.
          known = undefined;
          continue;
        }
        for (const blocker of blocked.blockers) {
          this.beginWaiting(attempt);
          onContended(blocker);
        }
        known = await this.#untilWorthwhile(attempt, blocked);
      }
    } finally {
      this.endWaiting();
    }
  }

  /** Sleeps and looks until another try can succeed. Returns what the last look has shown. */
  async #untilWorthwhile(attempt: A, last: B): Promise<B | undefined> {
    const { clock } = this.core;
    let blocked = last;
    for (;;) {
      await this.rest(this.#pauseMs(() => this.unavailable(blocked), blocked.claimableAt));
      if (!this.hasNews && clock.monotonic() >= blocked.claimableAt) return undefined;
      const seen = await unlessPassing(() => this.look(attempt, blocked), this.terms.signal);
      if (seen === undefined) continue;
      if (seen.claimableAt <= clock.monotonic()) return seen;
      blocked = seen;
    }
  }

  /** How long to sleep until the next try or look. Throws the given reason when no time is left for one. */
  #pauseMs(reason: () => Error, claimableAt?: number): number {
    const { leftMs } = this.budget;
    if (leftMs <= 0) throw reason();
    this.#nextPauseMs ??= retryPauses(this.core, this.terms.retry, this.holds, () => this.crowd);
    const pauseMs = this.#nextPauseMs(claimableAt);
    if (pauseMs === Number.POSITIVE_INFINITY) throw reason();
    return Math.min(pauseMs, leftMs);
  }
}

/** What an item promised when it was read. */
interface BlockedLease extends Blocked, Availability {}

/** The attempt: to acquire, or only to see whether there would be room. */
interface Tried<Won> extends Pick<Attempt, "token" | "judge"> {
  try(callBudget: Parameters<Attempt["try"]>[0], known?: Availability): Promise<Won | Refused>;
}

type Call = WaitTerms & Pick<LeaseTerms, "key" | "sortKey" | "owner" | "reentrant">;

/**
 * One caller's unordered wait for one lease. Every waiting caller tries for itself. The callers of one client share
 * their looks, and try one after the other: the first try shows the others who holds it.
 */
export class RetryLoop<Won extends { readonly granted: true } = Granted> extends WaitLoop<
  Won,
  Refused,
  BlockedLease,
  Tried<Won>
> {
  readonly form: LeaseForm;
  declare protected readonly terms: Call;
  /** Created with the first sleep. */
  #sleep: WakeableSleep | undefined;
  /** Created when the lease is held. */
  #shared: SharedLooks | undefined;
  #leave: (() => void) | undefined;
  /** Whether it accepts other waiters' answers. Not during an own request, whose answer may be newer. */
  #isListening = false;
  /** Another caller's answer, judged for this caller when it arrived. */
  #news: { readonly blocked: BlockedLease } | { readonly error: unknown } | undefined;

  constructor(core: Core, form: LeaseForm, call: Call) {
    super(core, call);
    this.form = form;
  }

  protected override beginWaiting(attempt: Tried<Won>): void {
    this.#join(attempt);
  }

  protected override endWaiting(): void {
    this.#leave?.();
  }

  protected override get holds(): HoldWatch {
    return holdWatches.of(this.core, this.form.key, this.form.sortKey);
  }

  protected override get crowd(): number {
    return this.#shared?.crowd ?? 1;
  }

  protected override get hasNews(): boolean {
    return this.#news !== undefined;
  }

  protected override rest(delayMs: number): Promise<unknown> {
    this.#sleep ??= new WakeableSleep(this.core.clock);
    const { signal } = this.terms;
    const sleep = this.#sleep;
    return this.#listening(() => sleep.sleep(delayMs, signal));
  }

  /** Its first try waits for no other caller, and informs none: a thousand callers may come at once. */
  protected override tryOnce(
    attempt: Tried<Won>,
    known: BlockedLease | undefined,
  ): Promise<Won | Refused | BlockedLease> {
    const shared = this.#shared;
    return shared === undefined
      ? attempt.try(this.callBudget, known)
      : this.#tryInTurn(shared, attempt, known);
  }

  async #tryInTurn(
    shared: SharedLooks,
    attempt: Tried<Won>,
    known: BlockedLease | undefined,
  ): Promise<Won | BlockedLease> {
    const end = await this.#begin(shared, "try");
    if (end === undefined) return this.#takeNews();
    try {
      const outcome = await attempt.try(this.callBudget, known);
      if ("item" in outcome) shared.tell(outcome.item as Item | undefined);
      return outcome.granted ? outcome : this.blockedBy(outcome);
    } finally {
      end();
    }
  }

  protected blockedBy({ availability }: Refused): BlockedLease {
    return this.#asOfNow(availability);
  }

  protected async look(attempt: Tried<Won>): Promise<BlockedLease> {
    const shared = this.#join(attempt);
    const { key, sortKey } = this.terms;
    const { core } = this;
    const end = await this.#begin(shared, "look");
    if (end === undefined) return this.#takeNews();
    try {
      const request = { key: leaseItemKey(key, sortKey), consistent: false };
      const budget = this.lookBudget;
      const item = await core.gate.pass(budget, (withinMs) => core.get(request, { ...budget, withinMs }));
      shared.tell(item);
      return this.#judged(attempt, item);
    } finally {
      end();
    }
  }

  #join(attempt: Tried<Won>): SharedLooks {
    if (this.#shared !== undefined) return this.#shared;
    this.#shared = sharedLooks.of(this.core, this.form.key, this.form.sortKey);
    this.#leave = this.#shared.join((item) => this.#hear(attempt, item));
    return this.#shared;
  }

  /**
   * Uses another caller's answer if it shows that this caller has to go on waiting: then the next look comes that much
   * later. If the answer shows room, the other caller tries first, and this caller keeps its own time.
   */
  #hear(attempt: Tried<Won>, item: Item | undefined): void {
    if (!this.#isListening) return;
    try {
      const blocked = this.#judged(attempt, item);
      if (blocked.claimableAt <= this.core.clock.monotonic()) return;
      this.#news = { blocked };
    } catch (error) {
      // Thrown by `look`, as if this caller had seen it.
      this.#news = { error };
    }
    this.#sleep?.wake();
  }

  #takeNews(): BlockedLease {
    const news = this.#news;
    this.#news = undefined;
    if (news !== undefined && "blocked" in news) return news.blocked;
    throw news?.error;
  }

  /** Waits for another caller's look or try, at most until this caller's own time for a look. */
  async #begin(
    shared: SharedLooks,
    step: Parameters<SharedLooks["begin"]>[0],
  ): Promise<(() => void) | undefined> {
    const { clock } = this.core;
    const callBudget = { withinMs: this.budget.leftMs, signal: this.terms.signal };
    const end = await this.#listening(() => shared.begin(step, clock, () => this.hasNews, callBudget));
    // This caller's own answer will be newer.
    if (end !== undefined) this.#news = undefined;
    return end;
  }

  async #listening<T>(wait: () => Promise<T>): Promise<T> {
    this.#isListening = true;
    try {
      return await wait();
    } finally {
      this.#isListening = false;
    }
  }

  #judged(attempt: Tried<Won>, item: Item | undefined): BlockedLease {
    const availability = attempt.judge(item);
    // The next try recognises an own write that landed late.
    const isOwn = availability.blocker?.token === attempt.token;
    return this.#asOfNow(isOwn ? unblocked : availability);
  }

  protected unavailable({ blocker, claimableAt }: BlockedLease): LeaseUnavailableError {
    const retryAfterMs = Math.max(0, Math.ceil(claimableAt - this.core.clock.monotonic()));
    return refusalOf(this.form, this.terms, blocker, retryAfterMs);
  }

  #asOfNow(availability: Availability): BlockedLease {
    const { blocker, claimableInMs } = availability;
    if (blocker !== undefined) this.holds.see(blocker);
    const claimableAt = this.core.clock.monotonic() + claimableInMs;
    return { ...availability, blockers: blocker === undefined ? [] : [blocker], claimableAt };
  }
}

/** No order: the first caller that tries after the release gets the lease. */
export const unordered: Order = { begin: (core, form, call) => new RetryLoop(core, form, call) };
