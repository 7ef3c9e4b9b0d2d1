import { type Deferred, deferred } from "../base/clock.ts";
import { LeaseError, LeaseServiceError } from "../base/errors.ts";
import { onAbort } from "../base/on-abort.ts";
import type { UpdateRequest, UpdateResult } from "../base/store.ts";
import type { TimedCall } from "../base/timed-call.ts";
import type { Write } from "../statements/statement.ts";
import type { Core } from "./core.ts";

interface BatchEntry {
  readonly request: UpdateRequest;
  readonly call: TimedCall;
  readonly answered: Deferred<UpdateResult>;
}

/**
 * Conditional writes that are added in one turn of the event loop and sent together.
 *
 * Each of them ends by itself: a write whose signal aborts leaves the others in the batch. A write that the store can
 * settle only by a request of its own gets one when the gate has room for it.
 */
export class UpdateBatch {
  readonly #core: Pick<Core, "store" | "gate">;
  /** The earliest end of all leases in the batch, on the monotonic clock. */
  readonly #deadline: number;
  /** By item: one batch takes one write for each item. */
  readonly #entries = new Map<string, BatchEntry>();
  /** Entries that still wait for the batch. */
  readonly #present = new Set<BatchEntry>();
  readonly #cut = new AbortController();
  #isOpen = true;

  constructor(core: Pick<Core, "store" | "gate">, deadline: number) {
    this.#core = core;
    this.#deadline = deadline;
  }

  /** Adds a write to the batch. A write that comes too late, or is the second for its item, is sent alone. */
  async update(write: Write, call: TimedCall): Promise<UpdateResult> {
    const item = JSON.stringify(write.key);
    const entry = { request: write.request(), call, answered: deferred<UpdateResult>() };
    onAbort(call.signal, () => this.#leave(entry));
    if (!this.#isOpen || this.#entries.has(item)) this.#sendAlone(entry);
    else {
      this.#entries.set(item, entry);
      this.#present.add(entry);
    }
    return await entry.answered.promise;
  }

  /** Sends the added writes. Resolves when the batch itself is over, and never rejects. */
  async send(): Promise<void> {
    this.#isOpen = false;
    const [first, ...others] = this.#entries.values();
    if (first === undefined) return;
    if (others.length > 0) return await this.#sendTogether([first, ...others]);
    await this.#sendOne(first);
  }

  async #sendTogether(entries: readonly [BatchEntry, ...BatchEntry[]]): Promise<void> {
    const { signal } = this.#cut;
    const requests = entries.map(({ request }) => request);
    const isCurrent = (): boolean => [...this.#present].every(({ call }) => call.isCurrent());
    const timed = (): ReturnType<TimedCall["timed"]> => entries[0].call.timed();
    try {
      const results = await this.#core.store.updateMany(requests, { signal, isCurrent, timed });
      for (const [index, entry] of entries.entries()) this.#settle(entry, results[index]);
    } catch (error) {
      if (error instanceof LeaseError) for (const entry of entries) this.#settle(entry, error);
      else for (const { answered } of entries) answered.reject(error);
    }
  }

  /** Repeating a write at once would add to the service's trouble, if that was the cause. */
  #settle(entry: BatchEntry, result: UpdateResult | LeaseError | undefined): void {
    const isRefusedInBatch = result instanceof LeaseServiceError && !result.retryable;
    if (result === undefined || isRefusedInBatch) {
      if (this.#present.has(entry)) this.#sendAlone(entry);
    } else if (result instanceof LeaseError) entry.answered.reject(result);
    else entry.answered.resolve(result);
  }

  #sendAlone(entry: BatchEntry): void {
    const { call, answered } = entry;
    this.#core.gate
      .renew(this.#deadline, call.signal, () => this.#sendOne(entry))
      .catch((error: unknown) => answered.reject(error));
  }

  #sendOne({ request, call, answered }: BatchEntry): Promise<void> {
    return this.#core.store.update(request, call).then(answered.resolve, answered.reject);
  }

  #leave(entry: BatchEntry): void {
    const { signal } = entry.call;
    const why = signal.reason instanceof Error ? signal.reason.message : String(signal.reason);
    entry.answered.reject(
      new LeaseServiceError("LEASE_NO_ANSWER", `the renewal's answer was not awaited any longer: ${why}`, {
        cause: signal.reason,
      }),
    );
    if (this.#present.delete(entry) && this.#present.size === 0) this.#cut.abort(signal.reason);
  }
}
