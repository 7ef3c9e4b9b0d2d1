import {
  type AcquireCall,
  acquireLease,
  type Core,
  type HeldLease,
  LeaseUnavailableError,
  untilAborted,
} from "@leasehold/client/internal";
import type { RunForm } from "./run-form.ts";

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
    // Later calls wait for an earlier first try: the attempt that they would find belongs to this object then.
    await this.#resuming.get(call.slot);
    const isInProgress = [...this.#inProgress].some(({ slot }) => slot === call.slot);
    this.#inProgress.add(call);
    try {
      const lease = await untilAborted(call.key, call.signal, () =>
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

function noOp(): void {}
