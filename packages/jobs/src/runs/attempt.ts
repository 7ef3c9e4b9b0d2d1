import type { ConditionCheckOptions } from "@leasehold/client";
import {
  type AcquireCall,
  acquireLease,
  type Core,
  check,
  checkData,
  checkText,
  checkWork,
  type HeldLease,
  Lease,
  LeaseLostError,
  LeaseUnavailableError,
  mayPass,
  runTraced,
  settles,
  sleep,
  untilAborted,
} from "@leasehold/client/internal";
import { entriesOf, formatOf, type SendEntries, sendByUser } from "../own-transaction.ts";
import { cut } from "./attempt-history.ts";
import type { RunContext, RunWork } from "./options.ts";
import type { RunForm } from "./run-form.ts";
import { runLimits } from "./schema.ts";

/** One attempt at a run, from the claim to the outcome. */
export class RunAttempt {
  readonly #context: AttemptContext;
  readonly #lease: Lease;
  readonly #form: RunForm;
  /** Whether the work has recorded its success itself. */
  #hasSucceeded = false;
  /** The last of the calls of `succeedIn` that have not ended: one after the other. */
  #succeeding: Promise<void> | undefined;

  constructor(context: AttemptContext) {
    const { held, slot } = context;
    this.#context = context;
    this.#lease = new Lease(held, slot);
    this.#form = held.form as RunForm;
  }

  /**
   * Does the work and records the outcome: 1 request.
   *
   * A success counts when the item still has this attempt's token, even after its lease has expired: no other attempt
   * has begun then. Rejects with LeaseLostError when another attempt has begun, or when this one was revoked. Rejects
   * with LeaseServiceError when it is not known whether the success was recorded.
   */
  async perform<T>(work: RunWork<T>): Promise<Finished<T>> {
    const lease = this.#lease;
    let result: T;
    try {
      result = await runTraced(lease, () => work(this.#runContext()));
      // The work has not waited for it: without its writes, the work has not succeeded.
      await this.#succeeding?.catch((error: unknown) => {
        if (!this.#hasSucceeded) throw error;
      });
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
    if (await this.#record("succeeded", this.#form.remark)) return { state: "succeeded", result };
    if (loss !== undefined && loss.reason !== "expired") throw loss;
    throw new LeaseLostError(lease.key, this.#form.isOutcomeSent ? "taken" : "released");
  }

  #runContext(): RunContext {
    const { slot, signal } = this.#context;
    const lease = this.#lease;
    const form = this.#form;
    return {
      job: lease.key,
      slot,
      lease,
      signal: signal === undefined ? lease.signal : AbortSignal.any([lease.signal, signal]),
      attempt: form.attempt,
      progress: (report) => {
        form.progress = checkReport(report);
      },
      remark: (text) => {
        form.remark = checkText("remark", text, runLimits.remarkBytes);
      },
      succeedIn: (send, options) => {
        const succeed = (): Promise<void> =>
          this.#succeedIn(send, options).finally(() => {
            if (this.#succeeding === call) this.#succeeding = undefined;
          });
        // Ignored: the earlier call has its error.
        const call = (this.#succeeding ?? Promise.resolve()).then(succeed, succeed);
        this.#succeeding = call;
        return call;
      },
    };
  }

  async #succeedIn(send: SendEntries, options: ConditionCheckOptions = {}): Promise<void> {
    const { slot, held } = this.#context;
    const { core } = held;
    const form = this.#form;
    checkWork(send);
    const format = formatOf(core, options);
    const resume = await held.still();
    if (held.lost !== undefined && held.lost !== "expired") throw held.error;
    const now = core.clock.now();
    const outcome = { state: "succeeded", endedAt: now, remark: form.remark } as const;
    form.outcome = outcome;
    const { record: shown } = held;
    const write = form.release({ shown, now, retentionMs: form.retentionMs, slot, cooldown: undefined });
    // A release of the lease meanwhile, as at the client's end, must not record it without the user's writes.
    form.outcome = undefined;
    try {
      await sendByUser(core, send, entriesOf(core, [write], format), {
        key: { pk: held.key, sk: held.sortKey },
        isWritten: (item) => form.showsRelease(item, outcome),
      });
    } catch (error) {
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
    const { held } = this.#context;
    const { clock } = held.core;
    const form = this.#form;
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
    const { wasOurs = false, isRecorded } = await this.#lease.end(true);
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
interface AttemptContext {
  readonly slot: string;
  /** With a RunForm. */
  readonly held: HeldLease;
  readonly signal: AbortSignal | undefined;
  readonly describeError: (error: unknown) => string;
}

/** Turns a report into JSON text. */
function checkReport(report: unknown): string {
  const text = checkData(report, "progress", runLimits.progressBytes);
  check(text !== undefined, "progress", report, "plain JSON values");
  return text;
}

/**
 * Lets the calls of one `JobRuns` object begin their attempts. With `reentrant`, a call may take over an attempt of
 * its own owner that died elsewhere, but never one that runs in this object.
 */
export class AttemptGate {
  readonly #core: Core;
  /** Calls that wait for their slot, or run it. */
  readonly #inProgress = new Set<SlotCall>();
  /** By slot, the end of a first try that may take over an attempt of its own owner. */
  readonly #resuming = new Map<string, Promise<void>>();

  constructor(core: Core) {
    this.#core = core;
  }

  /**
   * Acquires the slot's lease and runs the attempt under it; rejects with LeaseAbortedError when the signal ends the
   * wait.
   */
  async run<T>(call: SlotCall, attempt: (lease: HeldLease) => Promise<T>): Promise<T> {
    const { key, slot: own, signal } = call;
    // Later calls wait for an earlier first try: the attempt that they would find belongs to this object then.
    for (let first = this.#resuming.get(own); first !== undefined; first = this.#resuming.get(own)) {
      const earlier = first;
      await untilAborted(key, signal, () => settles(this.#core.clock, earlier, firstTryMs, signal));
    }
    // No await until this call is in progress, and its own first try noted: others may have waited for the same one.
    const isInProgress = [...this.#inProgress].some(({ slot }) => slot === own);
    this.#inProgress.add(call);
    try {
      const lease = await untilAborted(key, signal, () =>
        call.reentrant && !isInProgress ? this.#resume(call) : this.#wait(call),
      );
      return await attempt(lease);
    } finally {
      this.#inProgress.delete(call);
    }
  }

  /**
   * Begins at once when an attempt of the same owner, from elsewhere, has not ended; waits for other owners' as
   * usual.
   */
  async #resume(call: SlotCall): Promise<HeldLease> {
    const { slot } = call;
    const resumed = acquireLease(this.#core, { ...call, waitMs: 0 }, call.formOf());
    // Ignored: this call has the error.
    const settled = resumed.then(noOp, noOp);
    this.#resuming.set(slot, settled);
    try {
      return await resumed;
    } catch (error) {
      if (!(error instanceof LeaseUnavailableError) || call.waitMs === 0) throw error;
    } finally {
      // No other call for the slot has gone on yet: this one is in progress.
      this.#resuming.delete(slot);
    }
    return await this.#wait(call);
  }

  #wait(call: SlotCall): Promise<HeldLease> {
    return acquireLease(this.#core, { ...call, resumes: false }, call.formOf());
  }
}

/** One call for a slot. */
export interface SlotCall extends AcquireCall {
  readonly slot: string;
  /** Makes the form of one attempt's lease. */
  readonly formOf: () => RunForm;
}

/** A first try ends by itself: how long its end is awaited at a time. */
const firstTryMs = 10_000;

function noOp(): void {}
