/**
 * Requests that end in time: each has a time limit, a request that has become too old is not sent, and the service's clock
 * learns the time from each answer. A request without an answer in time rejects with LeaseServiceError; its write may have
 * landed.
 */
import { LeaseServiceError } from "../errors/errors.ts";
import type { Write } from "../statements/statement.ts";
import type {
  CallOptions,
  LeaseStore,
  QueryRequest,
  ScanPage,
  ScanRequest,
  TransactionResult,
} from "../store.ts";
import type { Moment } from "../time/clock.ts";
import { onAbort } from "../time/on-abort.ts";
import type { ServiceClock, ServiceTime } from "../time/service-clock.ts";

/** How long one call to the service may take. */
export interface CallBudget {
  /** In milliseconds, retries included. @default 10000 */
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
 * One call to the service. Its signal aborts when the time is over, or when the caller's signal aborts. Until then its
 * request is current by both clocks, whichever timer fires first after a freeze. `end` it when the call has settled.
 */
export class TimedCall implements CallOptions {
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
  constructor(clock: ServiceClock, { withinMs = callBudgetMs, signal, since = clock.moment() }: CallBudget) {
    signal?.throwIfAborted();
    this.#clock = clock;
    this.#withinMs = withinMs;
    this.#since = since;
    this.#lookedAt = since;
    this.#ignoreOuter = onAbort(signal, (reason) => this.cut(reason));
    this.#cancelTimer = clock.schedule(() => {
      this.cut(new LeaseServiceError("LEASE_NO_ANSWER", `no answer within ${Math.round(withinMs)} ms`));
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

  /** Ends it before its time. */
  cut(reason: unknown): void {
    this.#controller.abort(reason);
  }

  end(): void {
    this.#cancelTimer();
    this.#ignoreOuter();
  }
}

/** The table, and the clock that learns from its answers. */
export interface Table {
  readonly store: LeaseStore;
  readonly clock: ServiceClock;
}

/** Makes one call to the store in its time. */
export async function request<T>(
  { store, clock }: Table,
  budget: CallBudget,
  send: (store: LeaseStore, call: CallOptions) => Promise<T>,
): Promise<T> {
  const call = new TimedCall(clock, budget);
  try {
    return await send(store, call);
  } finally {
    call.end();
  }
}

/** Several conditional writes of different items: all of them or none. At most 100. */
export function transact(
  table: Table,
  writes: readonly Write[],
  budget: CallBudget = {},
): Promise<TransactionResult> {
  const entries = writes.map((write) => write.entry());
  return request(table, budget, (store, call) => store.transact(entries, call));
}

/** One page of the items under a key. */
export function query(table: Table, asked: QueryRequest, budget: CallBudget = {}): Promise<ScanPage> {
  return request(table, budget, (store, call) => store.query(asked, call));
}

/** One page of all items that pass a filter. */
export function scan(table: Table, asked: ScanRequest, budget: CallBudget = {}): Promise<ScanPage> {
  return request(table, budget, (store, call) => store.scan(asked, call));
}
