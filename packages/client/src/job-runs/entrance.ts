import { untilAborted } from "../aborted.ts";
import { LeaseUnavailableError } from "../errors.ts";
import type { AcquireCall, Acquirer } from "../protocol/acquirer.ts";
import type { HeldLease } from "../protocol/held-lease.ts";
import type { RunForm } from "./run-form.ts";

/** One call for a slot. */
export interface SlotCall extends AcquireCall {
  readonly slot: string;
  /** Makes the form of one attempt's lease. */
  readonly formOf: () => RunForm;
}

/** How the calls of one object come to their slots, so that none takes an attempt from another one here. */
export class Entrance {
  readonly #acquirer: Acquirer;
  /** Calls that wait for their slot, or run it. */
  readonly #underWay = new Set<SlotCall>();
  /** By slot, the end of a first try that may take an attempt of its own owner over. */
  readonly #resuming = new Map<string, Promise<void>>();

  constructor(acquirer: Acquirer) {
    this.#acquirer = acquirer;
  }

  /** Wins the slot's lease, or rejects with LeaseAbortedError where the signal ends the wait for it, and runs the attempt under it. */
  async through<T>(call: SlotCall, attempt: (lease: HeldLease) => Promise<T>): Promise<T> {
    // Whoever comes later lets it go first: what it could take over is then none of theirs.
    await this.#resuming.get(call.slot);
    const isUnderWay = [...this.#underWay].some(({ slot }) => slot === call.slot);
    this.#underWay.add(call);
    try {
      const lease = await untilAborted(call.key, call.signal, () =>
        call.reentrant && !isUnderWay ? this.#resume(call) : this.#wait(call),
      );
      return await attempt(lease);
    } finally {
      this.#underWay.delete(call);
    }
  }

  /** Begins at once where an attempt of the same owner, from elsewhere, has not ended; waits for others' as usual. */
  async #resume(call: SlotCall): Promise<HeldLease> {
    const { slot } = call;
    const resumed = this.#acquirer.acquire({ ...call, waitMs: 0 }, call.formOf());
    // Ignored: this very call has the error.
    const settled = resumed.then(noOp, noOp);
    this.#resuming.set(slot, settled);
    try {
      return await resumed;
    } catch (error) {
      if (!(error instanceof LeaseUnavailableError) || call.waitMs === 0) throw error;
    } finally {
      if (this.#resuming.get(slot) === settled) this.#resuming.delete(slot);
    }
    return await this.#wait(call);
  }

  #wait(call: SlotCall): Promise<HeldLease> {
    return this.#acquirer.acquire({ ...call, resumes: false }, call.formOf());
  }
}

function noOp(): void {}
