import { passing, unlessPassing } from "../errors/operational.ts";
import { callBudgetMs } from "../time/budget.ts";
import { sleep } from "../time/clock.ts";
import { RetryPauses, type RetryStrategy } from "../time/retry.ts";
import { WaitBudget } from "../time/wait-budget.ts";
import type { ProtocolContext } from "./context.ts";

/** How long to wait, and in what rhythm. */
export interface WaitTerms {
  readonly waitMs: number;
  readonly retry: RetryStrategy;
  readonly signal: AbortSignal | undefined;
}

/** What a try or a look has shown that keeps it from the caller. */
export interface Blocked {
  /** When a try can hope to succeed if nothing changes, on the monotonic clock. */
  readonly claimableAt: number;
}

/** What one caller waits for: a lease, or several. */
export interface Wanted<Granted, Refused, B extends Blocked> {
  /** Tries once, by what the last look has shown, if it has shown that a try can succeed. */
  try(bounds: TryBounds, known?: B): Promise<Granted | Refused>;
  /** What a refusal has shown. */
  blockedBy(refused: Refused): B;
  /** Looks without writing at what was in the way. */
  look(blocked: B, withinMs: number): Promise<B>;
  /** What the wait ends with when its time is over. */
  unavailable(blocked: B): Error;
}

/** What bounds one try. */
export interface TryBounds {
  readonly withinMs: number;
  readonly signal: AbortSignal | undefined;
}

/**
 * One caller's unordered wait: tries until what it wants is its own or its time is over.
 *
 * Between tries it looks with reads that may lag and cost a tenth of a refused write; it tries only when a read shows
 * that there is room, or when the holder's time is up.
 */
export class RetryLoop<
  Granted extends { readonly granted: true },
  Refused extends { readonly granted: false },
  B extends Blocked,
> {
  readonly #context: ProtocolContext;
  readonly #terms: WaitTerms;
  readonly #wanted: Wanted<Granted, Refused, B>;
  readonly #budget: WaitBudget;
  readonly #pauses: RetryPauses;

  constructor(context: ProtocolContext, terms: WaitTerms, wanted: Wanted<Granted, Refused, B>) {
    this.#context = context;
    this.#terms = terms;
    this.#wanted = wanted;
    this.#budget = new WaitBudget(context.clock, terms.waitMs);
    this.#pauses = new RetryPauses(context, terms.retry);
  }

  /** Gives the grant. Rejects when the time is over, with what the last try ended with, and with the signal's reason. */
  async grant(): Promise<Granted> {
    const { signal, waitMs } = this.#terms;
    let known: B | undefined;
    for (;;) {
      const withinMs = waitMs > 0 ? this.#budget.callMs : Number.POSITIVE_INFINITY;
      let refused: Refused;
      try {
        const outcome = await this.#wanted.try({ withinMs, signal }, known);
        if (outcome.granted) return outcome;
        refused = outcome;
      } catch (error) {
        signal?.throwIfAborted();
        const failure = passing(error);
        await this.#pause(() => failure);
        // Nothing is known any more, and an own write may have landed: only a try tells.
        known = undefined;
        continue;
      }
      known = await this.#untilWorthwhile(this.#wanted.blockedBy(refused));
    }
  }

  /** Sleeps and looks until another try can hope for success, and gives what the last look has shown. */
  async #untilWorthwhile(last: B): Promise<B | undefined> {
    const { clock } = this.#context;
    let blocked = last;
    for (;;) {
      await this.#pause(() => this.#wanted.unavailable(blocked), blocked.claimableAt);
      if (clock.monotonic() >= blocked.claimableAt) return undefined;
      const withinMs = Math.min(this.#budget.callMs, callBudgetMs);
      const seen = await unlessPassing(() => this.#wanted.look(blocked, withinMs), this.#terms.signal);
      if (seen === undefined) continue;
      if (seen.claimableAt <= clock.monotonic()) return seen;
      blocked = seen;
    }
  }

  /** Sleeps until the next try or look; throws the reason to give up when there is no time left for one. */
  async #pause(reason: () => Error, claimableAt?: number): Promise<void> {
    const { leftMs } = this.#budget;
    if (leftMs <= 0) throw reason();
    await sleep(this.#context.clock, Math.min(this.#pauses.nextMs(claimableAt), leftMs), this.#terms.signal);
  }
}
