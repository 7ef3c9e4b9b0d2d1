/**
 * Events as lines of a log: one entry for each event, whose fields have the names of the event's properties. An entry
 * names the lock and its holder, and holds no token and no payload.
 */
import { Console } from "node:console";
import { checkOptions, type Rules, rule, withMethods } from "../base/check-values.ts";
import { isoTime, quoted, saying } from "../base/errors.ts";
import type { LeaseEvent } from "../base/events.ts";
import { leaseSortKey } from "../base/schema.ts";
import type { SingleFlightEvent } from "../primitives/single-flight/events.ts";

/** How much an entry matters. */
export type LogLevel = "debug" | "info" | "warn" | "error";

/** An event that has a line: of a client, or of a SingleFlight. */
export type LoggedEvent = LeaseEvent | SingleFlightEvent;

/** One entry: a sentence for people, and the event's properties as fields. */
export interface LogEntry {
  readonly message: string;
  readonly event: LoggedEvent["type"];
  readonly [field: string]: unknown;
}

/** The receiver of entries: Powertools' Logger, pino, winston, the console, or your own object. */
export interface Logger {
  debug(entry: LogEntry): unknown;
  info(entry: LogEntry): unknown;
  warn(entry: LogEntry): unknown;
  error(entry: LogEntry): unknown;
}

/** The level of each event. An event with an error, or of an unconfirmed release, is at least `warn`. */
export const logLevels: Readonly<Record<LoggedEvent["type"], LogLevel>> = {
  acquired: "info",
  takeover: "warn",
  contended: "info",
  renewed: "debug",
  lost: "warn",
  released: "info",
  completionFailed: "error",
  skew: "warn",
  timeUnknown: "warn",
  error: "error",
  shortLease: "warn",
  unreadable: "warn",
  served: "debug",
  computed: "info",
  cacheFailed: "warn",
  refreshFailed: "warn",
};

/** Options of {@link logListener}. */
export interface LogListenerOptions {
  /**
   * Receives an entry for each event, by the method of the entry's level. A console gets a line of JSON; under Lambda's
   * JSON log format, the object that Lambda writes as JSON.
   * @default console
   */
  readonly logger?: Logger;
  /**
   * The lowest level that is logged.
   * @default - "info" for a console; your own logger gets every event, because it has its own level
   */
  readonly level?: LogLevel;
}

const ranks: readonly LogLevel[] = ["debug", "info", "warn", "error"];

const logRules: Rules<LogListenerOptions> = {
  logger: withMethods<Logger>(...ranks),
  level: rule(ranks.join(", "), (value) => ranks.includes(value as LogLevel)),
};

/**
 * Returns a listener that logs every event of a client or of a SingleFlight, beside other listeners. Throws
 * InvalidOptionsError.
 *
 * ```ts
 * const onEvent = [logListener(), metricsListener({ tableName })];
 * const logged = new LeaseClient({ tableName, onEvent });
 * ```
 */
export function logListener(options: LogListenerOptions = {}): (event: LoggedEvent) => void {
  const { logger = console as Logger, level } = checkOptions(options, logRules);
  const isConsole = logger === console || logger instanceof Console;
  const least = ranks.indexOf(level ?? (isConsole ? "info" : "debug"));
  const isWrapped = process.env.AWS_LAMBDA_LOG_FORMAT === "JSON";
  return (event) => {
    const at = levelOf(event);
    if (ranks.indexOf(at) < least) return;
    const entry = entryOf(event);
    if (!isConsole || isWrapped) logger[at](entry);
    else (logger as Console)[at](JSON.stringify({ time: new Date(), level: at, ...entry }));
  };
}

function levelOf(event: LoggedEvent): LogLevel {
  const level = logLevels[event.type];
  const isFailure =
    ("error" in event && event.error !== undefined) || ("confirmed" in event && !event.confirmed);
  return isFailure && level !== "error" ? "warn" : level;
}

function entryOf(event: LoggedEvent): LogEntry {
  const { type, ...fields } = event;
  const error = "error" in event && event.error !== undefined ? { error: loggableError(event.error) } : {};
  const head = { message: `leasehold: ${sentenceOf(event)}`, event: type };
  // The readable fields come first; an event's own message is a part of the sentence.
  return { ...head, ...fields, ...error, ...head };
}

/**
 * An error as plain values: an error has no JSON form, and loggers differ in how they show it. Users' code can throw any
 * value, and errors whose members are no text.
 */
function loggableError(error: unknown): object {
  const message = saying(error);
  if (!(error instanceof Error)) return { message };
  const { name, code, stack } = error as Error & { readonly code?: unknown };
  const isPlain = (value: unknown): boolean => typeof value === "string" || typeof value === "number";
  return { name: saying(name), message, ...(isPlain(code) && { code }), ...(isPlain(stack) && { stack }) };
}

function sentenceOf(event: LoggedEvent): string {
  switch (event.type) {
    case "acquired":
      return `acquired ${subjectOf(event)} after ${event.waitedMs} ms`;
    case "takeover":
      return `took ${subjectOf(event)} over from ${quoted(event.from.owner)} (${event.reason})`;
    case "contended": {
      const state = event.inCooldown ? "in its cooldown after" : "held by";
      return `${subjectOf(event)} is ${state} ${quoted(event.holder)} until ${isoTime(event.expiresAt)}`;
    }
    case "renewed":
      return `renewed ${subjectOf(event)} until ${isoTime(event.expiresAt)}`;
    case "lost":
      return `lost ${subjectOf(event)} after ${event.heldMs} ms (${event.reason})`;
    case "released": {
      const doubt = event.confirmed ? "" : ", which the service did not confirm";
      return `released ${subjectOf(event)} after ${event.heldMs} ms${doubt}`;
    }
    case "completionFailed":
      return `the slot ${quoted(event.slot)} of ${subjectOf(event)} is done but not recorded (${event.code})`;
    case "skew": {
      const { offsetMinMs, offsetMaxMs, clockSkewMs } = event;
      return `the service's clock is ${offsetMinMs} to ${offsetMaxMs} ms ahead of this machine's; allowed: ${clockSkewMs} ms`;
    }
    case "timeUnknown":
      return "no answer tells the service's time: dead holders are taken over by observation alone";
    case "error":
      return `a mistake in the program, at the operation ${event.operation} of ${subjectOf(event)}: ${event.error.message}`;
    case "shortLease":
      return `the lease of ${subjectOf(event)} lasts ${event.leaseDurationMs} ms, less than one slow answer can take`;
    case "unreadable":
      return event.message;
    case "served":
      return `served ${subjectOf(event)} (${event.source}) after ${event.waitedMs} ms`;
    case "computed": {
      const outcome = event.error === undefined ? "computed" : "failed to compute";
      return `${outcome} ${subjectOf(event)} in ${event.tookMs} ms (attempt ${event.attempt})`;
    }
    case "cacheFailed":
      return `the cache failed at the ${event.operation} of ${subjectOf(event)} (${event.reason})`;
    case "refreshFailed":
      return `failed to refresh ${subjectOf(event)} ahead; its value is given until its end`;
  }
}

/** The lock's key, and the sort key if it is not a lock's. */
function subjectOf({
  key,
  sortKey = leaseSortKey,
}: {
  readonly key: string;
  readonly sortKey?: string;
}): string {
  const place = sortKey === leaseSortKey ? "" : ` at ${quoted(sortKey)}`;
  return `${quoted(key)}${place}`;
}
