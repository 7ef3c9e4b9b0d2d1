import {
  type AcquireOptions,
  type Clock,
  InvalidOptionsError,
  LeaseClient,
  type LeaseEventListener,
  type LeaseUnavailableError,
  type SlotDoneError,
  systemClock,
} from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import { metricsListener } from "@leasehold/client/metrics";
import type { Context } from "aws-lambda";

/**
 * What an invocation does that finds the lock held.
 *
 * - `skip`: its handler is not run; the answer is `skipResult`, and the trigger takes it for a success.
 * - `throw`: rejects with LeaseUnavailableError, so that the trigger retries.
 * - `wait`: waits for the lock and leaves the work at least `reserveMs`; then it throws.
 * - `replace`: asks the holder to stop (its signal aborts with the reason `revoked` at its next heartbeat), and waits
 *   for it as `wait` does.
 */
export type WhenHeld = "skip" | "throw" | "wait" | "replace";

/** Why a handler was not run; undefined where a newer trigger made it stop (`whenHeld: "replace"`). */
export type SkipReason = LeaseUnavailableError | SlotDoneError | undefined;

/** Options of `leaseLock` and of `leased`. Where an environment variable is named, it is the default. */
export interface LeaseLockOptions<TEvent = unknown> {
  /** The client to use. @default - one for `tableName`, made once, with the other defaults of a LeaseClient */
  readonly client?: LeaseClient;
  /** The lease table's name or ARN; beside `client`, it is only what metrics say. @default - LEASEHOLD_TABLE_NAME */
  readonly tableName?: string;
  /** The lock's key. @default - LEASEHOLD_KEY */
  readonly key?: string | ((event: TEvent, context: Context) => string);
  /** What to do while somebody else holds the lock. @default - LEASEHOLD_WHEN_HELD, else "skip" */
  readonly whenHeld?: WhenHeld;
  /**
   * With `whenHeld: "wait"`: invocations get the lock in the order in which they came. One that finds `maxWaiters`
   * waiting rejects with QueueFullError. @default false
   */
  readonly fair?: boolean;
  /** With `fair`: how many may wait, from 1 to 500. @default 100 */
  readonly maxWaiters?: number;
  /** What a skipped invocation answers, or a function that gives it. @default - nothing */
  readonly skipResult?: unknown;
  /**
   * The lease's duration: after a crash nobody gets in for this long.
   * @default - LEASEHOLD_LOCK_AT_MOST_FOR_MS; else the invocation's remaining time and a second, which needs no renewal;
   * else, with a heartbeat or where no remaining time is known, 30000
   */
  readonly lockAtMostForMs?: number;
  /** How long the lock stays closed at least, from its acquisition. @default - LEASEHOLD_LOCK_AT_LEAST_FOR_MS, else 0 */
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
   * that is done, or earlier than one that is done, is always skipped, whatever `whenHeld` says.
   * @default - LEASEHOLD_ONCE is "true"
   */
  readonly once?: boolean | ((event: TEvent, context: Context) => string);
  /** Plain JSON values that whoever inspects the lock can read. @default - none */
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
  /** Receives the events of the client that is made for `tableName`. @default - they are written as metrics */
  readonly onEvent?: LeaseEventListener;
  /** The job's name in metrics. @default - LEASEHOLD_JOB, else none */
  readonly job?: string;
  /** Writes a line of metrics, or `false` for none. @default - console.log */
  readonly metrics?: false | ((line: string) => void);
  /** Clocks and timers. @default - the machine's own */
  readonly clock?: Clock;
}

/** Options as they are used: complete, and validated as far as they can be before there is an event. */
export interface Settings<TEvent> {
  readonly client: LeaseClient;
  readonly tableName: string | undefined;
  readonly key: string | ((event: TEvent, context: Context) => string);
  readonly whenHeld: WhenHeld;
  /** For `client.acquire`. */
  readonly fairness: Pick<AcquireOptions, "fair" | "maxWaiters">;
  readonly skipResult: unknown;
  readonly lockAtMostForMs: number | undefined;
  readonly lockAtLeastForMs: number;
  readonly heartbeat: boolean | number | undefined;
  readonly once: boolean | ((event: TEvent, context: Context) => string);
  readonly data: unknown;
  readonly reserveMs: number | undefined;
  readonly timeoutMarginMs: number;
  readonly timeoutEarlyInMillis: number;
  readonly job: string | undefined;
  readonly writeMetrics: ((line: string) => void) | undefined;
  readonly clock: Clock;
}

const isAny = (): boolean => true;
const isObject = (value: unknown): boolean => typeof value === "object" && value !== null;
const isFunction = (value: unknown): boolean => typeof value === "function";
const isText = (value: unknown): boolean => typeof value === "string" && value !== "";
const isDuration = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;
const isPositive = (value: unknown): boolean => isDuration(value) && value !== 0;
const whenHeldValues: readonly unknown[] = ["skip", "throw", "wait", "replace"] satisfies WhenHeld[];
const milliseconds = "a whole number of milliseconds";
/** As many as the queue of a lock takes. */
const mostWaiters = 500;

