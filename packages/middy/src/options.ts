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
import type { MetricsCollector } from "./invocation-metrics.ts";

/**
 * What an invocation does when the lock is held.
 *
 * - `skip`: its handler does not run; the answer is `skipResult`, which the trigger counts as a success. If an attempt
 *   at the same event holds the lock, it does not skip but throws.
 * - `throw`: rejects with LeaseUnavailableError, so that the trigger retries.
 * - `wait`: waits for the lock, but leaves the work at least `reserveMs`; then it throws.
 * - `replace`: asks the holder to stop (its signal aborts with the reason `revoked` at its next heartbeat), and waits
 *   for it as `wait` does.
 */
export type WhenHeld = "skip" | "throw" | "wait" | "replace";

/** Why a handler did not run; undefined if a newer trigger made it stop (`whenHeld: "replace"`). */
export type SkipReason = LeaseUnavailableError | SlotDoneError | undefined;

/** The answer of a skipped invocation, or a function that returns it. */
export type SkipResult<TEvent, TResult> =
  | TResult
  | ((event: TEvent, context: Context, reason: SkipReason) => TResult | Promise<TResult>);

/**
 * A handler's result, which a skip must not infer. TypeScript's own `NoInfer` refuses object literals in TypeScript 5.4
 * if the result is one of several possible types.
 */
export type ResultOf<TResult> = [TResult][TResult extends unknown ? 0 : never];

/** Options of `leaseLock` and of `leased`. If an option names an environment variable, the variable is its default. */
export interface LeaseLockOptions<TEvent = unknown, TResult = unknown> {
  /**
   * The store of the client that is made here, in place of `tableName` and the SDK: `lightStore()` of
   * `@leasehold/client/light`. The SDK stays in the bundle unless you import `@leasehold/middy/light`.
   * @default - DynamoDB, by the client of the entry
   */
  readonly store?: LeaseStore;
  /** The client to use. @default - one for `tableName`, made once, with the other defaults of a LeaseClient */
  readonly client?: LeaseClient;
  /**
   * The lease table's name or ARN; together with `client`, only metrics use it.
   * @default - the client's own; without one, LEASEHOLD_TABLE_NAME
   */
  readonly tableName?: string;
  /** The lock's key, or a function that gives it, such as `jmespath("detail.id")`. @default - LEASEHOLD_KEY */
  readonly key?: string | ((event: TEvent, context: Context) => string);
  /**
   * What to do while another caller holds the lock.
   * @default - LEASEHOLD_WHEN_HELD; else "skip" for a schedule, for an event without records with `once`, and for a
   * request of an HTTP API, which gets 423; else "throw", so that the trigger sends the event again
   */
  readonly whenHeld?: WhenHeld;
  /**
   * With `whenHeld: "wait"`: the order in which waiting invocations get the lock. `fair()` of `@leasehold/client/fair`
   * is first come, first served. If the line is full, an invocation rejects with QueueFullError.
   * @default - the first one that tries after a release gets it
   */
  readonly order?: WaitOrder;
  /**
   * The answer of a skipped invocation, or a function that returns it.
   * @default - to a request of an HTTP API that found the lock held: 423 (Locked) with Retry-After; to an authorizer's: a
   * denial; else nothing
   */
  readonly skipResult?: SkipResult<TEvent, TResult>;
  /**
   * The lease's duration: after a crash the lock stays held for this long.
   * @default - LEASEHOLD_LOCK_AT_MOST_FOR_MS; else the invocation's remaining time and a second, which needs no
   * renewal; with a heartbeat, as by default beyond a minute of remaining time, 30000
   */
  readonly lockAtMostForMs?: number;
  /** The lock's cooldown after an early end lasts until this long after the acquisition. @default - LEASEHOLD_LOCK_AT_LEAST_FOR_MS, else 0 */
  readonly lockAtLeastForMs?: number;
  /**
   * Renews the lease while the handler runs, to the end of the invocation's time at the latest: `true` for every third of
   * its duration, or an interval in milliseconds.
   * Needed if `lockAtMostForMs` is shorter than the work, and to notice a revocation. A handler that blocks the event
   * loop for most of a lease loses it: then say `false`, or give `lockAtMostForMs`.
   * @default - LEASEHOLD_HEARTBEAT_MS, else true for `whenHeld: "replace"`, and without `lockAtMostForMs` for more than
   * a minute of remaining time, each 10 s; true without a known remaining time
   */
  readonly heartbeat?: boolean | number;
  /**
   * Runs each slot once: `true` for the trigger's time (`event.scheduledTime`, else `event.time`) as the slot, or a
   * function that returns the slot in printable ASCII. Slots have to sort in the order of the runs. A slot that is
   * done, or earlier than one that is done, is always skipped, whatever `whenHeld` says. A trigger whose time is more
   * than a minute ahead is rejected with SlotNotDueError: once done, its slot would refuse every run until then.
   * @default - LEASEHOLD_ONCE is "true"
   */
  readonly once?: boolean | ((event: TEvent, context: Context) => string);
  /**
   * Takes over at once the lease of an earlier attempt at the same event (with the same request id). Then two handlers
   * can run: Lambda may deliver one event to two environments at once, and the first handler notices its loss at its
   * next renewal. Use it if retries must not wait for a dead lease, and if every write checks the lease. Refused
   * together with `once`, which never takes over a living run.
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
   * The same value as you gave `middy()`. Needed only with your own `timeoutEarlyResponse`: it distinguishes an early
   * response from the handler's. @default 5
   */
  readonly timeoutEarlyInMillis?: number;
  /**
   * Receives the events of the client that is made for `tableName`: one listener or several, besides the metrics.
   * Refused together with `client`, which has its own. @default - none
   */
  readonly onEvent?: LeaseEventListener | readonly LeaseEventListener[];
  /** The job's name in metrics. @default - LEASEHOLD_JOB, else none */
  readonly job?: string;
  /**
   * Writes the line of metrics of an invocation; or your own `Metrics` of Powertools, which gets them for its own line;
   * or `false` for none. With your own, the metrics have its namespace and dimensions, so that alarms on the namespace
   * `Leasehold` do not see them. Your own `client` measures its events by its own `onEvent`.
   * @default - writes to the standard output, past the function's log format and log level
   */
  readonly metrics?: false | ((line: string) => void) | MetricsCollector;
  /**
   * Also measures the events of each lock by itself, with the dimension `Key`: `true`, or a function that returns a
   * group of keys. CloudWatch bills each value as further metrics; see `metricsListener`. @default false
   */
  readonly keyDimension?: boolean | ((key: string) => string | undefined);
  /** Clocks and timers. @default - the machine's own */
  readonly clock?: Clock;
}
