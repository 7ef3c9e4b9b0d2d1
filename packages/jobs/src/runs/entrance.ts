import {
  type AcquireCall,
  type Acquirer,
  LeaseUnavailableError,
  type Tenancy,
  untilAborted,
} from "@leasehold/client/internal";

/** One call for a slot. */
export interface SlotCall extends AcquireCall {
  readonly slot: string;
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
  async through<T>(call: SlotCall, attempt: (tenancy: Tenancy) => Promise<T>): Promise<T> {
    // Whoever comes later lets it go first: what it could take over is then none of theirs.
    await this.#resuming.get(call.slot);
    const isUnderWay = [...this.#underWay].some(({ slot }) => slot === call.slot);
    this.#underWay.add(call);
    try {
      const tenancy = await untilAborted(call.key, call.signal, () =>
        call.reentrant && !isUnderWay ? this.#resume(call) : this.#wait(call),
      );
      return await attempt(tenancy);
    } finally {
      this.#underWay.delete(call);
    }
  }

  /** Begins at once where an attempt of the same owner, from elsewhere, has not ended; waits for others' as usual. */
  async #resume(call: SlotCall): Promise<Tenancy> {
    const { slot } = call;
    const resumed = this.#acquirer.acquire({ ...call, waitMs: 0 });
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

  #wait(call: SlotCall): Promise<Tenancy> {
    return this.#acquirer.acquire({ ...call, resumes: false });
  }
}

function noOp(): void {}