/** What each option accepts. */
const checks: Record<keyof LeaseLockOptions, readonly [(value: unknown) => boolean, string]> = {
  client: [(value) => value instanceof LeaseClient, "a LeaseClient"],
  tableName: [isText, "a table's name or ARN"],
  key: [(value) => isText(value) || isFunction(value), "a non-empty string, or a function that gives one"],
  whenHeld: [(value) => whenHeldValues.includes(value), whenHeldValues.join(", ")],
  fair: [(value) => typeof value === "boolean", "true or false"],
  maxWaiters: [
    (value) => isPositive(value) && (value as number) <= mostWaiters,
    `a whole number from 1 to ${mostWaiters}`,
  ],
  skipResult: [isAny, ""],
  lockAtMostForMs: [isPositive, `${milliseconds}, above 0`],
  lockAtLeastForMs: [isDuration, milliseconds],
  heartbeat: [
    (value) => typeof value === "boolean" || isPositive(value),
    `true, false, or ${milliseconds}, above 0`,
  ],
  once: [(value) => typeof value === "boolean" || isFunction(value), "true, false, or a function"],
  data: [isAny, ""],
  reserveMs: [isDuration, milliseconds],
  timeoutMarginMs: [isDuration, milliseconds],
  timeoutEarlyInMillis: [isDuration, milliseconds],
  onEvent: [isFunction, "a function"],
  job: [isText, "a non-empty string"],
  metrics: [(value) => value === false || isFunction(value), "false, or a function"],
  clock: [isObject, "a Clock"],
};

/** Completes the options from the environment. Throws InvalidOptionsError; sends nothing. */
export function readOptions<TEvent>(
  options: LeaseLockOptions<TEvent>,
  env: NodeJS.ProcessEnv = process.env,
): Settings<TEvent> {
  if (!isObject(options)) throw new InvalidOptionsError("options", options, "an object");
  for (const [name, value] of Object.entries(options)) {
    const check = checks[name as keyof LeaseLockOptions];
    if (check === undefined) {
      const allowed = `one of the options ${Object.keys(checks).join(", ")}`;
      throw new InvalidOptionsError(`options.${name}`, value, allowed);
    }
    if (value !== undefined && !check[0](value)) throw new InvalidOptionsError(name, value, check[1]);
  }
  const fromEnv = <T>(
    name: keyof typeof environmentNames,
    parse: (text: string) => T,
    option: keyof LeaseLockOptions = name as keyof LeaseLockOptions,
  ) => {
    const text = env[environmentNames[name]];
    if (text === undefined || text === "") return undefined;
    const value = parse(text);
    const [accepts, allowed] = checks[option];
    if (!accepts(value)) throw new InvalidOptionsError(environmentNames[name], text, allowed);
    return value;
  };

  const { clock = systemClock } = options;
  const heartbeat = options.heartbeat ?? fromEnv("heartbeatMs", Number, "heartbeat");
  const key = options.key ?? fromEnv("key", String);
  if (key === undefined) {
    throw new InvalidOptionsError("key", key, `a key, by the option or by ${environmentNames.key}`);
  }
  const lockAtMostForMs = options.lockAtMostForMs ?? fromEnv("lockAtMostForMs", Number);
  const lockAtLeastForMs = options.lockAtLeastForMs ?? fromEnv("lockAtLeastForMs", Number) ?? 0;
  if (lockAtMostForMs !== undefined) {
    if (lockAtLeastForMs > lockAtMostForMs) {
      const allowed = `at most lockAtMostForMs, which is ${lockAtMostForMs}`;
      throw new InvalidOptionsError("lockAtLeastForMs", lockAtLeastForMs, allowed);
    }
    if (typeof heartbeat === "number" && heartbeat >= lockAtMostForMs / 2) {
      const allowed = `below half of lockAtMostForMs, which is ${lockAtMostForMs}`;
      throw new InvalidOptionsError("heartbeat", heartbeat, allowed);
    }
  }
  const whenHeld = options.whenHeld ?? fromEnv("whenHeld", (text) => text as WhenHeld) ?? "skip";
  if (whenHeld === "replace" && heartbeat === false) {
    const allowed = 'true, or an interval: with whenHeld "replace", a holder has to hear that it is to stop';
    throw new InvalidOptionsError("heartbeat", heartbeat, allowed);
  }
  const { fair = false, maxWaiters } = options;
  if (fair && whenHeld !== "wait") {
    throw new InvalidOptionsError("fair", fair, 'nothing but false, unless whenHeld is "wait"');
  }
  if (maxWaiters !== undefined && !fair) {
    throw new InvalidOptionsError("maxWaiters", maxWaiters, "nothing without fair: true");
  }
  const tableName = options.tableName ?? fromEnv("tableName", String);
  const job = options.job ?? fromEnv("job", String);
  const writeMetrics = options.metrics === false ? undefined : (options.metrics ?? console.log);
  return {
    client: options.client ?? clientOf(tableName, job, writeMetrics, options),
    tableName,
    key,
    whenHeld,
    fairness: fair ? { fair, ...(maxWaiters === undefined ? {} : { maxWaiters }) } : {},
    skipResult: options.skipResult,
    lockAtMostForMs,
    lockAtLeastForMs,
    heartbeat,
    once: options.once ?? fromEnv("once", readBoolean) ?? false,
    data: options.data,
    reserveMs: options.reserveMs,
    timeoutMarginMs: options.timeoutMarginMs ?? 250,
    timeoutEarlyInMillis: options.timeoutEarlyInMillis ?? 5,
    job,
    writeMetrics,
    clock,
  };
}

function readBoolean(text: string): boolean {
  return text === "true" || (text === "false" ? false : (text as unknown as boolean));
}

function clientOf(
  tableName: string | undefined,
  job: string | undefined,
  writeMetrics: ((line: string) => void) | undefined,
  { clock, onEvent }: Pick<LeaseLockOptions, "clock" | "onEvent">,
): LeaseClient {
  if (tableName === undefined) {
    const allowed = `a table's name, by the option or by ${environmentNames.tableName}, or a client`;
    throw new InvalidOptionsError("tableName", tableName, allowed);
  }
  const listener = onEvent ?? (writeMetrics && metricsListener({ tableName, job }, writeMetrics));
  return new LeaseClient({ tableName, ...(clock && { clock }), ...(listener && { onEvent: listener }) });
}
