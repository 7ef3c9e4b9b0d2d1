/** The options of a client and of an acquisition: a rule for each, then the rules between options. */
import { environmentNames } from "../environment.ts";
import { InvalidOptionsError, SlotNotDueError } from "../errors/errors.ts";
import type { Randomness } from "../protocol/context.ts";
import type { WaitOrder } from "../protocol/wait-order.ts";
import { limits } from "../schema.ts";
import type { LeaseStore } from "../store.ts";
import type { Clock } from "../time/clock.ts";
import type { RetryStrategy } from "../time/retry.ts";
import {
  check,
  checkDuration,
  checkKnown,
  checkOptions,
  checkSignal,
  checkSlot,
  checkText,
  countTo,
  duration,
  isWhole,
  label,
  listeners,
  type Rule,
  type Rules,
  rule,
  trueOrFalse,
  unchecked,
  withMethods,
} from "./check-values.ts";
import type {
  DynamoDBSender,
  HoldOptions,
  LeaseClientOptions,
  TryAcquireOptions,
  WaitOptions,
} from "./options.ts";

const defaultLeaseDurationMs = 30_000;
const defaultClockSkewMs = 1_000;
const defaultRetentionMs = 7 * 24 * 60 * 60 * 1000;

/** Validates the name or ARN of a table. */
const tableName: Rule<string> = (option, value) => {
  if (typeof value === "string" && /^([\w.-]{3,255}|arn:[\w-]+:dynamodb:\S{1,1000})$/.test(value))
    return value;
  const allowed = "a table's name (3 to 255 of the characters a-z, A-Z, 0-9, _, - and .) or its ARN";
  const advice = value
    ? undefined
    : `is an environment variable, such as ${environmentNames.tableName}, not set?`;
  throw new InvalidOptionsError(option, value, allowed, { advice });
};

/** Rules of the options that select a table. */
export const tableRules: {
  readonly tableName: Rule<string>;
  readonly dynamodb: Rule<DynamoDBSender>;
  readonly clock: Rule<Clock>;
  readonly randomness: Rule<Randomness>;
} = {
  tableName,
  dynamodb: rule<DynamoDBSender>(
    "a DynamoDBClient or a DynamoDBDocumentClient",
    (value) => typeof (value as DynamoDBSender | null)?.send === "function",
  ),
  clock: withMethods<Clock>("now", "monotonic", "schedule"),
  randomness: withMethods<Randomness>("token", "fraction"),
};

/** The rule of the caller's own store. */
export const checkStore: Rule<LeaseStore> = (option, value) => {
  const store = withMethods<LeaseStore>(
    "update",
    "updateMany",
    "transact",
    "get",
    "query",
    "scan",
  )(option, value);
  checkText("store.tableName", store.tableName, 2048);
  return store;
};

const clientRules: Rules<LeaseClientOptions> = {
  ...tableRules,
  store: checkStore,
  owner: label,
  leaseDurationMs: duration(1),
  clockSkewMs: unchecked,
  retentionMs: unchecked,
  onEvent: listeners,
};

/** Times of a client, validated. */
export interface ClientTimes {
  readonly leaseDurationMs: number;
  readonly clockSkewMs: number;
  /** No lease may be shorter than this. */
  readonly shortestLeaseMs: number;
  readonly retentionMs: number;
}

/** A client's options as the caller gave them, each read once, and its times. */
export interface CheckedClientOptions {
  readonly given: LeaseClientOptions;
  readonly times: ClientTimes;
}

