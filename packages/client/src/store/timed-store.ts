import { LeaseServiceError } from "../errors/errors.ts";
import type { Write } from "../statements/statement.ts";
import type {
  GetRequest,
  Item,
  LeaseStore,
  QueryRequest,
  ScanPage,
  ScanRequest,
  TransactionResult,
  UpdateResult,
} from "../store.ts";
import type { Moment } from "../time/clock.ts";
import { onAbort } from "../time/on-abort.ts";
import type { ServiceClock, ServiceTime } from "../time/service-clock.ts";

/**
 * The table, as the protocol calls it: every call has a time limit, a request that has become too old is not sent, and
 * the service's clock learns the time from each answer.
 *
 * A call without an answer in time rejects with LeaseServiceError; its write may have landed.
 */
export class TimedStore {
  readonly tableName: string;
  /** For callers that limit the time themselves. */
  readonly store: LeaseStore;
  readonly #clock: ServiceClock;

  constructor(store: LeaseStore, clock: ServiceClock) {
    this.tableName = store.tableName;
    this.store = store;
    this.#clock = clock;
  }

  /** One conditional write. */
  async update(write: Write, bounds: Bounds = {}): Promise<UpdateResult> {
    const call = new CallBudget(this.#clock, bounds);
    try {
      return await this.store.update(write.request(), call);
    } finally {
      call.end();
    }
  }

  /** Starts the time limit of a call to the `store` itself; `end` it when the call has settled. */
  begin(bounds: Bounds): CallBudget {
    return new CallBudget(this.#clock, bounds);
  }

  /** Several conditional writes of different items: all of them or none. At most 100. */
  transact(writes: readonly Write[], bounds?: Bounds): Promise<TransactionResult> {
    return this.#within(bounds, (call) =>
      this.store.transact(
        writes.map((write) => write.entry()),
        call,
      ),
    );
  }

  /** One read. */
  get(request: GetRequest, bounds?: Bounds): Promise<Item | undefined> {
    return this.#within(bounds, (call) => this.store.get(request, call));
  }

  /** One page of the items under a key. */
  query(request: QueryRequest, bounds?: Bounds): Promise<ScanPage> {
    return this.#within(bounds, (call) => this.store.query(request, call));
  }

  /** One page of all items that pass a filter. */
  scan(request: ScanRequest, bounds?: Bounds): Promise<ScanPage> {
    return this.#within(bounds, (call) => this.store.scan(request, call));
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

/** The limits of one call to a store. */
export interface CallOptions {
  /** Once it aborts, the call rejects promptly with a {@link LeaseServiceError}; its write may have landed. */
  readonly signal: AbortSignal;
  /**
   * Call it before every attempt: a request that is too old must not be sent any more.
   *
   * A process that was frozen for days wakes with its retry due. By then ttl may have removed the item, and the
   * fencing tokens with it.
   */
  readonly isCurrent: () => boolean;
  /**
   * Call it when an attempt is sent. When the answer has arrived, call the returned function with the service's time in
   * the answer, or undefined.
   * @default - the caller does not need the time
   */
  readonly timed?: () => (time: ServiceTime | undefined) => void;
}

/** The limits of one call. */
export interface Bounds {
  /** How long it may take, in milliseconds, retries included. @default 10000 */
  readonly withinMs?: number;
  /** Ends it early; it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** The moment from which its time counts. @default - now */
  readonly since?: Moment;
}

/** How long one call waits for its answer, retries included, unless its caller sets a nearer limit. */
export const callBudgetMs = 10_000;

/** The least time for an answer: if an answer comes too late for its lease, a renewal corrects that. */
export const shortestBudgetMs = 1_000;

/** Within a call, the wall clock may be set by this much without making the request too old. */
const wallToleranceMs = 1_000;

/**
 * The time limit of one call. Its signal aborts when the time is over, or when the caller's signal aborts. Until then
 * its request is current by both clocks, whichever timer fires first after a freeze. `end` it when the call has
 * settled.
 */
export class CallBudget implements CallOptions {
  readonly #clock: ServiceClock;
  readonly #withinMs: number;
  readonly #since: Moment;
  #lookedAt: Moment;
  readonly #controller = new AbortController();
  // Own properties, because a store may destructure the call.
  readonly signal: AbortSignal = this.#controller.signal;
  readonly #cancelTimer: () => void;
  readonly #ignoreOuter: () => void;

  /** Throws the reason of a signal that has aborted. */
  constructor(clock: ServiceClock, { withinMs = callBudgetMs, signal, since = clock.moment() }: Bounds) {
    signal?.throwIfAborted();
    this.#clock = clock;
    this.#withinMs = withinMs;
    this.#since = since;
    this.#lookedAt = since;
    this.#ignoreOuter = onAbort(signal, (reason) => this.#controller.abort(reason));
    this.#cancelTimer = clock.schedule(() => {
      const message = `no answer within ${Math.round(withinMs)} ms`;
      this.#controller.abort(new LeaseServiceError("LEASE_NO_ANSWER", message));
    }, withinMs);
  }

  readonly isCurrent = (): boolean => {
    const now = this.#clock.moment();
    this.#lookedAt = now;
    const isOld =
      now.monotonic - this.#since.monotonic > this.#withinMs ||
      now.wall - this.#since.wall > this.#withinMs + wallToleranceMs;
    return !this.signal.aborted && !isOld;
  };

  readonly timed = (): ((time: ServiceTime | undefined) => void) => {
    // The attempt is sent after that reading: an earlier moment only widens the bounds that the answer gives.
    const sentAt = this.#lookedAt;
    return (time) => this.#clock.note(time, sentAt);
  };

  end(): void {
    this.#cancelTimer();
    this.#ignoreOuter();
  }
}
