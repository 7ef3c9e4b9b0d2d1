import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import type { LeaseEventListener } from "../events.ts";
import type { Randomness } from "../protocol/context.ts";
import type { WaitOrder } from "../protocol/wait-order.ts";
import type { LeaseStore } from "../store.ts";
import type { Clock } from "../time/clock.ts";
import type { RetryStrategy } from "../time/retry.ts";

/** What a DynamoDBClient and a DynamoDBDocumentClient have in common, as far as leases need it. */
export type DynamoDBSender = Pick<DynamoDBClient, "send">;

/** Options of a {@link LeaseClient}. */
export interface LeaseClientOptions {
  /** The lease table's name or ARN. Needed unless `store` is given. */
  readonly tableName?: string;
  /**
   * A DynamoDBClient or a DynamoDBDocumentClient of yours; it is used as it is and never destroyed. Every call that
   * a lease makes through it is bounded in time, whatever its own timeouts.
   * @default - a client with region and credentials from the environment, short timeouts and keep-alive
   */
  readonly dynamodb?: DynamoDBSender;
  /**
   * Where leases are kept: `lightStore()` of `@leasehold/client/light` for DynamoDB without the AWS SDK (import
   * `LeaseClient` from there too, or the SDK stays in the bundle), `MemoryLeaseStore` of `@leasehold/client/testing` for tests.
   * @default - the table `tableName` of DynamoDB
   */
  readonly store?: LeaseStore;
  /**
   * Readable label of who holds a lock, at most 1024 bytes. For reentrancy it is also an identity.
   * @default - the Lambda function and its log stream, or host name and process id; unique for each client
   */
  readonly owner?: string;
  /** How long a lease lasts unless it is renewed. From 1 ms to 366 days. @default 30000 */
  readonly leaseDurationMs?: number;
  /**
   * How far the clocks of the service's own hosts may differ; those of clients do not matter. A lease is taken over by the
   * service's clock only this long after its expiry. Infinity turns that off: then a dead holder, and a lock that
   * `lockAtLeastForMs` keeps closed, have to be watched by the caller for a whole lease and a little more. At most
   * `leaseDurationMs`. The same for all clients of a table.
   * @default 1000, or the lease's duration if that is shorter
   */
  readonly clockSkewMs?: number;
  /**
   * For how long DynamoDB's ttl keeps a lock that nobody uses any more. At least `clockSkewMs`; below an hour, a
   * request that is delayed for that long could make the fencing tokens start again.
   * @default 604800000 (7 days)
   */
  readonly retentionMs?: number;
  /** Receives every event of this client; see also the diagnostics channels `leasehold:*`. @default - nobody */
  readonly onEvent?: LeaseEventListener;
  /** Clocks and timers. @default - the machine's own */
  readonly clock?: Clock;
  /** Tokens and jitter. @default - the platform's random source */
  readonly randomness?: Randomness;
}

/** Options of {@link LeaseClient.close}. */
export interface CloseOptions {
  /** How long to wait for the service, in milliseconds. 0 waits for nothing. @default 10000 */
  readonly timeoutMs?: number;
}

/** What is asked of any lease, whatever primitive it belongs to. */
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
   * Plain JSON values that whoever inspects the lock can read. Every renewal is billed for their size too.
   * @default - none
   */
  readonly data?: unknown;
  /** Gives the acquisition up; a request under way is taken back. Does not touch a lease that is held. @default - none */
  readonly signal?: AbortSignal;
  /**
   * A release before this much time has passed keeps the lock closed until then, so that a job shorter than the
   * clocks differ does not run twice. At most `leaseDurationMs`. @default 0
   */
  readonly lockAtLeastForMs?: number;
  /**
   * Lets the same owner in again: within a client the lease is shared and counted; a lease of the same owner from
   * elsewhere, as of a Lambda invocation that is being retried, is taken over at once. Only leases that were acquired
   * with `reentrant` are shared or taken over.
   *
   * Needs an `owner` beside it, which has to be an identity that no two workers share: the client's own owner is that of
   * all its callers. @default false
   */
  readonly reentrant?: boolean;
  /**
   * The run that this acquisition stands for, such as a schedule's own time in ISO format: refused with SlotDoneError
   * once {@link Lease.complete} has recorded this slot, or a later one, as done. Slots are compared as text; 1 to
   * 255 printable ASCII characters. A Date stands for its `toISOString()`. What is done is remembered for `retentionMs`
   * after the lock was last used.
   * @default - any number of runs
   */
  readonly slot?: string | Date;
}

/** What is asked of any lease that may be waited for. */
export interface WaitOptions extends HoldOptions {
  /** How long to wait for a lock that is held. Infinity needs a `signal`, which can end the wait. @default 0 */
  readonly waitMs?: number;
  /** The rhythm of waiting. @default { strategy: "untilExpiry" } */
  readonly retry?: RetryStrategy;
  /**
   * In which order the callers that wait get it: `fair()` of `@leasehold/client/fair` for the order in which they came. Such
   * an order has a rhythm of its own, without `retry`; a caller that does not wait is refused while others do. Callers
   * without an order do not wait for those that have one.
   * @default - the first caller that tries after a release gets it
   */
  readonly order?: WaitOrder;
}

/** Options of one acquisition that does not wait. */
export interface TryAcquireOptions extends HoldOptions, Pick<WaitOptions, "order"> {}

/** Options of one acquisition. */
export interface AcquireOptions extends WaitOptions {}
