import { type LeaseServiceError, LeaseUnavailableError } from "../errors/errors.ts";
import { passing, unlessPassing } from "../errors/operational.ts";
import type { LeaseRecord } from "../record.ts";
import { leaseItemKey } from "../schema.ts";
import { callBudgetMs } from "../time/budget.ts";
import { sleep } from "../time/clock.ts";
import { RetryPauses, type RetryStrategy } from "../time/retry.ts";
import { WaitBudget } from "../time/wait-budget.ts";
import type { AcquireAttempt, AcquireTerms, Granted } from "./acquire-attempt.ts";
import type { ProtocolContext } from "./context.ts";
import { type HoldWatch, holdWatches } from "./hold-estimate.ts";
import type { LeaseForm, Prospect } from "./lease-form.ts";
import type { OrderedWait, WaitOrder } from "./wait-order.ts";

/** How long to wait, and in what rhythm. */
export interface WaitTerms {
  readonly waitMs: number;
  readonly retry: RetryStrategy;
  readonly signal: AbortSignal | undefined;
}

/** What is known of the lease between two tries. */
interface Outlook {
  readonly prospect: Prospect;
  /** When a try can hope to succeed, on the monotonic clock. */
  readonly claimableAt: number;
  /** Why the last try has told nothing about the lease. */
  readonly failure: LeaseServiceError | undefined;
}

const nothingKnown: Prospect = { blocker: undefined, claimableInMs: 0, takeovers: [] };

/**
 * One caller's unordered wait: tries until the lease is its own or its time is over.
 *
 * Between tries it looks with reads that may lag and cost a tenth of a refused write; it tries only when a read shows
 * that there is room, or when the holder's time is up.
 */
export class RetryLoop implements OrderedWait {
  readonly form: LeaseForm;
  readonly #context: ProtocolContext;
  readonly #call: AcquireTerms & WaitTerms;
  readonly #budget: WaitBudget;
  readonly #holds: HoldWatch;
  readonly #pauses: RetryPauses;

  constructor(context: ProtocolContext, form: LeaseForm, call: AcquireTerms & WaitTerms) {
    this.form = form;
    this.#context = context;
    this.#call = call;
    this.#budget = new WaitBudget(context.clock, call.waitMs);
    this.#holds = holdWatches.of(context, form.key, form.sortKey);
    this.#pauses = new RetryPauses(context, call.retry, this.#holds);
  }

  async grant(attempt: AcquireAttempt, onContended: (record: LeaseRecord) => void): Promise<Granted> {
    const { signal, waitMs } = this.#call;
    let known: Prospect | undefined;
    for (;;) {
      let outlook: Outlook;
      try {
        const withinMs = waitMs > 0 ? this.#budget.callMs : Number.POSITIVE_INFINITY;
        const outcome = await attempt.try({ withinMs, signal }, known);
        if (outcome.granted) return outcome;
        outlook = this.#outlookOf(outcome.prospect);
        if (outcome.prospect.blocker !== undefined) onContended(outcome.prospect.blocker);
      } catch (error) {
        signal?.throwIfAborted();
        const failure = passing(error);
        outlook = { prospect: nothingKnown, claimableAt: Number.POSITIVE_INFINITY, failure };
      }
      known = await this.#untilWorthwhile(attempt, outlook);
    }
  }

  /**
   * Sleeps and looks until another try can hope for success, and gives what the last look has shown; rejects when there
   * is no time left for one.
   */
  async #untilWorthwhile(attempt: AcquireAttempt, last: Outlook): Promise<Prospect | undefined> {
    const { clock } = this.#context;
    let outlook = last;
    for (;;) {
      if (this.#budget.leftMs <= 0) throw outlook.failure ?? this.#unavailable(outlook);
      const delayMs = this.#pauses.nextMs(outlook.claimableAt);
      await sleep(clock, Math.min(delayMs, this.#budget.leftMs), this.#call.signal);
      // After a failure nothing is known of the lease, and our own write may have landed: only a try tells.
      if (outlook.failure !== undefined || clock.monotonic() >= outlook.claimableAt) return undefined;
      const prospect = await this.#look(attempt);
      if (prospect === undefined) continue;
      // An own write that landed late is recognised by the next try, too.
      if (prospect.blocker?.token === attempt.token) return undefined;
      if (prospect.claimableInMs <= 0) return prospect;
      outlook = this.#outlookOf(prospect);
    }
  }

  /** Looks without writing; undefined where the look was not answered, which the next one makes good. */
  async #look(attempt: AcquireAttempt): Promise<Prospect | undefined> {
    const { gate, table } = this.#context;
    const { signal, key, sortKey } = this.#call;
    const withinMs = Math.min(this.#budget.callMs, callBudgetMs);
    const request = { key: leaseItemKey(key, sortKey), consistent: false };
    return await unlessPassing(async () => {
      const item = await gate.pass({ signal, withinMs }, (leftMs) =>
        table.get(request, { withinMs: leftMs, signal }),
      );
      return attempt.judge(item);
    }, signal);
  }

  #outlookOf(prospect: Prospect): Outlook {
    if (prospect.blocker !== undefined) this.#holds.see(prospect.blocker);
    const claimableAt = this.#context.clock.monotonic() + prospect.claimableInMs;
    return { prospect, claimableAt, failure: undefined };
  }

  #unavailable({ prospect: { blocker }, claimableAt }: Outlook): LeaseUnavailableError {
    const { key, owner, reentrant, waitMs } = this.#call;
    const retryAfterMs = Math.max(0, Math.ceil(claimableAt - this.#context.clock.monotonic()));
    const isOwn = blocker?.owner === owner && !blocker.closed && !reentrant;
    const what = this.form.describe?.(blocker);
    const details = { waitedMs: waitMs, isOwn, ...(what === undefined ? {} : { what }) };
    return new LeaseUnavailableError(key, blocker, retryAfterMs, details);
  }
}

/** No order: the first caller that tries after the lease was let go has it. */
export const unordered: WaitOrder = { begin: (context, form, call) => new RetryLoop(context, form, call) };