/** Validates a client's options. */
export function checkClientOptions(options: LeaseClientOptions): CheckedClientOptions {
  const given = checkOptions(options, clientRules);
  const { store, leaseDurationMs = defaultLeaseDurationMs, retentionMs = defaultRetentionMs } = given;
  if (store === undefined) tableName("tableName", given.tableName);
  else if (given.tableName !== undefined || given.dynamodb !== undefined) {
    const finding = "is given beside tableName or dynamodb";
    throw new InvalidOptionsError("store", store, "a store alone, or tableName and perhaps dynamodb", {
      finding,
    });
  }
  const { clockSkewMs = Math.min(defaultClockSkewMs, leaseDurationMs) } = given;
  const finiteSkewMs = clockSkewMs === Number.POSITIVE_INFINITY ? 0 : clockSkewMs;
  const skews = `a whole number of milliseconds from 0 to the lease's duration of ${leaseDurationMs}, or Infinity`;
  check(isWhole(finiteSkewMs) && finiteSkewMs <= leaseDurationMs, "clockSkewMs", clockSkewMs, skews);
  checkDuration("retentionMs", retentionMs, finiteSkewMs);
  // A default allowance is no lower limit: a caller with a very short lease has not asked for the allowance.
  const shortestLeaseMs = given.clockSkewMs === undefined ? 1 : Math.max(1, finiteSkewMs);
  return { given, times: { leaseDurationMs, clockSkewMs, shortestLeaseMs, retentionMs } };
}

const pauseBounds = ["delayMs", "maxDelayMs", "maxRetries"];
/** The pause bounds that each strategy takes. */
const boundsTaken: Record<RetryStrategy["strategy"], readonly string[]> = {
  untilExpiry: [],
  fixed: ["delayMs", "maxRetries"],
  linear: pauseBounds,
  exponential: pauseBounds,
  fullJitter: pauseBounds,
  random: ["minDelayMs", "maxDelayMs", "maxRetries"],
};
const retryCount: Rule<number> = countTo(1_000_000);

/** Validates a rhythm of looking. */
export function checkRetry(_: string, retry: unknown): RetryStrategy {
  const read = checkKnown(retry as RetryStrategy, ["strategy", "minDelayMs", ...pauseBounds], "retry");
  const { strategy } = read;
  const isKnown = typeof strategy === "string" && Object.hasOwn(boundsTaken, strategy);
  check(isKnown, "retry.strategy", strategy, Object.keys(boundsTaken).join(", "));
  const given = checkKnown(read, ["strategy", ...boundsTaken[strategy]], "retry");
  if (given.strategy === "untilExpiry") return given;
  if (given.maxRetries !== undefined) retryCount("retry.maxRetries", given.maxRetries);
  if (given.strategy === "random") {
    checkDuration("retry.minDelayMs", given.minDelayMs, 1);
    checkDuration("retry.maxDelayMs", given.maxDelayMs, given.minDelayMs);
    return given;
  }
  checkDuration("retry.delayMs", given.delayMs, 1);
  if (given.strategy === "fixed" || given.maxDelayMs === undefined) return given;
  checkDuration("retry.maxDelayMs", given.maxDelayMs, given.delayMs);
  return given;
}

/** The rules of any lease, except for its slot. Some ranges depend on the client, or on one another. */
const slotlessRules: Rules<Omit<HoldOptions, "slot">> = {
  leaseDurationMs: unchecked,
  heartbeat: unchecked,
  owner: label,
  data: unchecked,
  signal: checkSignal,
  lockAtLeastForMs: unchecked,
  reentrant: trueOrFalse,
};
/** The rule of an order of waiting, as `fair()` returns it. */
export const checkOrder: Rule<WaitOrder> = withMethods<WaitOrder>("begin");
/** A Date is a time, which may be too far ahead. A text need not be a time. */
const textOrTime: Rule<string | Date> = (option, value) => {
  const slot = checkSlot(option, value);
  return value instanceof Date ? new Date(slot) : slot;
};
const tryRules: Rules<TryAcquireOptions> = { ...slotlessRules, slot: textOrTime, order: checkOrder };
const waitRules: Rules<WaitOptions> = {
  ...tryRules,
  waitMs: unchecked,
  retry: checkRetry,
};

/** The option names of any lease, except for the slot. */
export const slotlessOptionNames: readonly Exclude<keyof HoldOptions, "slot">[] = /* @__PURE__ */ Object.keys(
  slotlessRules,
) as never;

