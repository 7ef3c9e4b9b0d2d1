/** The options of a client and of an acquisition: a rule for each, then the rules between options. */

import {
  check,
  checkDuration,
  checkOptions,
  checkSignal,
  checkSlot,
  checkText,
  countTo,
  duration,
  label,
  listeners,
  membersOf,
  oneOf,
  type Rule,
  type Rules,
  rule,
  trueOrFalse,
  unchecked,
  withMethods,
} from "./check-values.ts";
import type { Clock, Randomness } from "./clock.ts";
import { SlotNotDueError } from "./errors.ts";
import type {
  DynamoDBSender,
  HoldOptions,
  LeaseClientOptions,
  Renewals,
  TryAcquireOptions,
  WaitOptions,
  WaitOrder,
} from "./options.ts";
import type { RetryStrategy } from "./retry.ts";
import { limits } from "./schema.ts";
import type { LeaseStore } from "./store.ts";

const defaultLeaseDurationMs = 30_000;
const defaultClockSkewMs = 1_000;
const defaultRetentionMs = 7 * 24 * 60 * 60 * 1000;

const tableName: Rule<string> = rule(
  "a table's name (3 to 255 of a-z, A-Z, 0-9, _, - and .) or ARN",
  (value) => typeof value === "string" && /^([\w.-]{3,255}|arn:[\w-]+:dynamodb:\S{1,1000})$/.test(value),
);

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

const storeMethods = withMethods<LeaseStore>("update", "updateMany", "transact", "get", "query", "scan");
/** The rule of the caller's own store. */
export const checkStore: Rule<LeaseStore> = (option, value) => {
  const store = storeMethods(option, value);
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
  renewals: withMethods<Renewals>("begin"),
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
  const isAlone = store === undefined || (given.tableName ?? given.dynamodb) === undefined;
  check(isAlone, "store", store, "a store without tableName and dynamodb");
  const { clockSkewMs = Math.min(defaultClockSkewMs, leaseDurationMs) } = given;
  const finiteSkewMs = clockSkewMs === Number.POSITIVE_INFINITY ? 0 : clockSkewMs;
  checkDuration("clockSkewMs", finiteSkewMs, 0, leaseDurationMs, " (leaseDurationMs), or Infinity");
  checkDuration("retentionMs", retentionMs, finiteSkewMs);
  // A default allowance is no lower limit: a caller with a very short lease has not asked for the allowance.
  const shortestLeaseMs = given.clockSkewMs === undefined ? 1 : Math.max(1, finiteSkewMs);
  return { given, times: { leaseDurationMs, clockSkewMs, shortestLeaseMs, retentionMs } };
}

/** A strategy with the bounds of all strategies. */
interface AnyRetry {
  readonly strategy: RetryStrategy["strategy"];
  readonly minDelayMs?: number;
  readonly delayMs?: number;
  readonly maxDelayMs?: number;
  readonly maxRetries?: number;
}

const delay: Rule<number> = duration(1);
const maxRetries: Rule<number> = countTo(1_000_000);
const growing = { delayMs: delay, maxDelayMs: delay, maxRetries };
const random = { minDelayMs: delay, maxDelayMs: delay, maxRetries };
/** The bounds of each strategy. The first is required, of `random` also the second. */
const strategies: Record<AnyRetry["strategy"], Partial<Rules<AnyRetry>>> = {
  untilExpiry: {},
  fixed: { delayMs: delay, maxRetries },
  linear: growing,
  exponential: growing,
  fullJitter: growing,
  random,
};
const strategyName = oneOf(...(Object.keys(strategies) as AnyRetry["strategy"][]));

/** Validates a rhythm of looking. */
export function checkRetry(_: string, retry: unknown): RetryStrategy {
  const { strategy } = membersOf(retry as AnyRetry, ["strategy"], "retry");
  const bounds = strategies[strategyName("retry.strategy", strategy)];
  const required = Object.keys(bounds).slice(0, strategy === "random" ? 2 : 1) as (keyof AnyRetry)[];
  // The strategy is read a second time, with its bounds, and must be the same.
  const rules = { strategy: oneOf(strategy), ...bounds } as Rules<AnyRetry>;
  const given = checkOptions(retry as AnyRetry, rules, "retry", required);
  const { minDelayMs = 1, delayMs = minDelayMs, maxDelayMs } = given;
  if (maxDelayMs !== undefined) checkDuration("retry.maxDelayMs", maxDelayMs, delayMs);
  return given as RetryStrategy;
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
  const given: WaitOptions = checkOptions(options, mayWait ? waitRules : (tryRules as Rules<WaitOptions>));
  const { data, signal, order, retry, slot } = given;
  const terms = {
    owner,
    leaseDurationMs: times.leaseDurationMs,
    waitMs: 0,
    retry: { strategy: "untilExpiry" } as const,
    lockAtLeastForMs: 0,
    reentrant: false,
    ...given,
  };
  const { leaseDurationMs, waitMs } = terms;
  check(order === undefined || retry === undefined, "retry", retry, "none beside order");
  const isIdentified = given.owner !== undefined || !terms.reentrant;
  check(isIdentified, "owner", given.owner, "this worker's own identity, for reentrant");
  checkDuration("leaseDurationMs", leaseDurationMs, times.shortestLeaseMs);
  checkDuration("lockAtLeastForMs", terms.lockAtLeastForMs, 0, leaseDurationMs);
  const isEndless = waitMs === Number.POSITIVE_INFINITY && signal !== undefined;
  if (!isEndless) checkDuration("waitMs", waitMs, 0, limits.durationMs, ", or Infinity beside a signal");
  return {
    ...terms,
    data,
    signal,
    order,
    askedDurationMs: given.leaseDurationMs,
    heartbeatMs: checkHeartbeat(given.heartbeat, leaseDurationMs),
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
  const most = Math.ceil(leaseDurationMs / 2) - 1;
  const intervalMs = heartbeat === true && most > 0 ? Math.floor(leaseDurationMs / 3) : heartbeat;
  return checkDuration("heartbeat", intervalMs, 1, most, ", true or false");
}
