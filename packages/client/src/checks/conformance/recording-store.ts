import type { ItemKey } from "../../base/schema.ts";
import type {
  CallOptions,
  GetRequest,
  LeaseStore,
  QueryRequest,
  ScanRequest,
  TransactionEntry,
  UpdateRequest,
} from "../../base/store.ts";

/** A store that remembers the written items, so that they can be removed. */
export class RecordingStore implements LeaseStore {
  readonly tableName: string;
  readonly isLocal: boolean;
  readonly #store: LeaseStore;
  readonly #written = new Map<string, ItemKey>();

  constructor(store: LeaseStore) {
    this.tableName = store.tableName;
    this.isLocal = store.isLocal ?? false;
    this.#store = store;
  }

  /** The keys of all items that may be there. */
  get written(): readonly ItemKey[] {
    return [...this.#written.values()];
  }

  update(request: UpdateRequest, call: CallOptions): ReturnType<LeaseStore["update"]> {
    this.#note([request]);
    return this.#store.update(request, call);
  }

  updateMany(requests: readonly UpdateRequest[], call: CallOptions): ReturnType<LeaseStore["updateMany"]> {
    this.#note(requests);
    return this.#store.updateMany(requests, call);
  }

  transact(entries: readonly TransactionEntry[], call: CallOptions): ReturnType<LeaseStore["transact"]> {
    this.#note(entries.filter(({ action }) => typeof action === "object"));
    return this.#store.transact(entries, call);
  }

  get(request: GetRequest, call: CallOptions): ReturnType<LeaseStore["get"]> {
    return this.#store.get(request, call);
  }

  query(request: QueryRequest, call: CallOptions): ReturnType<LeaseStore["query"]> {
    return this.#store.query(request, call);
  }

  scan(request: ScanRequest, call: CallOptions): ReturnType<LeaseStore["scan"]> {
    return this.#store.scan(request, call);
  }

  #note(requests: readonly { readonly key: ItemKey }[]): void {
    for (const { key } of requests) this.#written.set(JSON.stringify([key.pk, key.sk]), key);
  }
}