/** One acquisition's options, validated and complete. */
export interface AcquisitionTerms {
  readonly owner: string;
  readonly leaseDurationMs: number;
  /** The duration that the call itself has named. */
  readonly askedDurationMs: number | undefined;
  readonly waitMs: number;
  readonly retry: RetryStrategy;
  readonly heartbeatMs: number | undefined;
  readonly data: unknown;
  readonly signal: AbortSignal | undefined;
  readonly lockAtLeastForMs: number;
  readonly reentrant: boolean;
  readonly order: WaitOrder | undefined;
  readonly slot: string | undefined;
  /** The slot's time in epoch milliseconds, if the slot was a Date. */
  readonly slotTime: number | undefined;
}

/** Validates one acquisition's options, all but the payload. */
export function checkAcquireOptions(
  options: WaitOptions,
  mayWait: boolean,
  owner: string,
  times: ClientTimes,
): AcquisitionTerms {
  const given: WaitOptions = mayWait ? checkOptions(options, waitRules) : checkOptions(options, tryRules);
  const { signal, order, retry, reentrant = false, waitMs = 0, lockAtLeastForMs = 0 } = given;
  const { leaseDurationMs = times.leaseDurationMs } = given;
  const isPaced = order === undefined || retry === undefined;
  check(isPaced, "retry", retry, "nothing beside order, which has a rhythm of its own");
  const identity = "an identity that no two workers share, beside reentrant: true";
  check(!reentrant || given.owner !== undefined, "owner", given.owner, identity);
  checkDuration("leaseDurationMs", leaseDurationMs, times.shortestLeaseMs);
  if (waitMs !== Number.POSITIVE_INFINITY) checkDuration("waitMs", waitMs, 0);
  else if (signal === undefined) {
    const allowed = `a whole number of milliseconds from 0 to ${limits.durationMs}, or Infinity beside a signal`;
    const advice = "to wait without an end, pass a signal that can end it";
    throw new InvalidOptionsError("waitMs", waitMs, allowed, { advice });
  }
  const { slot } = given;
  return {
    owner: given.owner ?? owner,
    leaseDurationMs,
    askedDurationMs: given.leaseDurationMs,
    waitMs,
    retry: retry ?? { strategy: "untilExpiry" },
    heartbeatMs: checkHeartbeat(given.heartbeat, leaseDurationMs),
    data: given.data,
    signal,
    lockAtLeastForMs: checkDuration("lockAtLeastForMs", lockAtLeastForMs, 0, leaseDurationMs),
    reentrant,
    order,
    slot: slot instanceof Date ? slot.toISOString() : slot,
    slotTime: slot instanceof Date ? slot.getTime() : undefined,
  };
}

/**
 * Refuses a Date as slot that lies in the future: once done, it would refuse every run until then. It may be ahead of
 * this clock by the difference of two clocks. Throws SlotNotDueError.
 */
export function checkDue(key: string, { slot, slotTime }: AcquisitionTerms, clock: Pick<Clock, "now">): void {
  if (slotTime === undefined) return;
  const dueInMs = slotTime - clock.now();
  if (dueInMs > limits.slotAheadMs) throw new SlotNotDueError(key, String(slot), dueInMs);
}

/** Returns the interval of a heartbeat; undefined without one. */
export function checkHeartbeat(heartbeat: unknown, leaseDurationMs: number): number | undefined {
  if (heartbeat === undefined || heartbeat === false) return undefined;
  const intervalMs = heartbeat === true ? Math.max(1, Math.floor(leaseDurationMs / 3)) : heartbeat;
  const isInRange = isWhole(intervalMs) && intervalMs > 0 && intervalMs < leaseDurationMs / 2;
  const allowed = `true, false, or a whole number of milliseconds below half the lease (${leaseDurationMs / 2})`;
  check(isInRange, "heartbeat", heartbeat, allowed);
  return intervalMs;
}
