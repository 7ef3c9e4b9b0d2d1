import type {
  Clock,
  LeaseClient,
  LeaseEventListener,
  LeaseStore,
  LeaseUnavailableError,
  SlotDoneError,
  WaitOrder,
} from "@leasehold/client";
import type { Context } from "aws-lambda";

/**
 * What an invocation does that finds the lock held.
 *
 * - `skip`: its handler is not run; the answer is `skipResult`, and the trigger takes it for a success. An attempt at
 *   the same event that holds the lock is no reason to skip: then it throws.
 * - `throw`: rejects with LeaseUnavailableError, so that the trigger retries.
 * - `wait`: waits for the lock and leaves the work at least `reserveMs`; then it throws.
 * - `replace`: asks the holder to stop (its signal aborts with the reason `revoked` at its next heartbeat), and waits
 *   for it as `wait` does.
 */
export type WhenHeld = "skip" | "throw" | "wait" | "replace";

/** Why a handler was not run; undefined where a newer trigger made it stop (`whenHeld: "replace"`). */
export type SkipReason = LeaseUnavailableError | SlotDoneError | undefined;

/** What a skipped invocation answers, or a function that gives it. */
export type SkipResult<TEvent, TResult> =
  | TResult
  | ((event: TEvent, context: Context, reason: SkipReason) => TResult | Promise<TResult>);

/**
 * A handler's result, which a skip does not infer: TypeScript's own `NoInfer` refuses object literals in TypeScript 5.4,
 * where it is one of several possible types.
 */
export type ResultOf<TResult> = [TResult][TResult extends unknown ? 0 : never];

/** Options of `leaseLock` and of `leased`. Where an environment variable is named, it is the default. */
export interface LeaseLockOptions<TEvent = unknown, TResult = unknown> {
  /**
   * Where the client that is made here keeps its leases, in place of `tableName` and the SDK: `lightStore()` of
   * `@leasehold/client/light`. The SDK stays in the bundle unless `@leasehold/middy/light` is imported.
   * @default - DynamoDB, by the client of the entry
   */
  readonly store?: LeaseStore;
  /** The client to use. @default - one for `tableName`, made once, with the other defaults of a LeaseClient */
  readonly client?: LeaseClient;
  /** The lease table's name or ARN; beside `client`, it is only what metrics say. @default - LEASEHOLD_TABLE_NAME */
  readonly tableName?: string;
  /** The lock's key. @default - LEASEHOLD_KEY */
  readonly key?: string | ((event: TEvent, context: Context) => string);
  /**
   * What to do while another caller holds the lock.
   * @default - LEASEHOLD_WHEN_HELD; else "skip" for a schedule, for an event without records beside `once`, and for a
   * request of an HTTP API, which is answered with 423; else "throw", so that the trigger sends the event again
   */
  readonly whenHeld?: WhenHeld;
  /**
   * With `whenHeld: "wait"`: in which order the invocations that wait get the lock: `fair()` of `@leasehold/client/fair` for
   * the order in which they came. An invocation that finds as many waiting as may rejects with QueueFullError.
   * @default - the first one that tries after a release gets it
   */
  readonly order?: WaitOrder;
  /**
   * What a skipped invocation answers, or a function that gives it.
   * @default - to a request of an HTTP API that found the lock held: 423 (Locked) with Retry-After; to an authorizer's: a
   * denial; else nothing
   */
  readonly skipResult?: SkipResult<TEvent, TResult>;
  /**
   * The lease's duration: after a crash the lock is not free for this long.
   * @default - LEASEHOLD_LOCK_AT_MOST_FOR_MS; else the invocation's remaining time and a second, which needs no renewal;
   * else, with a heartbeat or where no remaining time is known, 30000
   */
  readonly lockAtMostForMs?: number;
  /** The lock's cooldown after an early end lasts until this long after the acquisition. @default - LEASEHOLD_LOCK_AT_LEAST_FOR_MS, else 0 */
  readonly lockAtLeastForMs?: number;
  /**
   * Renews the lease while the handler runs: `true` for every third of its duration, or an interval in milliseconds.
   * Needed where `lockAtMostForMs` is shorter than the work, and to hear of a revocation.
   * @default - LEASEHOLD_HEARTBEAT_MS, else true for `whenHeld: "replace"` and where no remaining time is known
   */
  readonly heartbeat?: boolean | number;
  /**
   * Runs each slot once: `true` for the slot that the trigger names by its time (`event.scheduledTime`, else
   * `event.time`), or a function that names it in printable ASCII; slots have to sort in the order of the runs. A slot
   * that is done, or earlier than one that is done, is always skipped, whatever `whenHeld` says. A trigger whose time lies
   * ahead by more than a minute is rejected with SlotNotDueError: done, it would keep out every run until then.
   * @default - LEASEHOLD_ONCE is "true"
   */
  readonly once?: boolean | ((event: TEvent, context: Context) => string);
  /**
   * Takes over at once what an earlier attempt at the same event (with the same request id) still holds. Two handlers
   * can run then: Lambda may deliver one event to two environments at once, and the first handler hears of its loss at its
   * next renewal. Use it where retries must not wait for a dead lease, and where every write checks the lease. Refused
   * beside `once`, which never takes over a living run.
   * @default false
   */
  readonly resume?: boolean;
  /** Plain JSON values that all readers of the table can see. @default - none */
  readonly data?: unknown;
  /** Waiting ends when this much of the invocation's time is left. @default - a quarter of what is left at its start */
  readonly reserveMs?: number;
  /**
   * How long before the function's timeout the signal aborts, so that the handler can stop in order; at most a
   * quarter of the remaining time. @default 250
   */
  readonly timeoutMarginMs?: number;
  /**
   * What `middy()` was given under this name. Needed only beside a `timeoutEarlyResponse` of your own: it is how a
   * response that came early is told from the handler's. @default 5
   */
  readonly timeoutEarlyInMillis?: number;
  /**
   * Receives the events of the client that is made for `tableName`: one listener or several, beside the metrics. Refused
   * beside `client`, which has its own. @default - nobody
   */
  readonly onEvent?: LeaseEventListener | readonly LeaseEventListener[];
  /** The job's name in metrics. @default - LEASEHOLD_JOB, else none */
  readonly job?: string;
  /**
   * Writes a line of metrics, or `false` for none. The events of a `client` of yours are measured by its own `onEvent`.
   * @default - writes to the standard output, past the log format and the log level that the function may have
   */
  readonly metrics?: false | ((line: string) => void);
  /**
   * Measures the events of each lock by itself, too, with the dimension `Key`: `true`, or a function that gives a group of
   * keys. CloudWatch bills each value as further metrics; see `metricsListener`. @default false
   */
  readonly keyDimension?: boolean | ((key: string) => string | undefined);
  /** Clocks and timers. @default - the machine's own */
  readonly clock?: Clock;
}
