import { LeaseError, LeaseServiceError } from "../errors/errors.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import { WaitBudget } from "../protocol/wait-loop.ts";
import type { Write } from "../statements/statement.ts";
import { callBudgetMs } from "../store/timed-store.ts";
import type { TransactionResult } from "../store.ts";
import { sleep } from "../time/clock.ts";
import { retryPauses } from "../time/retry.ts";
import { type AuditEntry, leaveTrace, occupyTrace } from "./audit-entry.ts";

/** One that hangs leaves time for others. */
const longestTryMs = 3_000;
const pauses = { strategy: "fullJitter", delayMs: 50, maxDelayMs: 1_000 } as const;

/**
 * Writes and the trace of them, in one transaction. The trace has an id of its own: by it an earlier copy whose answer was
 * lost is recognised, however often the transaction is sent.
 */
export class TracedWrite {
  readonly #context: ProtocolContext;
  readonly #trace: Write;
  readonly #budget: WaitBudget;
  readonly #nextPauseMs: () => number;
  /** Whether a copy may have landed, or may still land, that no answer tells of. */
  mayHaveLanded = false;

  constructor(context: ProtocolContext, entry: AuditEntry, retentionMs: number) {
    this.#context = context;
    this.#trace = leaveTrace(entry, context.randomness.token().slice(-12), retentionMs);
    this.#budget = new WaitBudget(context.clock, callBudgetMs);
    this.#nextPauseMs = retryPauses(context, pauses);
  }

  /**
   * Sees to it that no copy lands any more: takes the place of the trace. 1 request. Tells whether that is so; false where
   * one has landed already.
   */
  async revoke(): Promise<boolean> {
    const write = occupyTrace(this.#trace);
    return (await this.#context.table.update(write, { withinMs: longestTryMs })).applied;
  }

  /**
   * Sends it, and again after a conflict, a throttle or a lost answer, for up to 10 s; on a closed client, too. Gives what
   * has refused it.
   *
   * Rejects when the service fails for longer, and with the signal's reason. An error of the service's says whether any
   * copy may have landed.
   */
  async send(
    writes: readonly Write[],
    signal?: AbortSignal,
  ): Promise<
    { readonly applied: true } | (Pick<TransactionResult, "refusals"> & { readonly applied: false })
  > {
    const { clock, table } = this.#context;
    for (;;) {
      try {
        const bounds = { withinMs: longestTryMs, signal };
        const { applied, refusals, retried } = await table.transact([...writes, this.#trace], bounds);
        const isDone = applied || refusals[writes.length] !== undefined;
        // An answer that shows no trace of it does not tell of a copy that is still under way.
        this.mayHaveLanded = !isDone && (retried || this.mayHaveLanded);
        return isDone ? { applied: true } : { applied: false, refusals };
      } catch (error) {
        if (!(error instanceof LeaseError)) throw error;
        this.mayHaveLanded ||= error.mayHaveLanded;
        const isTransient = error instanceof LeaseServiceError && error.retryable;
        if (!isTransient || this.#budget.leftMs <= 0) {
          throw Object.assign(error, { mayHaveLanded: this.mayHaveLanded });
        }
      }
      await sleep(clock, Math.min(this.#nextPauseMs(), this.#budget.leftMs), signal);
    }
  }
}
