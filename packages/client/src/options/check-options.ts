import { environmentNames } from "../environment.ts";
import { InvalidOptionsError } from "../errors/errors.ts";
import type { WaitOrder } from "../protocol/wait-order.ts";
import { limits } from "../schema.ts";
import type { RetryStrategy } from "../time/retry.ts";
import {
  check,
  checkDuration,
  checkKnown,
  checkMethods,
  checkSignal,
  checkSlot,
  checkText,
  isWhole,
} from "./check-values.ts";
import type { DynamoDBSender, HoldOptions, LeaseClientOptions, WaitOptions } from "./options.ts";

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
/** Names of the options of any lease, but for the slot that a single one may stand for. */
export const slotlessOptionNames: readonly Exclude<keyof HoldOptions, "slot">[] = [
  "leaseDurationMs",
  "heartbeat",
  "owner",
  "data",
  "signal",
  "lockAtLeastForMs",
  "reentrant",
];
const holdOptionNames: readonly (keyof HoldOptions)[] = [...slotlessOptionNames, "slot"];
const waitOptionNames: readonly (keyof WaitOptions)[] = [...holdOptionNames, "order", "waitMs", "retry"];
const tryOptionNames: readonly (keyof WaitOptions)[] = [...holdOptionNames, "order"];

const defaultLeaseDurationMs = 30_000;
const defaultClockSkewMs = 1_000;
const defaultRetentionMs = 7 * 24 * 60 * 60 * 1000;

const clockMethods = ["now", "monotonic", "schedule"];
const randomnessMethods = ["token", "fraction"];
const storeMethods = ["update", "updateMany", "transact", "get", "query", "scan"];

/** Times of a client, validated. */
export interface ClientTimes {
  readonly leaseDurationMs: number;
  readonly clockSkewMs: number;
  /** No lease may be shorter than this. */
  readonly shortestLeaseMs: number;
  readonly retentionMs: number;
}

/** A client's options as they were given, each read once, and its times. */
export interface CheckedClientOptions {
  readonly given: LeaseClientOptions;
  readonly times: ClientTimes;
}

/** Validates a client's options, all but the owner. */
export function checkClientOptions(options: LeaseClientOptions): CheckedClientOptions {
  const given = checkKnown(options, clientOptionNames, "options");
  const { store, tableName, dynamodb, onEvent, clock, randomness } = given;
  if (store === undefined) checkTableName(tableName);
  else {
    const allowed = "a store alone, or tableName and perhaps dynamodb";
    if (tableName !== undefined || dynamodb !== undefined) {
      throw new InvalidOptionsError("store", store, allowed, {
        finding: "is given beside tableName or dynamodb",
      });
    }
    checkMethods("store", store, storeMethods);
    checkText("store.tableName", store.tableName, 2048);
  }
  checkSender(dynamodb);
  check(onEvent === undefined || typeof onEvent === "function", "onEvent", onEvent, "a function");
  checkClock(clock);
  checkRandomness(randomness);
  const { leaseDurationMs = defaultLeaseDurationMs, retentionMs = defaultRetentionMs } = given;
  checkDuration("leaseDurationMs", leaseDurationMs, 1);
  const { clockSkewMs = Math.min(defaultClockSkewMs, leaseDurationMs) } = given;
  if (clockSkewMs !== Number.POSITIVE_INFINITY) checkSkew(clockSkewMs, leaseDurationMs);
  const finiteSkewMs = Number.isFinite(clockSkewMs) ? clockSkewMs : 0;
  checkDuration("retentionMs", retentionMs, finiteSkewMs);
  // A default allowance binds nobody: a caller who asks for a very short lease has not asked for the allowance.
  const shortestLeaseMs = given.clockSkewMs === undefined ? 1 : Math.max(1, finiteSkewMs);
  return { given, times: { leaseDurationMs, clockSkewMs, shortestLeaseMs, retentionMs } };
}

/** Validates a clock, if one is given. */
export function checkClock(clock: unknown): void {
  if (clock !== undefined) checkMethods("clock", clock, clockMethods);
}

/** Validates a source of randomness, if one is given. */
export function checkRandomness(randomness: unknown): void {
  if (randomness !== undefined) checkMethods("randomness", randomness, randomnessMethods);
}

/** Validates a client of the SDK, if one is given. */
export function checkSender(dynamodb: unknown): void {
  if (dynamodb === undefined) return;
  const isSender = typeof (dynamodb as Partial<DynamoDBSender> | null)?.send === "function";
  check(isSender, "dynamodb", dynamodb, "a DynamoDBClient or a DynamoDBDocumentClient");
}

