import type { Clock, ConditionCheckOptions, Lease } from "@leasehold/client";
import {
  check,
  checkData,
  checkText,
  checkWork,
  type HeldLease,
  LeaseLostError,
  mayPass,
  runTraced,
  sleep,
} from "@leasehold/client/internal";
import { entriesOf, formatOf, type SendEntries, sendByUser } from "../own-transaction.ts";
import { cut } from "./attempt-history.ts";
import type { RunContext, RunWork } from "./options.ts";
import type { RunForm } from "./run-form.ts";
import { runLimits } from "./schema.ts";

/** One attempt at a run, from the claim to the outcome. */
export class RunAttempt {
  readonly #context: AttemptContext;
  #remark: string | undefined;
  /** Whether the work has recorded its success itself. */
  #hasSucceeded = false;

  constructor(context: AttemptContext) {
    this.#context = context;
  }

  /**
   * Does the work and records the outcome: 1 request.
   *
   * A success counts when the item still has this attempt's token, even after its lease has expired: no other attempt
   * has begun then. Rejects with LeaseLostError when another attempt has begun, or when this one was revoked. Rejects
   * with LeaseServiceError when it is not known whether the success was recorded.
   */
  async perform<T>(work: RunWork<T>): Promise<Finished<T>> {
    const { job, lease } = this.#context;
    let result: T;
    try {
      result = await runTraced(lease, () => work(this.#runContext()));
    } catch (error) {
      if (this.#hasSucceeded) return { state: "failed", error };
      // Ignored: the work's own error comes first. An outcome that cannot be recorded shows as lost when the lease ends,
      // and the `error` event reports a mistake in the program.
      await this.#record("failed", this.#describe(error)).catch(() => {});
      return { state: "failed", error };
    }
    if (this.#hasSucceeded) return { state: "succeeded", result };
    const { loss } = lease;
    if (loss?.reason === "revoked") {
      // The work may have stopped before its end.
      // Ignored: the revocation comes first, as the work's own error does.
      await this.#record("failed", cut(loss.message, runLimits.remarkBytes)).catch(() => {});
      throw loss;
    }
    if (await this.#record("succeeded", this.#remark)) return { state: "succeeded", result };
    if (loss !== undefined && loss.reason !== "expired") throw loss;
    throw new LeaseLostError(job, this.#context.form.isOutcomeSent ? "taken" : "released");
  }

  #runContext(): RunContext {
    const { job, slot, lease, form, signal } = this.#context;
    return {
      job,
      slot,
      lease,
      signal: signal === undefined ? lease.signal : AbortSignal.any([lease.signal, signal]),
      attempt: form.attempt,
      progress: (report) => {
        form.progress = checkReport(report);
      },
      remark: (text) => {
        this.#remark = checkText("remark", text, runLimits.remarkBytes);
      },
      succeedIn: (send, options) => this.#succeedIn(send, options),
    };
  }

  async #succeedIn(send: SendEntries, options: ConditionCheckOptions = {}): Promise<void> {
    const { slot, held, form, clock } = this.#context;
    const { core } = held;
    checkWork(send);
    const format = formatOf(core, options);
    const resume = await held.still();
    if (held.lost !== undefined && held.lost !== "expired") throw held.error;
    const now = clock.now();
    form.outcome = { state: "succeeded", endedAt: now, remark: this.#remark };
    const { record: shown } = held;
    const write = form.release({ shown, now, retentionMs: form.retentionMs, slot, cooldown: undefined });
    try {
      await sendByUser(core, send, entriesOf(core, [write], format), {
        key: { pk: held.key, sk: held.sortKey },
        isWritten: (item) => form.showsRelease(item),
      });
    } catch (error) {
      form.outcome = undefined;
      resume();
      throw error;
    }
    this.#hasSucceeded = true;
    held.close(true);
  }

  /**
   * Sends the outcome with the release, again while no answer comes; gives whether the slot is done by this attempt,
   * which only a success asks.
   */
  async #record(state: "succeeded" | "failed", remark: string | undefined): Promise<boolean> {
    const { lease, held, form, clock } = this.#context;
    form.outcome = { state, endedAt: clock.now(), remark };
    for (let tries = 1; ; tries += 1) {
      try {
        await held.endOnce(true);
        break;
      } catch (error) {
        if (!mayPass(error) || tries >= outcomeTries) throw error;
      }
      await sleep(clock, firstOutcomePauseMs * 2 ** (tries - 1));
    }
    // Sends nothing more; rejects if the answer does not tell whose the lease was.
    const { wasOurs = false, isRecorded } = await lease.end(true);
    // If the slot is done but this attempt has not ended it, another attempt has.
    return wasOurs && isRecorded && form.isOutcomeSent;
  }

  #describe(error: unknown): string | undefined {
    try {
      return cut(this.#context.describeError(error), runLimits.remarkBytes);
    } catch {
      // Ignored: the work's own error comes first, and the remark says that it could not be described.
      return "an error that could not be described";
    }
  }
}

/** How an attempt ended; its outcome is recorded. */
export type Finished<T> =
  | { readonly state: "succeeded"; readonly result: T }
  | { readonly state: "failed"; readonly error: unknown };

/** An outcome that is not confirmed is sent this many times, with pauses that double from the first one. */
const outcomeTries = 5;
const firstOutcomePauseMs = 200;

/** The parts that an attempt uses. */
export interface AttemptContext {
  readonly job: string;
  readonly slot: string;
  readonly lease: Lease;
  readonly held: HeldLease;
  readonly form: RunForm;
  readonly signal: AbortSignal | undefined;
  readonly clock: Clock;
  readonly describeError: (error: unknown) => string;
}

/** Turns a report into JSON text. */
function checkReport(report: unknown): string {
  const text = checkData(report, "progress", runLimits.progressBytes);
  check(text !== undefined, "progress", report, "plain JSON values");
  return text;
}
