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
  #entries: Entry[] = [];
  #isOpen = true;

  constructor(store: LeaseStore) {
    this.#store = store;
  }

  /** Adds a write to the batch, or sends it at once when the batch has left already or has one of that item. */
  update(request: UpdateRequest, options: CallOptions): Promise<UpdateResult> {
    // One batch takes an item once: two handles of one lease go their own ways.
    const isThere = this.#entries.some((entry) => entry.request.key.pk === request.key.pk);
    if (!this.#isOpen || isThere) return this.#store.update(request, options);
    const answered = Promise.withResolvers<UpdateResult>();
    this.#entries.push({ request, options, answered });
    return answered.promise;
  }

  /** Sends what has been handed over. */
  send(): void {
    this.#isOpen = false;
    if (this.#entries.length > 1) void this.#sendTogether();
    else for (const entry of this.#entries) this.#sendAlone(entry);
  }

  #sendAlone({ request, options, answered }: Entry): void {
    answered.resolve(this.#store.update(request, options));
  }

  async #sendTogether(): Promise<void> {
    const signal = AbortSignal.any(this.#entries.map((entry) => entry.options.signal));
    const isCurrent = (): boolean => this.#entries.every((entry) => entry.options.isCurrent());
    const requests = this.#entries.map((entry) => entry.request);
    const results = await this.#store.updateMany(requests, { signal, isCurrent }).catch(() => []);
    for (const [index, entry] of this.#entries.entries()) {
      const result = results[index];
      if (result === undefined) this.#sendAlone(entry);
      else entry.answered.resolve(result);
    }
  }
}
