import { LeaseServiceError } from "../errors.ts";
import type {
  GetRequest,
  Item,
  LeaseStore,
  QueryRequest,
  ScanPage,
  ScanRequest,
  TransactionEntry,
  TransactionResult,
  UpdateResult,
} from "../store.ts";
import { type CallOptions, withBudget } from "../time/budget.ts";
import type { Moment } from "../time/clock.ts";
import type { ServiceClock } from "../time/service-clock.ts";
import { render, type Write } from "./write.ts";

/** How long one call waits for its answer, retries included, when its caller sets no nearer bound. */
export const callBudgetMs = 10_000;

/** What bounds one call. */
export interface Bounds {
  /** How long it may take, in milliseconds, retries included. @default 10000 */
  readonly withinMs?: number;
  /** Ends it early; it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** From which moment its time counts. @default - now */
  readonly since?: Moment;
}

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
  update(write: Write, bounds: Bounds = {}): Promise<UpdateResult> {
    return this.#call(bounds, (call) => this.#store.update(render(write), call));
  }

  /** Several conditional writes of different items: all of them or none. At most 100. */
  transact(entries: readonly TransactionEntry[], bounds: Bounds = {}): Promise<TransactionResult> {
    return this.#call(bounds, (call) => this.#store.transact(entries, call));
  }

  /** One read. */
  get(request: GetRequest, bounds: Bounds = {}): Promise<Item | undefined> {
    return this.#call(bounds, (call) => this.#store.get(request, call));
  }

  /** One page of the items under a key. */
  query(request: QueryRequest, bounds: Bounds = {}): Promise<ScanPage> {
    return this.#call(bounds, (call) => this.#store.query(request, call));
  }

  /** One page of all items that pass a filter. */
  scan(request: ScanRequest, bounds: Bounds = {}): Promise<ScanPage> {
    return this.#call(bounds, (call) => this.#store.scan(request, call));
  }

  #call<T>(
    { withinMs = callBudgetMs, signal, since }: Bounds,
    task: (call: CallOptions) => Promise<T>,
  ): Promise<T> {
    return withBudget(this.#clock, withinMs, signal, task, since);
  }
}

/** Gives an error of the service's that may pass; throws every other one. */
export function passing(error: unknown): LeaseServiceError {
  if (error instanceof LeaseServiceError && error.retryable) return error;
  throw error;
}
