import { LeaseError, LeaseServiceError } from "../errors/errors.ts";
import type { Write } from "../statements/statement.ts";
import type { Bounds, CallBudget } from "../store/timed-store.ts";
import type { UpdateRequest, UpdateResult } from "../store.ts";
import { type Deferred, deferred } from "../time/clock.ts";
import { onAbort } from "../time/on-abort.ts";
import type { ProtocolContext } from "./context.ts";

interface Entry {
  readonly request: UpdateRequest;
  readonly call: CallBudget;
  readonly answered: Deferred<UpdateResult>;
}

/**
 * Conditional writes that are added in one turn of the event loop and sent together.
 *
 * Each of them ends by itself: a write whose signal aborts leaves the others in the batch. A write that the store can
 * settle only by a request of its own gets one when the gate has room for it.
 */
export class UpdateBatch {
  readonly #context: Pick<ProtocolContext, "table" | "gate">;
  /** The earliest end of all leases in the batch, on the monotonic clock. */
  readonly #deadline: number;
  /** By item: one batch takes one write for each item. */
  readonly #entries = new Map<string, Entry>();
  /** Entries that still wait for the batch. */
  readonly #present = new Set<Entry>();
  readonly #cut = new AbortController();
  #isOpen = true;

  constructor(context: Pick<ProtocolContext, "table" | "gate">, deadline: number) {
    this.#context = context;
    this.#deadline = deadline;
  }

  /** Adds a write to the batch. A write that comes too late, or is the second for its item, is sent alone. */
  async update(write: Write, bounds: Bounds): Promise<UpdateResult> {
    const item = JSON.stringify(write.key);
    const call = this.#context.table.begin(bounds);
    const entry = { request: write.request(), call, answered: deferred<UpdateResult>() };
    onAbort(call.signal, () => this.#leave(entry));
    if (!this.#isOpen || this.#entries.has(item)) this.#sendAlone(entry);
    else {
      this.#entries.set(item, entry);
      this.#present.add(entry);
    }
    try {
      return await entry.answered.promise;
    } finally {
      call.end();
    }
  }

  /** Sends the added writes. Resolves when the batch itself is over, and never rejects. */
  async send(): Promise<void> {
    this.#isOpen = false;
    const [first, ...others] = this.#entries.values();
    if (first === undefined) return;
    if (others.length > 0) return await this.#sendTogether([first, ...others]);
    await this.#sendOne(first);
  }

  async #sendTogether(entries: readonly [Entry, ...Entry[]]): Promise<void> {
    const { signal } = this.#cut;
    const requests = entries.map(({ request }) => request);
    const isCurrent = (): boolean => [...this.#present].every(({ call }) => call.isCurrent());
    const timed = (): ReturnType<CallBudget["timed"]> => entries[0].call.timed();
    try {
      const results = await this.#context.table.store.updateMany(requests, { signal, isCurrent, timed });
      for (const [index, entry] of entries.entries()) this.#settle(entry, results[index]);
    } catch (error) {
      if (error instanceof LeaseError) for (const entry of entries) this.#settle(entry, error);
      else for (const { answered } of entries) answered.reject(error);
    }
  }

  /** Repeating a write at once would add to the service's trouble, if that was the cause. */
  #settle(entry: Entry, result: UpdateResult | LeaseError | undefined): void {
    const isRefusedInBatch = result instanceof LeaseServiceError && !result.retryable;
    if (result === undefined || isRefusedInBatch) {
      if (this.#present.has(entry)) this.#sendAlone(entry);
    } else if (result instanceof LeaseError) entry.answered.reject(result);
    else entry.answered.resolve(result);
  }

  #sendAlone(entry: Entry): void {
    const { call, answered } = entry;
    this.#context.gate
      .renew(this.#deadline, call.signal, () => this.#sendOne(entry))
      .catch((error: unknown) => answered.reject(error));
  }

  #sendOne({ request, call, answered }: Entry): Promise<void> {
    return this.#context.table.store.update(request, call).then(answered.resolve, answered.reject);
  }

  #leave(entry: Entry): void {
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
