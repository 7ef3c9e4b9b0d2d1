import { InvalidOptionsError } from "./errors.ts";
import type { HoldOptions, LeaseClientOptions, WaitOptions } from "./options.ts";
import type { RetryStrategy } from "./retry.ts";
import { limits } from "./schema.ts";
import { check, checkDuration, checkKnown, checkSlot, checkText, isWhole } from "./validation.ts";

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
/** Names of the options of any lease. */
export const holdOptionNames: readonly (keyof HoldOptions)[] = [
  "leaseDurationMs",
  "heartbeat",
  "owner",
  "data",
  "signal",
  "lockAtLeastForMs",
  "reentrant",
  "slot",
];
/** ... and of any that may be waited for. */
export const waitOptionNames: readonly (keyof WaitOptions)[] = [...holdOptionNames, "waitMs", "retry"];

const defaultLeaseDurationMs = 30_000;
const defaultClockSkewMs = 1_000;
const defaultRetentionMs = 7 * 24 * 60 * 60 * 1000;

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
  else {
    const isAlone = tableName === undefined && dynamodb === undefined;
    check(isAlone, "store", "given beside tableName or dynamodb", "one of the two");
  }
  const isSender = dynamodb === undefined || typeof dynamodb.send === "function";
  check(isSender, "dynamodb", dynamodb, "a DynamoDBClient or a DynamoDBDocumentClient");
  check(onEvent === undefined || typeof onEvent === "function", "onEvent", onEvent, "a function");
  const { leaseDurationMs = defaultLeaseDurationMs, retentionMs = defaultRetentionMs } = options;
  checkDuration("leaseDurationMs", leaseDurationMs, 1);
  const { clockSkewMs = Math.min(defaultClockSkewMs, leaseDurationMs) } = options;
  if (clockSkewMs !== Number.POSITIVE_INFINITY) checkSkew(clockSkewMs, leaseDurationMs);
  const finiteSkewMs = Number.isFinite(clockSkewMs) ? clockSkewMs : 0;
  checkDuration("retentionMs", retentionMs, finiteSkewMs);
  // A default allowance binds nobody: a caller who asks for a very short lease has not asked for the allowance.
  const shortestLeaseMs = options.clockSkewMs === undefined ? 1 : Math.max(1, finiteSkewMs);
  return { leaseDurationMs, clockSkewMs, shortestLeaseMs, retentionMs };
}

/** Validates the name or ARN of a table. */
export function checkTableName(tableName: unknown): string {
  const isName =
    typeof tableName === "string" && /^([\w.-]{3,255}|arn:[\w-]+:dynamodb:\S{1,1000})$/.test(tableName);
  const allowed = "a table's name (3 to 255 of the characters a-z, A-Z, 0-9, _, - and .) or its ARN";
  check(isName, "tableName", tableName, allowed);
  return tableName;
}

function checkSkew(clockSkewMs: number, leaseDurationMs: number): void {
  const isInRange = isWhole(clockSkewMs) && clockSkewMs <= leaseDurationMs;
  const allowed = `a whole number of milliseconds from 0 to the lease's duration of ${leaseDurationMs}, or Infinity`;
  check(isInRange, "clockSkewMs", clockSkewMs, allowed);
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
  readonly slot: string | undefined;
}

/** Validates one acquisition's options, all but the payload. */
export function checkAcquireOptions(
  options: WaitOptions,
  mayWait: boolean,
  owner: string,
  times: ClientTimes,
): AcquisitionTerms {
  checkKnown(options, mayWait ? waitOptionNames : holdOptionNames, "options");
  const { signal, reentrant = false, waitMs = 0, retry = { strategy: "untilExpiry" } } = options;
  const { leaseDurationMs = times.leaseDurationMs, lockAtLeastForMs = 0 } = options;
  check(signal === undefined || signal instanceof AbortSignal, "signal", signal, "an AbortSignal");
  check(typeof reentrant === "boolean", "reentrant", reentrant, "true or false");
  checkDuration("leaseDurationMs", leaseDurationMs, times.shortestLeaseMs);
  return {
    owner: options.owner === undefined ? owner : checkText("owner", options.owner, limits.ownerBytes),
    leaseDurationMs,
    waitMs: checkDuration("waitMs", waitMs, 0),
    retry: checkRetry(retry),
    heartbeatMs: checkHeartbeat(options.heartbeat, leaseDurationMs),
    data: options.data,
    signal,
    lockAtLeastForMs: checkDuration("lockAtLeastForMs", lockAtLeastForMs, 0, leaseDurationMs),
    reentrant,
    slot: options.slot === undefined ? undefined : checkSlot("slot", options.slot),
  };
}

/** Gives the interval of a heartbeat; undefined for none. */
export function checkHeartbeat(heartbeat: unknown, leaseDurationMs: number): number | undefined {
  if (heartbeat === undefined || heartbeat === false) return undefined;
  const intervalMs = heartbeat === true ? Math.max(1, Math.floor(leaseDurationMs / 3)) : heartbeat;
  const isInRange = isWhole(intervalMs) && intervalMs > 0 && intervalMs < leaseDurationMs / 2;
  const allowed = `true, false, or a whole number of milliseconds below half the lease (${leaseDurationMs / 2})`;
  check(isInRange, "heartbeat", heartbeat, allowed);
  return intervalMs;
}

/** Validates a rhythm of looking. */
export function checkRetry(retry: RetryStrategy): RetryStrategy {
  check(typeof retry === "object" && retry !== null, "retry", retry, "an object");
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
