import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { Clock, Randomness } from "./clock.ts";
import type { LeaseEventListener } from "./events.ts";
import type { RetryStrategy } from "./retry.ts";
import type { LeaseStore } from "./store.ts";

/** What leases need of a DynamoDBClient or a DynamoDBDocumentClient. */
export type DynamoDBSender = Pick<DynamoDBClient, "send">;

/** Options of a {@link LeaseClient}. */
export interface LeaseClientOptions {
  /** The lease table's name or ARN. Needed unless `store` is given. */
  readonly tableName?: string;
  /**
   * Your own DynamoDBClient or DynamoDBDocumentClient; Leasehold uses it as it is and never destroys it. Every call of
   * a lease through it has a time limit, whatever the client's own timeouts.
   * @default - a client with region and credentials from the environment, short timeouts and keep-alive
   */
  readonly dynamodb?: DynamoDBSender;
  /**
   * The storage of leases: `lightStore()` of `@leasehold/client/light` for DynamoDB without the AWS SDK (import
   * `LeaseClient` from there too, or the SDK stays in the bundle), `MemoryLeaseStore` of `@leasehold/client/testing`
   * for tests.
   * @default - the table `tableName` of DynamoDB
   */
  readonly store?: LeaseStore;
  /**
   * Readable label of the holder, at most 1024 bytes. For reentrancy it is also an identity.
   * @default - the Lambda function and its log stream, or host name and process id; unique for each client, and for each
   * clone of a snapshot that was taken before its first use, or more than a second before it went on
   */
  readonly owner?: string;
  /** How long a lease lasts unless it is renewed. From 1 ms to 366 days. @default 30000 */
  readonly leaseDurationMs?: number;
  /**
   * How far the clocks of the service's own hosts may differ; the clocks of clients do not matter. By the service's
   * clock, callers take a lease over only this long after its expiry. Infinity turns that off: then a caller has to
   * observe a dead holder, and a lock in its cooldown, for a whole lease and a little more. At most `leaseDurationMs`.
   * Clients of one table may have different values.
   * @default 1000, or the lease's duration if that is shorter
   */
  readonly clockSkewMs?: number;
  /**
   * How long DynamoDB's ttl keeps an unused lock. At least `clockSkewMs`; below an hour, a request that is delayed that
   * long could restart the fencing tokens.
   * @default 604800000 (7 days)
   */
  readonly retentionMs?: number;
  /**
   * Receives every event of this client. Several listeners, such as `metricsListener` of `@leasehold/client/metrics` and
   * `logListener` of `@leasehold/client/log`, get them side by side. See also the diagnostics channels `leasehold:*`.
   * @default - none
   */
  readonly onEvent?: LeaseEventListener | readonly LeaseEventListener[];
  /**
   * How leases with a heartbeat are renewed: `together()` of `@leasehold/client/together` for processes that hold many.
   * @default - each by itself, with a timer and 1 request each time
   */
  readonly renewals?: Renewals;
  /** Clocks and timers. @default - the machine's own */
  readonly clock?: Clock;
  /** Tokens and jitter. @default - the platform's random source */
  readonly randomness?: Randomness;
}

/** Options of {@link LeaseClient.close}. */
export interface CloseOptions {
  /**
   * The longest wait for the service, in milliseconds. 0 does not wait.
   * @default - until everything is confirmed, or the service has confirmed nothing for ten seconds
   */
  readonly timeoutMs?: number;
}

/** Options of any lease, whatever primitive it belongs to. */
export interface HoldOptions {
  /** @default - the client's `leaseDurationMs` */
  readonly leaseDurationMs?: number;
  /**
   * Renews the lease in the background: `true` for every third of its duration, or an interval in milliseconds,
   * shorter than half of it. @default false
   */
  readonly heartbeat?: boolean | number;
  /** @default - the client's owner */
  readonly owner?: string;
  /**
   * Plain JSON values that all readers of the table can see. DynamoDB bills every renewal for their size too.
   * @default - none
   */
  readonly data?: unknown;
  /** Ends the acquisition; a request under way is taken back. It does not change a held lease. @default - none */
  readonly signal?: AbortSignal;
  /**
   * After an earlier release, the lock stays in its cooldown until this much time has passed since the acquisition. So a
   * job that is shorter than the clocks differ does not run twice. At most `leaseDurationMs`. @default 0
   */
  readonly lockAtLeastForMs?: number;
  /**
   * Gives the same owner the lock again. Within a client, the callers share the lease, and the client counts them. A
   * call takes over the same owner's lease in another process at once, such as that of a retried Lambda invocation. It
   * shares or takes over only leases that were acquired with `reentrant`. From then on, a shared lease lasts at least
   * as long as this call's own `leaseDurationMs`, and its cooldown as long as `lockAtLeastForMs`; a shorter lease is
   * renewed for that. A lease that is as long is not: `remainingMs()` tells what is left of it. With a `heartbeat` of
   * any of its callers, it is renewed until the last of them has released it. It keeps its payload: other `data` is
   * refused with InvalidOptionsError.
   *
   * Needs an `owner`: an identity that no two workers share. The client's own owner does not count, because all its
   * callers have it. @default false
   */
  readonly reentrant?: boolean;
  /**
   * The run that this acquisition is for, such as a schedule's own time in ISO format. The call rejects with
   * SlotDoneError once {@link Lease.complete} has recorded this slot, or a later one, as done. Slots are compared as
   * text: 1 to 255 printable ASCII characters. A Date means its `toISOString()`. A Date more than a minute ahead is
   * refused with SlotNotDueError, because once done it would refuse every run until then. The record is kept for
   * `retentionMs` after the last use of the lock.
   * @default - any number of runs
   */
  readonly slot?: string | Date;
}

/** How a client renews leases, as `together()` returns it. What it consists of is Leasehold's own. */
export interface Renewals {
  /** @internal */
  readonly begin: (core: never) => unknown;
}

/** An order in which waiting callers get a lease, as `fair()` returns it. What it consists of is Leasehold's own. */
export interface WaitOrder {
  /** @internal */
  readonly begin: (core: never, form: never, call: never) => unknown;
}

/** Options of any lease that a caller can wait for. */
export interface WaitOptions extends HoldOptions {
  /** How long to wait for a held lock. Infinity needs a `signal`, which can end the wait. @default 0 */
  readonly waitMs?: number;
  /** The rhythm of waiting. @default { strategy: "untilExpiry" } */
  readonly retry?: RetryStrategy;
  /**
   * The order in which waiting callers get the lock: `fair()` of `@leasehold/client/fair` for first come, first served.
   * An order has its own rhythm, without `retry`. While others wait, a caller with an order that does not wait is
   * refused. Callers without an order do not wait for callers with one.
   * @default - the first caller that tries after a release gets it
   */
  readonly order?: WaitOrder;
}

/** Options of one acquisition that does not wait. */
export interface TryAcquireOptions extends HoldOptions, Pick<WaitOptions, "order"> {}

/** Options of one acquisition. */
export interface AcquireOptions extends WaitOptions {}
