/** The options of `leaseLock` and `leased`, with the environment's values and the defaults. */
import type { LeaseClientOptions, LeaseStore } from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import {
  aFunction,
  check,
  checkOptions,
  coreOf,
  duration,
  InvalidOptionsError,
  isFunction,
  LeaseClient,
  label,
  listeners,
  oneOf,
  type Rules,
  rule,
  systemClock,
  trueOrFalse,
  unchecked,
  withMethods,
} from "@leasehold/client/internal";
import { writeLine } from "@leasehold/client/metrics";
import { InvocationMetrics, type MetricsCollector } from "./invocation-metrics.ts";
import type { LeaseLockOptions } from "./options.ts";

/** Creates the client of a lock without a `client`; the entries differ in it. */
export type MakeClient = (
  options: Pick<LeaseClientOptions, "tableName" | "store" | "clock" | "onEvent">,
) => LeaseClient;

type Defaults = "lockAtLeastForMs" | "once" | "resume" | "timeoutMarginMs" | "timeoutEarlyInMillis" | "clock";

/** The complete options, validated as far as possible without an event. */
export interface MiddlewareSettings<TEvent>
  extends Omit<LeaseLockOptions<TEvent>, Defaults | "client" | "key" | "metrics">,
    Required<Pick<LeaseLockOptions<TEvent>, Defaults | "client" | "key">> {
  /** Whether the client was created here, so that it may be closed here. */
  readonly ownsClient: boolean;
  /** Undefined if nothing is measured. */
  readonly metrics: InvocationMetrics | undefined;
}

const collector = withMethods<MetricsCollector>("addMetric");
const time = duration(0);
const shorterThanLease = duration(1);

export const leaseLockRules: Rules<LeaseLockOptions<never>> = {
  client: rule("a LeaseClient", (value) => value instanceof LeaseClient),
  store: rule<LeaseStore>("a LeaseStore, such as lightStore() of @leasehold/client/light", (value) => {
    return typeof (value as LeaseStore | null)?.update === "function";
  }),
  tableName: label,
  key: rule(
    "a non-empty string, or a function that gives one",
    (value) => isFunction(value) || (typeof value === "string" && value !== ""),
  ),
  whenHeld: oneOf("skip", "throw", "wait", "replace"),
  order: withMethods("begin"),
  skipResult: unchecked,
  lockAtMostForMs: shorterThanLease,
  lockAtLeastForMs: time,
  heartbeat: (option, value) => (typeof value === "boolean" ? value : shorterThanLease(option, value)),
  once: rule("true, false, or a function", (value) => isFunction(value) || typeof value === "boolean"),
  resume: trueOrFalse,
  data: unchecked,
  reserveMs: time,
  timeoutMarginMs: time,
  timeoutEarlyInMillis: time,
  onEvent: listeners,
  job: label,
  metrics: (option, value) => {
    if (value === false) return value;
    return typeof value === "object" ? collector(option, value) : aFunction(option, value);
  },
  keyDimension: (option, value) => (typeof value === "boolean" ? value : aFunction(option, value)),
  clock: withMethods("now", "monotonic", "schedule"),
};

/** The environment variables that stand for options. */
const { keyPrefix: _, heartbeatMs: heartbeat, ...others } = environmentNames;
const variables = { ...others, heartbeat };
/** These options stay texts, whatever their value is. */
const textOptions = ["tableName", "key", "job"];