/** Validates the name or ARN of a table. */
export function checkTableName(tableName: unknown): string {
  const isName =
    typeof tableName === "string" && /^([\w.-]{3,255}|arn:[\w-]+:dynamodb:\S{1,1000})$/.test(tableName);
  if (isName) return tableName;
  const allowed = "a table's name (3 to 255 of the characters a-z, A-Z, 0-9, _, - and .) or its ARN";
  const isUnset = tableName === undefined || tableName === "";
  const advice = isUnset
    ? `if it comes from an environment variable, such as ${environmentNames.tableName}, that variable is not set`
    : undefined;
  throw new InvalidOptionsError("tableName", tableName, allowed, { advice });
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
  readonly order: WaitOrder | undefined;
  readonly slot: string | undefined;
}

/** Validates one acquisition's options, all but the payload. */
export function checkAcquireOptions(
  options: WaitOptions,
  mayWait: boolean,
  owner: string,
  times: ClientTimes,
): AcquisitionTerms {
  const given = checkKnown(options, mayWait ? waitOptionNames : tryOptionNames, "options");
  const { signal, reentrant = false, waitMs = 0, retry = { strategy: "untilExpiry" } } = given;
  const { leaseDurationMs = times.leaseDurationMs, lockAtLeastForMs = 0, order } = given;
  checkSignal(signal);
  if (order !== undefined) {
    checkMethods("order", order, ["begin"]);
    check(
      given.retry === undefined,
      "retry",
      given.retry,
      "nothing beside order, which has a rhythm of its own",
    );
  }
  check(typeof reentrant === "boolean", "reentrant", reentrant, "true or false");
  const identity =
    "with reentrant: true, an identity that no two workers share; not left to the client's owner";
  check(!reentrant || options.owner !== undefined, "owner", options.owner, identity);
  checkDuration("leaseDurationMs", leaseDurationMs, times.shortestLeaseMs);
  return {
    owner: given.owner === undefined ? owner : checkText("owner", given.owner, limits.ownerBytes),
    leaseDurationMs,
    waitMs: checkWait(waitMs, signal),
    retry: checkRetry(retry),
    heartbeatMs: checkHeartbeat(given.heartbeat, leaseDurationMs),
    data: given.data,
    signal,
    lockAtLeastForMs: checkDuration("lockAtLeastForMs", lockAtLeastForMs, 0, leaseDurationMs),
    reentrant,
    order,
    slot: given.slot === undefined ? undefined : checkSlot("slot", given.slot),
  };
}

/** Validates how long to wait. Without an end of its own a wait needs a signal that can end it. */
function checkWait(waitMs: number, signal: AbortSignal | undefined): number {
  if (waitMs !== Number.POSITIVE_INFINITY) return checkDuration("waitMs", waitMs, 0);
  const allowed = `a whole number of milliseconds from 0 to ${limits.durationMs}, or Infinity beside a signal`;
  const advice = "to wait without an end, pass a signal that can end it";
  if (signal === undefined) throw new InvalidOptionsError("waitMs", waitMs, allowed, { advice });
  return waitMs;
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

/** The options of each rhythm, besides its name. */
const retryOptionNames: Record<RetryStrategy["strategy"], readonly string[]> = {
  untilExpiry: [],
  fixed: ["delayMs"],
  linear: ["delayMs", "maxDelayMs"],
  exponential: ["delayMs", "maxDelayMs"],
  fullJitter: ["delayMs", "maxDelayMs"],
};

/** Validates a rhythm of looking. */
export function checkRetry(retry: RetryStrategy): RetryStrategy {
  const read = checkKnown(retry, ["strategy", "delayMs", "maxDelayMs"], "retry");
  const { strategy } = read;
  const isKnown = Object.hasOwn(retryOptionNames, String(strategy));
  check(isKnown, "retry.strategy", strategy, Object.keys(retryOptionNames).join(", "));
  const given = checkKnown(read, ["strategy", ...retryOptionNames[strategy]], "retry");
  if (given.strategy === "untilExpiry") return given;
  checkDuration("retry.delayMs", given.delayMs, 1);
  if (given.strategy === "fixed" || given.maxDelayMs === undefined) return given;
  checkDuration("retry.maxDelayMs", given.maxDelayMs, given.delayMs);
  return given;
}
