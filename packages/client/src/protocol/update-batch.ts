import { LeaseError, LeaseServiceError } from "../errors/errors.ts";
import type { CallOptions, UpdateRequest, UpdateResult } from "../store.ts";
import type { ProtocolContext } from "./context.ts";

interface Entry {
  readonly request: UpdateRequest;
  readonly options: CallOptions;
  readonly answered: PromiseWithResolvers<UpdateResult>;
}

/**
 * Conditional writes that are handed over in one turn and travel together.
 *
 * Each of them ends by itself: a write whose signal aborts leaves the others in the batch. A write that the store can
 * settle only by a request of its own gets one when the gate has room for it.
 */
export class UpdateBatch {
  readonly #context: Pick<ProtocolContext, "store" | "gate">;
  /** When the lease that ends first ends, on the monotonic clock. */
  readonly #deadline: number;
  /** By item: one batch takes each of them once. */
  readonly #entries = new Map<string, Entry>();
  /** Entries that still wait for the batch. */
  readonly #present = new Set<Entry>();
  readonly #cut = new AbortController();
  #isOpen = true;

  constructor(context: Pick<ProtocolContext, "store" | "gate">, deadline: number) {
    this.#context = context;
    this.#deadline = deadline;
  }

  /** Adds a write to the batch; one that comes too late, or is the second of its item, is sent alone. */
  update(request: UpdateRequest, options: CallOptions): Promise<UpdateResult> {
    const item = JSON.stringify(request.key);
    const entry = { request, options, answered: Promise.withResolvers<UpdateResult>() };
    options.signal.addEventListener("abort", () => this.#leave(entry), { once: true });
    if (!this.#isOpen || this.#entries.has(item)) this.#sendAlone(entry);
    else {
      this.#entries.set(item, entry);
      this.#present.add(entry);
    }
    return entry.answered.promise;
  }

  /** Sends what has been handed over. Resolves when the batch itself is over, and never rejects. */
  async send(): Promise<void> {
    this.#isOpen = false;
    const [first, ...others] = this.#entries.values();
    if (first === undefined) return;
    if (others.length > 0) return await this.#sendTogether([first, ...others]);
    const { request, options, answered } = first;
    try {
      answered.resolve(await this.#context.store.update(request, options));
    } catch (error) {
      answered.reject(error);
    }
  }

  async #sendTogether(entries: readonly [Entry, ...Entry[]]): Promise<void> {
    const { signal } = this.#cut;
    const requests = entries.map(({ request }) => request);
    const isCurrent = (): boolean => [...this.#present].every(({ options }) => options.isCurrent());
    try {
      const results = await this.#context.store.updateMany(requests, {
        ...entries[0].options,
        signal,
        isCurrent,
      });
      for (const [index, entry] of entries.entries()) this.#settle(entry, results[index]);
    } catch (error) {
      if (error instanceof LeaseError) for (const entry of entries) this.#settle(entry, error);
      else for (const { answered } of entries) answered.reject(error);
    }
  }

  /** What failed because the service is in trouble would add to it if it were repeated at once. */
  #settle(entry: Entry, result: UpdateResult | LeaseError | undefined): void {
    const isRefusedInBatch = result instanceof LeaseServiceError && !result.retryable;
    if (result === undefined || isRefusedInBatch) {
      if (this.#present.has(entry)) this.#sendAlone(entry);
    } else if (result instanceof LeaseError) entry.answered.reject(result);
    else entry.answered.resolve(result);
  }

  #sendAlone({ request, options, answered }: Entry): void {
    const { store, gate } = this.#context;
    gate
      .renew(this.#deadline, options.signal, () => store.update(request, options))
      .then(answered.resolve, answered.reject);
  }

  #leave(entry: Entry): void {
    const { signal } = entry.options;
    const why = signal.reason instanceof Error ? signal.reason.message : String(signal.reason);
    entry.answered.reject(
      new LeaseServiceError("LEASE_NO_ANSWER", `the renewal's answer was not awaited any longer: ${why}`, {
        cause: signal.reason,
      }),
    );
    if (this.#present.delete(entry) && this.#present.size === 0) this.#cut.abort(signal.reason);
  }
}
