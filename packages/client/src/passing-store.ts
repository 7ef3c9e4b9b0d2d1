import type { LeaseError } from "./errors/errors.ts";
import type {
  CallOptions,
  GetRequest,
  Item,
  LeaseStore,
  QueryRequest,
  ScanPage,
  ScanRequest,
  TransactionEntry,
  TransactionResult,
  UpdateRequest,
  UpdateResult,
} from "./store.ts";

/** A store that passes everything on to another; a primitive overrides the writes that it has something to add to. */
export class PassingStore implements LeaseStore {
  readonly tableName: string;
  readonly isLocal: boolean;
  protected readonly store: LeaseStore;

  constructor(store: LeaseStore) {
    this.tableName = store.tableName;
    this.isLocal = store.isLocal ?? false;
    this.store = store;
  }

  update(request: UpdateRequest, options: CallOptions): Promise<UpdateResult> {
    return this.store.update(request, options);
  }

  updateMany(
    requests: readonly UpdateRequest[],
    options: CallOptions,
  ): Promise<readonly (UpdateResult | LeaseError | undefined)[]> {
    return this.store.updateMany(requests, options);
  }

  transact(entries: readonly TransactionEntry[], options: CallOptions): Promise<TransactionResult> {
    return this.store.transact(entries, options);
  }

  get(request: GetRequest, options: CallOptions): Promise<Item | undefined> {
    return this.store.get(request, options);
  }

  query(request: QueryRequest, options: CallOptions): Promise<ScanPage> {
    return this.store.query(request, options);
  }

  scan(request: ScanRequest, options: CallOptions): Promise<ScanPage> {
    return this.store.scan(request, options);
  }
}
