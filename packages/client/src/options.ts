import type { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { InvalidOptionsError } from "./errors.ts";
import type { LeaseEventListener } from "./events.ts";
import type { Randomness } from "./protocol/context.ts";
import type { RetryStrategy } from "./retry.ts";
import { limits } from "./schema.ts";
import type { LeaseStore } from "./store.ts";
import type { Clock } from "./time/clock.ts";
import { checkDuration, checkKnown, checkText } from "./validation.ts";

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
   * Where leases are kept, in place of DynamoDB: `MemoryLeaseStore` of `@leasehold/client/testing`.
   * @default - DynamoDB
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
   * How far two clocks may differ. A lease is taken over by wall clock only this long after its expiry; Infinity
   * turns takeover by wall clock off. At most `leaseDurationMs`.
   * @default 1000, or the lease's duration if that is shorter
   */
  readonly clockSkewMs?: number;
  /**
   * For how long DynamoDB's ttl keeps a lock that nobody uses any more. At least `clockSkewMs`.
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

/** Options of one acquisition that does not wait. */
export interface TryAcquireOptions {
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
   * elsewhere, as of a Lambda invocation that is being retried, is taken over at once. Then `owner` has to be an
   * identity that no two workers share. @default false
   */
  readonly reentrant?: boolean;
}

/** Options of one acquisition. */
export interface AcquireOptions extends TryAcquireOptions {
  /** How long to wait for a lock that is held. @default 0 */
  readonly waitMs?: number;
  /** The rhythm of waiting. @default { strategy: "untilExpiry" } */
  readonly retry?: RetryStrategy;
}

const clientOptionNames: readonly (keyof LeaseClientOptions)[] = [
  "tableName",
  "dynamodb",
  "store",
  "owner",
  "leaseDurationMs",
  "clockSkewMs",
  "retentionMs",
  "onEvent",
  "clock",
  "randomness",
];
const tryAcquireOptionNames: readonly (keyof TryAcquireOptions)[] = [
  "leaseDurationMs",
  "heartbeat",
  "owner",
  "data",
  "signal",
  "lockAtLeastForMs",
  "reentrant",
];
const acquireOptionNames: readonly (keyof AcquireOptions)[] = [...tryAcquireOptionNames, "waitMs", "retry"];

const defaults = {
  leaseDurationMs: 30_000,
  clockSkewMs: 1_000,
  retentionMs: 7 * 24 * 60 * 60 * 1000,
} as const;

/** Times of a client, validated. */
export interface ClientTimes {
  readonly leaseDurationMs: number;
  readonly clockSkewMs: number;
  /** No lease may be shorter than this. */
  readonly shortestLeaseMs: number;
  readonly retentionMs: number;
}

/** Validates a client's options, all but the owner. */
export function checkClientOptions(options: LeaseClientOptions): ClientTimes {
  checkKnown(options, clientOptionNames, "options");
  const { store, tableName, dynamodb, onEvent } = options;
  if (store === undefined) checkTableName(tableName);
  else if (tableName !== undefined || dynamodb !== undefined) {
    throw new InvalidOptionsError("store", "given beside tableName or dynamodb", "one of the two");
  }
  if (dynamodb !== undefined && typeof dynamodb.send !== "function") {
    throw new InvalidOptionsError("dynamodb", dynamodb, "a DynamoDBClient or a DynamoDBDocumentClient");
  }
  if (onEvent !== undefined && typeof onEvent !== "function") {
    throw new InvalidOptionsError("onEvent", onEvent, "a function");
  }
  const leaseDurationMs = checkDuration(
    "leaseDurationMs",
    options.leaseDurationMs ?? defaults.leaseDurationMs,
    1,
  );
  const clockSkewMs = options.clockSkewMs ?? Math.min(defaults.clockSkewMs, leaseDurationMs);
  if (clockSkewMs !== Number.POSITIVE_INFINITY) checkSkew(clockSkewMs, leaseDurationMs);
  const finiteSkewMs = Number.isFinite(clockSkewMs) ? clockSkewMs : 0;
  const retentionMs = checkDuration("retentionMs", options.retentionMs ?? defaults.retentionMs, finiteSkewMs);
  // A default allowance binds nobody: a caller who asks for a very short lease has not asked for the allowance.
  const shortestLeaseMs = options.clockSkewMs === undefined ? 1 : Math.max(1, finiteSkewMs);
  return { leaseDurationMs, clockSkewMs, shortestLeaseMs, retentionMs };
}

/** Validates the name or ARN of a table. */
export function checkTableName(tableName: unknown): string {
  const isName =
    typeof tableName === "string" && /^([\w.-]{3,255}|arn:[\w-]+:dynamodb:\S{1,1000})$/.test(tableName);
  if (!isName) {
    const allowed = "a table's name (3 to 255 of the characters a-z, A-Z, 0-9, _, - and .) or its ARN";
    throw new InvalidOptionsError("tableName", tableName, allowed);
  }
  return tableName;
}

function checkSkew(clockSkewMs: number, leaseDurationMs: number): void {
  const whole = Number.isSafeInteger(clockSkewMs) && clockSkewMs >= 0;
  if (!whole || clockSkewMs > leaseDurationMs) {
    const range = `a whole number of milliseconds from 0 to the lease's duration of ${leaseDurationMs}`;
    throw new InvalidOptionsError("clockSkewMs", clockSkewMs, `${range}, or Infinity`);
  }
}

/** One acquisition's options, validated and complete. */
export interface AcquisitionTerms {
  readonly owner: string;
  readonly leaseDurationMs: number;
  readonly waitMs: number;
  readonly retry: RetryStrategy;
  readonly heartbeatMs: number | undefined;
  readonly data: unknown;
  readonly signal: AbortSignal | undefined;
  readonly lockAtLeastForMs: number;
  readonly reentrant: boolean;
}

/** Validates one acquisition's options, all but the payload. */
export function checkAcquireOptions(
  options: AcquireOptions,
  mayWait: boolean,
  owner: string,
  times: ClientTimes,
): AcquisitionTerms {
  checkKnown(options, mayWait ? acquireOptionNames : tryAcquireOptionNames, "options");
  const { signal, reentrant = false } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) {
    throw new InvalidOptionsError("signal", signal, "an AbortSignal");
  }
  if (typeof reentrant !== "boolean") throw new InvalidOptionsError("reentrant", reentrant, "true or false");
  const leaseDurationMs = checkDuration(
    "leaseDurationMs",
    options.leaseDurationMs ?? times.leaseDurationMs,
    times.shortestLeaseMs,
  );
  return {
    owner: options.owner === undefined ? owner : checkText("owner", options.owner, limits.ownerBytes),
    leaseDurationMs,
    waitMs: checkDuration("waitMs", options.waitMs ?? 0, 0),
    retry: checkRetry(options.retry ?? { strategy: "untilExpiry" }),
    heartbeatMs: checkHeartbeat(options.heartbeat, leaseDurationMs),
    data: options.data,
    signal,
    lockAtLeastForMs: checkDuration("lockAtLeastForMs", options.lockAtLeastForMs ?? 0, 0, leaseDurationMs),
    reentrant,
  };
}

