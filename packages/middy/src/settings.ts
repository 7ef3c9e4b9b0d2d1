import {
  type Clock,
  InvalidOptionsError,
  type LeaseClientOptions,
  type LeaseEventListener,
  systemClock,
  type WaitOrder,
} from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import { LeaseClient } from "@leasehold/client/internal";
import { metricsListener, writeLine } from "@leasehold/client/metrics";
import type { Context } from "aws-lambda";
import type { LeaseLockOptions, WhenHeld } from "./options.ts";

/** Makes the client of a lock that is given none; the entries differ in it. */
export type MakeClient = (
  options: Pick<LeaseClientOptions, "tableName" | "store" | "clock" | "onEvent">,
) => LeaseClient;

/** Options as they are used: complete, and validated as far as they can be before there is an event. */
export interface Settings<TEvent> {
  readonly client: LeaseClient;
  /** Whether it was made here, so that it may be closed here. */
  readonly ownsClient: boolean;
  readonly tableName: string | undefined;
  readonly key: string | ((event: TEvent, context: Context) => string);
  /** Undefined: by what the event needs. */
  readonly whenHeld: WhenHeld | undefined;
  /** For `client.acquire`. */
  readonly order: WaitOrder | undefined;
  readonly skipResult: unknown;
  readonly resume: boolean;
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

/** What each option accepts. */
const checks: Record<keyof LeaseLockOptions, readonly [(value: unknown) => boolean, string]> = {
  client: [(value) => value instanceof LeaseClient, "a LeaseClient"],
  store: [isObject, "a LeaseStore, such as lightStore() of @leasehold/client/light"],
  tableName: [isText, "a table's name or ARN"],
  key: [(value) => isText(value) || isFunction(value), "a non-empty string, or a function that gives one"],
  whenHeld: [(value) => whenHeldValues.includes(value), whenHeldValues.join(", ")],
  order: [isObject, "an order, such as fair() of @leasehold/client/fair"],
  skipResult: [isAny, ""],
  lockAtMostForMs: [isPositive, `${milliseconds}, above 0`],
  lockAtLeastForMs: [isDuration, milliseconds],
  heartbeat: [
    (value) => typeof value === "boolean" || isPositive(value),
    `true, false, or ${milliseconds}, above 0`,
  ],
  once: [(value) => typeof value === "boolean" || isFunction(value), "true, false, or a function"],
  resume: [(value) => typeof value === "boolean", "true or false"],
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
  makeClient: MakeClient,
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
  const whenHeld = options.whenHeld ?? fromEnv("whenHeld", (text) => text as WhenHeld);
  if (whenHeld === "replace" && heartbeat === false) {
    const allowed = 'true, or an interval: with whenHeld "replace", a holder has to hear that it is to stop';
    throw new InvalidOptionsError("heartbeat", heartbeat, allowed);
  }
  const { order } = options;
  if (order !== undefined && whenHeld !== "wait") {
    throw new InvalidOptionsError("order", order, 'nothing, unless whenHeld is "wait"');
  }
  const once = options.once ?? fromEnv("once", readBoolean) ?? false;
  const { resume = false } = options;
  if (resume && once !== false) {
    throw new InvalidOptionsError("resume", resume, "false beside once, which never takes over a living run");
  }
  const { client, store } = options;
  if (store !== undefined && (client !== undefined || options.tableName !== undefined)) {
    throw new InvalidOptionsError("store", store, "nothing beside client or tableName");
  }
  const tableName = store?.tableName ?? options.tableName ?? fromEnv("tableName", String);
  const job = options.job ?? fromEnv("job", String);
  const writeMetrics = options.metrics === false ? undefined : (options.metrics ?? writeLine);
  return {
    client: client ?? clientOf(tableName, job, writeMetrics, options, makeClient),
    ownsClient: client === undefined,
    tableName,
    key,
    whenHeld,
    order,
    skipResult: options.skipResult,
    lockAtMostForMs,
    lockAtLeastForMs,
    heartbeat,
    once,
    resume,
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
  { clock, onEvent, store }: Pick<LeaseLockOptions, "clock" | "onEvent" | "store">,
  makeClient: MakeClient,
): LeaseClient {
  if (tableName === undefined) {
    const allowed = `a table's name, by the option or by ${environmentNames.tableName}, or a client`;
    throw new InvalidOptionsError("tableName", tableName, allowed);
  }
  const measure = writeMetrics && metricsListener({ tableName, job }, writeMetrics);
  const listener: LeaseEventListener = (event) => {
    measure?.(event);
    onEvent?.(event);
  };
  return makeClient({ ...(store ? { store } : { tableName }), ...(clock && { clock }), onEvent: listener });
}
