import type { LeaseUnavailableError } from "../errors/errors.ts";
import { passing, unlessPassing } from "../errors/operational.ts";
import type { LeaseRecord } from "../record.ts";
import { leaseItemKey } from "../schema.ts";
import { callBudgetMs, shortestBudgetMs } from "../store/timed-store.ts";
import { type Clock, sleep } from "../time/clock.ts";
import { type RetryStrategy, retryPauses } from "../time/retry.ts";
import type { AcquireAttempt, AcquireTerms, Granted, Refused } from "./acquire-attempt.ts";
import type { ProtocolContext } from "./context.ts";
import { type HoldWatch, holdWatches } from "./hold-estimate.ts";
import { type LeaseForm, type Prospect, refusalOf } from "./lease-form.ts";
import type { WaitOrder } from "./wait-order.ts";

/** How long to wait, and in what rhythm. */
export interface WaitTerms {
  readonly waitMs: number;
  readonly retry: RetryStrategy;
  readonly signal: AbortSignal | undefined;
}

/** The time that one caller gives its wait, on the monotonic clock. */
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

  /** How long one more call to the service may take: a last one gets the time that an answer needs. */
  get callMs(): number {
    return Math.max(this.leftMs, shortestBudgetMs);
  }
}

/** What keeps a caller out, as a try or a look has shown it. */
export interface Blocked {
  readonly blockers: readonly LeaseRecord[];
  /** When a try can hope to succeed if nothing changes, on the monotonic clock. */
  readonly claimableAt: number;
}

/** What is tried again and again: an acquisition of one lease, or of several. */
interface Attempt<Outcome, Known> {
  try(
    bounds: { readonly withinMs: number; readonly signal: AbortSignal | undefined },
    known: Known | undefined,
  ): Promise<Outcome>;
}

/**
 * One caller's wait: tries until what it wants is its own or its time is over.
 *
 * Between tries it looks with reads that may lag and cost a tenth of a refused write; it tries only when a read shows
 * that there is room, or when the holder's time is up.
 */
export abstract class WaitLoop<
  Granted extends { readonly granted: true },
  Refused extends { readonly granted: false },
  B extends Blocked,
  A extends Attempt<Granted | Refused, B>,
> {
  protected readonly context: ProtocolContext;
  readonly #terms: WaitTerms;
  readonly #budget: WaitBudget;
  /** Made when something is in the way: most callers never wait. */
  #nextPauseMs: ReturnType<typeof retryPauses> | undefined;

  constructor(context: ProtocolContext, terms: WaitTerms) {
    this.context = context;
    this.#terms = terms;
    this.#budget = new WaitBudget(context.clock, terms.waitMs);
  }

  /** What is known of how long holders keep what is waited for. */
  protected get holds(): HoldWatch | undefined {
    return undefined;
  }

  /** What a refusal has shown. */
  protected abstract blockedBy(refused: Refused): B;

  /** Looks without writing at what is in the way. */
  protected abstract look(attempt: A, blocked: B, withinMs: number): Promise<B>;

  /** What the wait ends with when its time is over. */
  protected abstract unavailable(blocked: B): Error;

  /**
   * Gives the grant. Rejects when the time is over, with the service's error if that is what the last try ended with, and
   * with the signal's reason; the caller abandons the attempt then.
   */
  async grant(attempt: A, onContended: (record: LeaseRecord) => void): Promise<Granted> {
    const { signal, waitMs } = this.#terms;
    let known: B | undefined;
    for (;;) {
      let blocked: B;
      try {
        const withinMs = waitMs > 0 ? this.#budget.callMs : Number.POSITIVE_INFINITY;
        const outcome = await attempt.try({ withinMs, signal }, known);
        if (outcome.granted) return outcome;
        blocked = this.blockedBy(outcome);
      } catch (error) {
        signal?.throwIfAborted();
        const failure = passing(error);
        await this.#pause(() => failure);
        // Nothing is known any more, and an own write may have landed: only a try tells.
        known = undefined;
        continue;
      }
      for (const blocker of blocked.blockers) onContended(blocker);
      known = await this.#untilWorthwhile(attempt, blocked);
    }
  }

  /** Sleeps and looks until another try can hope for success, and gives what the last look has shown. */
  async #untilWorthwhile(attempt: A, last: B): Promise<B | undefined> {
    const { clock } = this.context;
    let blocked = last;
    for (;;) {
      await this.#pause(() => this.unavailable(blocked), blocked.claimableAt);
      if (clock.monotonic() >= blocked.claimableAt) return undefined;
      const withinMs = Math.min(this.#budget.callMs, callBudgetMs);
      const seen = await unlessPassing(() => this.look(attempt, blocked, withinMs), this.#terms.signal);
      if (seen === undefined) continue;
      if (seen.claimableAt <= clock.monotonic()) return seen;
      blocked = seen;
    }
  }

  /** Sleeps until the next try or look; throws the reason to give up when there is no time left for one. */
  async #pause(reason: () => Error, claimableAt?: number): Promise<void> {
    const { leftMs } = this.#budget;
    if (leftMs <= 0) throw reason();
    const { retry, signal } = this.#terms;
    this.#nextPauseMs ??= retryPauses(this.context, retry, this.holds);
    const pauseMs = this.#nextPauseMs(claimableAt);
    if (pauseMs === Number.POSITIVE_INFINITY) throw reason();
    await sleep(this.context.clock, Math.min(pauseMs, leftMs), signal);
  }
}

