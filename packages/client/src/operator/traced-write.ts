import { LeaseServiceError } from "../errors/errors.ts";
import type { ProtocolContext } from "../protocol/context.ts";
import { sleepWhileOpen } from "../protocol/lifecycle.ts";
import { WaitBudget } from "../protocol/wait-loop.ts";
import { callBudgetMs } from "../store/timed-store.ts";
import type { Write } from "../store/write.ts";
import type { Item } from "../store.ts";
import { retryPauses } from "../time/retry.ts";
import { type AuditEntry, leaveTrace } from "./audit-entry.ts";

/** One that hangs leaves time for others. */
const longestTryMs = 3_000;
const pauses = { strategy: "fullJitter", delayMs: 50, maxDelayMs: 1_000 } as const;

/**
 * A write and the trace of it, in one transaction. The trace has an id of its own: by it an earlier copy whose answer was
 * lost is recognised, however often the transaction is sent.
 */
export class TracedWrite {
  readonly #context: ProtocolContext;
  readonly #trace: Write;
  readonly #budget: WaitBudget;
  readonly #nextPauseMs: () => number;

  constructor(context: ProtocolContext, entry: AuditEntry, retentionMs: number) {
    this.#context = context;
    this.#trace = leaveTrace(entry, context.randomness.token().slice(-12), retentionMs);
    this.#budget = new WaitBudget(context.clock, callBudgetMs);
    this.#nextPauseMs = retryPauses(context, pauses);
  }

  /**
   * Sends it, and again after a conflict, a throttle or a lost answer, for up to 10 s. Gives the item that has refused it.
   * Rejects when the service fails for longer.
   */
  async send(
    write: Write,
    signal?: AbortSignal,
  ): Promise<{ readonly applied: true } | { readonly applied: false; readonly item: Item | undefined }> {
    const { table } = this.#context;
    for (;;) {
      try {
        const { applied, refusals } = await table.transact([write, this.#trace], {
          withinMs: longestTryMs,
          signal,
        });
        if (applied || refusals[1] !== undefined) return { applied: true };
        return { applied: false, item: refusals[0]?.item };
      } catch (error) {
        const isTransient = error instanceof LeaseServiceError && error.retryable;
        if (!isTransient || this.#budget.leftMs <= 0) throw error;
      }
      await sleepWhileOpen(this.#context, Math.min(this.#nextPauseMs(), this.#budget.leftMs), signal);
    }
  }
}
