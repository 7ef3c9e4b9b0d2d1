import type { LeaseError } from "../errors/errors.ts";
import type {
  CallOptions,
  GetRequest,
  Item,
  LeaseStore,
  QueryRequest,
  ScanPage,
  ScanRequest,
  TransactionResult,
  UpdateRequest,
  UpdateResult,
} from "../store.ts";
import { type Bounds, CallBudget, callBudgetMs } from "../time/budget.ts";
import type { ServiceClock } from "../time/service-clock.ts";
import { render, renderEntry, type Write } from "./write.ts";

export { type Bounds, callBudgetMs };

/**
 * The table, as the protocol calls it: every call ends in time, is not sent when it has become too old, and tells the
 * service's clock what its answer says of the time.
 *
 * A call that was not answered in time rejects with LeaseServiceError; its write may have landed.
 */
export class TimedStore {
  readonly tableName: string;
  readonly #store: LeaseStore;
  readonly #clock: ServiceClock;

  constructor(store: LeaseStore, clock: ServiceClock) {
    this.tableName = store.tableName;
    this.#store = store;
    this.#clock = clock;
  }

  /** One conditional write. */
  async update(write: Write, bounds: Bounds = {}): Promise<UpdateResult> {
    const call = new CallBudget(this.#clock, bounds);
    try {
      return await this.#store.update(render(write), call);
    } finally {
      call.end();
    }
  }

  /** One call's time, for writes that travel together; `end` it when the call has settled. */
  begin(bounds: Bounds): CallBudget {
    return new CallBudget(this.#clock, bounds);
  }

  /** Writes that travel together, within a time that has begun. See {@link LeaseStore.updateMany}. */
  updateMany(
    requests: readonly UpdateRequest[],
    call: CallOptions,
  ): Promise<readonly (UpdateResult | LeaseError | undefined)[]> {
    return this.#store.updateMany(requests, call);
  }

  /** One of them that travels alone. */
  updateWithin(request: UpdateRequest, call: CallOptions): Promise<UpdateResult> {
    return this.#store.update(request, call);
  }

  /** Several conditional writes of different items: all of them or none. At most 100. */
  transact(writes: readonly Write[], bounds?: Bounds): Promise<TransactionResult> {
    return this.#within(bounds, (call) => this.#store.transact(writes.map(renderEntry), call));
  }

  /** One read. */
  get(request: GetRequest, bounds?: Bounds): Promise<Item | undefined> {
    return this.#within(bounds, (call) => this.#store.get(request, call));
  }

  /** One page of the items under a key. */
  query(request: QueryRequest, bounds?: Bounds): Promise<ScanPage> {
    return this.#within(bounds, (call) => this.#store.query(request, call));
  }

  /** One page of all items that pass a filter. */
  scan(request: ScanRequest, bounds?: Bounds): Promise<ScanPage> {
    return this.#within(bounds, (call) => this.#store.scan(request, call));
  }

  async #within<T>(bounds: Bounds = {}, task: (call: CallOptions) => Promise<T>): Promise<T> {
    const call = new CallBudget(this.#clock, bounds);
    try {
      return await task(call);
    } finally {
      call.end();
    }
  }
}