/** Gives the interval of a heartbeat; undefined for none. */
export function checkHeartbeat(heartbeat: unknown, leaseDurationMs: number): number | undefined {
  if (heartbeat === undefined || heartbeat === false) return undefined;
  const intervalMs = heartbeat === true ? Math.max(1, Math.floor(leaseDurationMs / 3)) : heartbeat;
  const isWhole = typeof intervalMs === "number" && Number.isSafeInteger(intervalMs) && intervalMs > 0;
  if (!isWhole || intervalMs >= leaseDurationMs / 2) {
    const allowed = `true, false, or a whole number of milliseconds below half the lease (${leaseDurationMs / 2})`;
    throw new InvalidOptionsError("heartbeat", heartbeat, allowed);
  }
  return intervalMs;
}

function checkRetry(retry: RetryStrategy): RetryStrategy {
  if (typeof retry !== "object" || retry === null) throw new InvalidOptionsError("retry", retry, "an object");
  switch (retry.strategy) {
    case "untilExpiry":
      checkKnown(retry, ["strategy"], "retry");
      return retry;
    case "fixed":
      checkKnown(retry, ["strategy", "delayMs"], "retry");
      checkDuration("retry.delayMs", retry.delayMs, 1);
      return retry;
    case "linear":
    case "exponential":
    case "fullJitter":
      checkKnown(retry, ["strategy", "delayMs", "maxDelayMs"], "retry");
      checkDuration("retry.delayMs", retry.delayMs, 1);
      if (retry.maxDelayMs !== undefined) checkDuration("retry.maxDelayMs", retry.maxDelayMs, retry.delayMs);
      return retry;
    default: {
      const allowed = "untilExpiry, fixed, linear, exponential or fullJitter";
      throw new InvalidOptionsError("retry.strategy", (retry as { strategy?: unknown }).strategy, allowed);
    }
  }
}
