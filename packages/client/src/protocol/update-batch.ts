import type { CallOptions, LeaseStore, UpdateRequest, UpdateResult } from "../store.ts";

interface Entry {
  readonly request: UpdateRequest;
  readonly options: CallOptions;
  readonly answered: PromiseWithResolvers<UpdateResult>;
}

/**
 * Conditional writes that are handed over in one turn and travel together.
 *
 * A write that the batch could not settle is repeated by itself: a repeated write is recognised as one's own.
 */
export class UpdateBatch {
  readonly #store: LeaseStore;
  /** By item: one batch takes each of them once. */
  readonly #entries = new Map<string, Entry>();
  #isOpen = true;

  constructor(store: LeaseStore) {
    this.#store = store;
  }

  /** Adds a write to the batch, or sends it at once when the batch has left already or has one of that item. */
  update(request: UpdateRequest, options: CallOptions): Promise<UpdateResult> {
    const item = JSON.stringify(request.key);
    if (!this.#isOpen || this.#entries.has(item)) return this.#store.update(request, options);
    const answered = Promise.withResolvers<UpdateResult>();
    this.#entries.set(item, { request, options, answered });
    return answered.promise;
  }

  /** Sends what has been handed over. */
  send(): void {
    this.#isOpen = false;
    const entries = [...this.#entries.values()];
    if (entries.length > 1) void this.#sendTogether(entries);
    else for (const entry of entries) this.#sendAlone(entry);
  }

  #sendAlone({ request, options, answered }: Entry): void {
    answered.resolve(this.#store.update(request, options));
  }

  async #sendTogether(entries: readonly Entry[]): Promise<void> {
    const signal = AbortSignal.any(entries.map((entry) => entry.options.signal));
    const isCurrent = (): boolean => entries.every((entry) => entry.options.isCurrent());
    const requests = entries.map((entry) => entry.request);
    const results = await this.#store.updateMany(requests, { signal, isCurrent }).catch(() => []);
    for (const [index, entry] of entries.entries()) {
      const result = results[index];
      if (result === undefined) this.#sendAlone(entry);
      else entry.answered.resolve(result);
    }
  }
}