/** What an item promised when it was read. */
interface BlockedLease extends Blocked, Prospect {}

/** What is tried: to acquire, or to see whether there would be room. */
interface Tried<Won> extends Pick<AcquireAttempt, "token" | "judge"> {
  try(bounds: Parameters<AcquireAttempt["try"]>[0], known?: Prospect): Promise<Won | Refused>;
}

type Call = WaitTerms & Pick<AcquireTerms, "key" | "sortKey" | "owner" | "reentrant">;

/** One caller's unordered wait for one lease: every waiting caller tries for itself. */
export class RetryLoop<Won extends { readonly granted: true } = Granted> extends WaitLoop<
  Won,
  Refused,
  BlockedLease,
  Tried<Won>
> {
  readonly form: LeaseForm;
  readonly #call: Call;

  constructor(context: ProtocolContext, form: LeaseForm, call: Call) {
    super(context, call);
    this.form = form;
    this.#call = call;
  }

  protected override get holds(): HoldWatch {
    return holdWatches.of(this.context, this.form.key, this.form.sortKey);
  }

  protected blockedBy({ prospect }: Refused): BlockedLease {
    return this.#asOfNow(prospect);
  }

  protected async look(attempt: Tried<Won>, _: BlockedLease, withinMs: number): Promise<BlockedLease> {
    const { gate, table } = this.context;
    const { signal, key, sortKey } = this.#call;
    const request = { key: leaseItemKey(key, sortKey), consistent: false };
    const item = await gate.pass({ signal, withinMs }, (leftMs) =>
      table.get(request, { withinMs: leftMs, signal }),
    );
    const prospect = attempt.judge(item);
    // An own write that landed late is recognised by the next try, which takes the place of no lease.
    const isOwn = prospect.blocker?.token === attempt.token;
    return this.#asOfNow(isOwn ? { ...prospect, claimableInMs: 0, takeovers: [] } : prospect);
  }

  protected unavailable({ blocker, claimableAt }: BlockedLease): LeaseUnavailableError {
    const retryAfterMs = Math.max(0, Math.ceil(claimableAt - this.context.clock.monotonic()));
    return refusalOf(this.form, this.#call, blocker, retryAfterMs);
  }

  #asOfNow(prospect: Prospect): BlockedLease {
    const { blocker, claimableInMs } = prospect;
    if (blocker !== undefined) this.holds.see(blocker);
    const claimableAt = this.context.clock.monotonic() + claimableInMs;
    return { ...prospect, blockers: blocker === undefined ? [] : [blocker], claimableAt };
  }
}

/** No order: the first caller that tries after the lease was let go has it. */
export const unordered: WaitOrder = { begin: (context, form, call) => new RetryLoop(context, form, call) };
