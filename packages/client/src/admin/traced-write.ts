import { sleep } from "../base/clock.ts";
import { LeaseError, LeaseServiceError } from "../base/errors.ts";
import { retryPauses } from "../base/retry.ts";
import type { TransactionResult } from "../base/store.ts";
import { callBudgetMs } from "../base/timed-call.ts";
import type { Core } from "../core/core.ts";
import { transact } from "../core/requests.ts";
import { WaitBudget } from "../core/wait-loop.ts";
import type { Write } from "../statements/statement.ts";
import { type AuditEntry, leaveTrace, occupyTrace } from "./audit-entry.ts";

/** The longest try: a hanging try leaves time for others. */
const longestTracedTryMs = 3_000;
const pauses = { strategy: "fullJitter", delayMs: 50, maxDelayMs: 1_000 } as const;

/**
 * Writes together with their trace, in one transaction. The trace has its own id, which identifies an earlier copy
 * whose answer was lost, however often the transaction is sent.
 */
export class TracedWrite {
  readonly #core: Core;
  readonly #trace: Write;
  readonly #budget: WaitBudget;
  readonly #nextPauseMs: () => number;
  /** Whether a copy may have landed, or may still land, without an answer. */
  mayHaveLanded = false;

  constructor(core: Core, entry: AuditEntry, retentionMs: number) {
    this.#core = core;
    this.#trace = leaveTrace(entry, core.randomness.token().slice(-12), retentionMs);
    this.#budget = new WaitBudget(core.clock, callBudgetMs);
    this.#nextPauseMs = retryPauses(core, pauses);
  }

  /**
   * Prevents every further copy from landing: it occupies the place of the trace. 1 request. Returns whether that
   * succeeded; false if a copy has landed already.
   */
  async revoke(): Promise<boolean> {
    const write = occupyTrace(this.#trace);
    return (await this.#core.update(write, { withinMs: longestTracedTryMs })).applied;
  }

  /**
   * Sends it, and repeats it after a conflict, a throttle or a lost answer, for up to 10 s; also on a closed client.
   * Returns what has refused it.
   *
   * Rejects when the service fails for longer, and with the signal's reason. A LeaseServiceError says whether any copy
   * may have landed.
   */
  async send(
    writes: readonly Write[],
    signal?: AbortSignal,
  ): Promise<
    { readonly applied: true } | (Pick<TransactionResult, "refusals"> & { readonly applied: false })
  > {
    const { clock } = this.#core;
    for (;;) {
      try {
        const budget = { withinMs: longestTracedTryMs, signal };
        const { applied, refusals, retried } = await transact(this.#core, [...writes, this.#trace], budget);
        const isDone = applied || refusals[writes.length] !== undefined;
        // An answer without its trace does not rule out a copy that is still under way.
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
