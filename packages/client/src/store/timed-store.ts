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
 * The table, as the protocol calls it: every call ends in time, is not sent when it has become too old, and tells the
 * service's clock what its answer says of the time.
 *
 * A call that was not answered in time rejects with LeaseServiceError; its write may have landed.
 */
export class TimedStore {
  readonly tableName: string;
  /** For calls whose caller keeps their time. */
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

  /** One call's time, for a call to the `store` itself; `end` it when the call has settled. */
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

/** What bounds one call to a store. */
export interface CallOptions {
  /** Once it aborts, the call rejects promptly with a {@link LeaseServiceError}; its write may have landed. */
  readonly signal: AbortSignal;
  /**
   * To be asked before every attempt is sent: a request that is too old must not be sent any more.
   *
   * A process that was frozen for days wakes with its retry due. By then ttl may have removed the item, and the
   * fencing tokens with it.
   */
  readonly isCurrent: () => boolean;
  /**
   * To be called when an attempt is sent; what it gives, when its answer has arrived, with what the answer says of the
   * service's time, or undefined. @default - the caller does not want to know the time
   */
  readonly timed?: () => (time: ServiceTime | undefined) => void;
}

/** What bounds one call. */
export interface Bounds {
  /** How long it may take, in milliseconds, retries included. @default 10000 */
  readonly withinMs?: number;
  /** Ends it early; it rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** From which moment its time counts. @default - now */
  readonly since?: Moment;
}

/** How long one call waits for its answer, retries included, when its caller sets no nearer bound. */
export const callBudgetMs = 10_000;

/** An answer is given at least this much time: one that comes too late for its lease is made good by a renewal. */
export const shortestBudgetMs = 1_000;

/** A wall clock may be set by this much within a call without making its request too old. */
const wallToleranceMs = 1_000;

/**
 * One call's time: its signal aborts when the time is over, or when the caller's signal does, and its request is current
 * until then by both clocks, whichever timer fires first after a freeze. `end` it when the call has settled.
 */
export class CallBudget implements CallOptions {
  readonly #clock: ServiceClock;
  readonly #withinMs: number;
  readonly #since: Moment;
  #lookedAt: Moment;
  readonly #controller = new AbortController();
  // Own properties, for stores that take the call apart.
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
    // Sent after that look: an earlier moment only widens what the answer tells.
    const sentAt = this.#lookedAt;
    return (time) => this.#clock.note(time, sentAt);
  };

  end(): void {
    this.#cancelTimer();
    this.#ignoreOuter();
  }
}