/** Completes the options from the environment. Throws InvalidOptionsError; sends nothing. */
export function readSettings<TEvent>(
  options: LeaseLockOptions<TEvent>,
  makeClient: MakeClient,
  env: NodeJS.ProcessEnv = process.env,
): MiddlewareSettings<TEvent> {
  const given = checkOptions(options, leaseLockRules as Rules<LeaseLockOptions<TEvent>>);
  const { store } = given;
  const isAlone = given.client === undefined && given.tableName === undefined;
  check(store === undefined || isAlone, "store", store, "a store without client and tableName");
  for (const option of ["onEvent", "keyDimension"] as const) {
    const value = given[option];
    check(!given.client || !value, option, value, "nothing beside client");
  }
  const own = store?.tableName ?? tableOf(given.client);
  const missing: Record<string, unknown> =
    own === undefined || given.tableName !== undefined ? {} : { tableName: own };
  for (const [option, variable] of Object.entries(variables) as [keyof typeof variables, string][]) {
    const text = env[variable];
    if (!text || option in given || option in missing) continue;
    missing[option] = leaseLockRules[option](
      variable,
      textOptions.includes(option) ? text : variableValue(text),
    );
  }
  return completeSettings({ ...given, ...missing }, makeClient);
}

/** The table of the user's own client. A client of another copy of the package does not show it: its leases do. */
function tableOf(client: LeaseClient | undefined): string | undefined {
  if (client === undefined) return undefined;
  try {
    return coreOf(client).tableName;
  } catch (error) {
    if (error instanceof InvalidOptionsError) return undefined;
    throw error;
  }
}

function variableValue(text: string): unknown {
  if (text === "true" || text === "false") return text === "true";
  return /^\d+$/.test(text) ? Number(text) : text;
}

/** Checks the rules between options, and adds the defaults. */
function completeSettings<TEvent>(
  given: LeaseLockOptions<TEvent>,
  makeClient: MakeClient,
): MiddlewareSettings<TEvent> {
  const { key, whenHeld, order, heartbeat, lockAtMostForMs: most, metrics = writeLine } = given;
  const { lockAtLeastForMs = 0, once = false, resume = false, clock = systemClock } = given;
  check(key !== undefined, "key", key, `a key, by the option or by ${environmentNames.key}`);
  if (most !== undefined) {
    const bound = `lockAtMostForMs, which is ${most}`;
    check(lockAtLeastForMs <= most, "lockAtLeastForMs", lockAtLeastForMs, `at most ${bound}`);
    const isQuick = typeof heartbeat !== "number" || heartbeat < most / 2;
    check(isQuick, "heartbeat", heartbeat, `below half of ${bound}`);
  }
  const hears = 'true, or an interval: with whenHeld "replace", a holder has to hear that it is to stop';
  check(whenHeld !== "replace" || heartbeat !== false, "heartbeat", heartbeat, hears);
  check(order === undefined || whenHeld === "wait", "order", order, 'nothing, unless whenHeld is "wait"');
  const alone = "false beside once, which never takes over a living run";
  check(!resume || once === false, "resume", resume, alone);
  const { keyDimension = false, tableName, job } = given;
  const isOwn = typeof metrics === "object";
  check(
    !isOwn || !keyDimension,
    "keyDimension",
    keyDimension,
    "nothing beside Metrics with dimensions of its own",
  );
  const groupOf = keyDimension === true ? (each: string) => each : keyDimension || undefined;
  const measured =
    metrics === false
      ? undefined
      : new InvocationMetrics({ tableName, job, groupOf, clock, output: metrics });
  return {
    timeoutMarginMs: 250,
    timeoutEarlyInMillis: 5,
    ...given,
    key,
    lockAtLeastForMs,
    once,
    resume,
    clock,
    client: given.client ?? clientOf(given, measured, makeClient),
    ownsClient: given.client === undefined,
    metrics: measured,
  };
}

/** Creates the client of a lock without one. Its events are measured. */
function clientOf<TEvent>(
  { store, tableName, clock, onEvent = [] }: LeaseLockOptions<TEvent>,
  metrics: InvocationMetrics | undefined,
  makeClient: MakeClient,
): LeaseClient {
  const allowed = `a table's name, by the option or by ${environmentNames.tableName}, or a client`;
  check(tableName !== undefined, "tableName", tableName, allowed);
  const listening = metrics ? [metrics.listen].concat(onEvent) : onEvent;
  return makeClient({ ...(store ? { store } : { tableName }), ...(clock && { clock }), onEvent: listening });
}
