/**
 * Reads the expressions of EventBridge Scheduler.
 * Cron expressions are searched in wall time; the time zone then decides which instants exist.
 */
import { check, checkOptions, type Rule, type Rules, readable, rule } from "@leasehold/client/internal";
import { CronFieldError, type CronFields, cronFields, monthOf } from "./cron-fields.ts";
import { cronHint } from "./cron-hint.ts";
import { InvalidScheduleError } from "./errors.ts";

/** The times when a schedule fires. */
export interface ScheduleTimes {
  readonly kind: "rate" | "cron" | "at";
  /** Gives the first time after a given one; undefined when there is none. Throws InvalidOptionsError for an invalid Date. */
  next(after: Date): Date | undefined;
}

/** Options of {@link parseScheduleExpression}. */
export interface ScheduleExpressionOptions {
  /** An IANA name, such as Europe/Berlin; not an offset. It does not change rates. @default "UTC" */
  readonly timeZone?: string;
  /** The first time of a rate. @default - the epoch, so that a rate of minutes gives whole minutes */
  readonly start?: Date;
}

const validDate: Rule<Date> = rule("a valid Date", (value) => {
  return value instanceof Date && !Number.isNaN(value.getTime());
});
const scheduleRules: Rules<ScheduleExpressionOptions> = {
  timeZone: rule("an IANA name such as Europe/Berlin", (value) => typeof value === "string"),
  start: validDate,
};

/** A Date reaches this many days from the epoch, in both directions. */
const longestDays = 100_000_000;

const [minuteMs, hourMs, dayMs] = [60_000, 3_600_000, 86_400_000];
const unitMs: Readonly<Record<string, number>> = { minute: minuteMs, hour: hourMs, day: dayMs };

/**
 * Reads an expression of EventBridge Scheduler: `rate(5 minutes)`, `cron(0 10 ? * MON-FRI *)`,
 * `at(2026-11-21T10:00:00)`.
 *
 * Times in a time zone are as AWS documents them. A time that the clocks skip in spring is skipped. A time that they
 * show twice in autumn counts once, at its first occurrence. A day of a rate is always 24 hours.
 *
 * Throws InvalidScheduleError for every expression that AWS refuses. Also for `L-28` and earlier days before the
 * month's end, and for a rate of more than 100,000,000 days, which is the range of a Date. Throws InvalidOptionsError for
 * an expression that is no text, and for bad options. Sends nothing.
 *
 * ```ts
 * parseScheduleExpression("cron(0 8 L * ? *)", { timeZone: "Europe/Berlin" }).next(new Date());
 * ```
 */
export function parseScheduleExpression(
  expression: string,
  options: ScheduleExpressionOptions = {},
): ScheduleTimes {
  check(typeof expression === "string", "expression", expression, "a text such as rate(5 minutes)");
  const { timeZone: zoneName = "UTC", start = new Date(0) } = checkOptions(options, scheduleRules);
  const [, kind, body = ""] = /^\s*(rate|cron|at)\(([^()]*)\)\s*$/.exec(expression) ?? [];
  const zone = timeZone(expression, zoneName);
  switch (kind) {
    case "rate":
      return rate(expression, body, start);
    case "cron":
      return cron(expression, body, zone);
    case "at":
      return at(expression, body, zone);
  }
  const forms = "it must be rate(value unit), cron(six fields) or at(yyyy-mm-ddThh:mm:ss)";
  throw new InvalidScheduleError(expression, withHint(forms, expression));
}

function rate(expression: string, body: string, start: Date): ScheduleTimes {
  const [, count = "", unit = ""] = /^\s*(\d+)\s+(minute|hour|day)s?\s*$/.exec(body) ?? [];
  const periodMs = Number(count) * (unitMs[unit] ?? 0);
  const longestMs = longestDays * dayMs;
  if (periodMs === 0 || periodMs > longestMs) {
    const text = `a rate is a positive whole number and one of minutes, hours and days, at most ${longestDays} days`;
    throw new InvalidScheduleError(expression, text);
  }
  return {
    kind: "rate",
    next(after) {
      const passedMs = timeOf(after) - start.getTime();
      const periods = passedMs < 0 ? 0 : Math.floor(passedMs / periodMs) + 1;
      const timeMs = start.getTime() + periods * periodMs;
      return timeMs > longestMs ? undefined : new Date(timeMs);
    },
  };
}

function cron(expression: string, body: string, zone: TimeZone): ScheduleTimes {
  const fields = checkedCronFields(expression, body);
  return {
    kind: "cron",
    next(after) {
      const afterMs = timeOf(after);
      // The search is in wall time, as if that were UTC. Times that the clocks skip or repeat are handled here.
      let wallMs: number | undefined = zone.wallTime(afterMs);
      for (;;) {
        wallMs = nextInCalendar(fields, wallMs);
        if (wallMs === undefined) return undefined;
        const instantMs = zone.instant(wallMs);
        if (instantMs !== undefined && instantMs > afterMs) return new Date(instantMs);
      }
    },
  };
}

/** Refuses a value that is not a valid time. */
function timeOf(after: unknown): number {
  return readable("after", after, () => validDate("after", after)).getTime();
}

function checkedCronFields(expression: string, body: string): CronFields {
  try {
    return cronFields(body);
  } catch (error) {
    if (!(error instanceof CronFieldError)) throw error;
    throw new InvalidScheduleError(expression, withHint(error.message, body));
  }
}

function withHint(problem: string, fields: string): string {
  const hint = cronHint(fields);
  return hint === undefined ? problem : `${problem}; ${hint}`;
}

function at(expression: string, body: string, zone: TimeZone): ScheduleTimes {
  const text = body.trim();
  const wallMs = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/.test(text) ? Date.parse(`${text}Z`) : Number.NaN;
  // Date.parse reads 31 February as a day in March.
  if (Number.isNaN(wallMs) || !new Date(wallMs).toISOString().startsWith(text)) {
    throw new InvalidScheduleError(expression, "at needs a date and time as yyyy-mm-ddThh:mm:ss");
  }
  const instantMs = zone.instant(wallMs);
  return {
    kind: "at",
    next: (after) => {
      const afterMs = timeOf(after);
      return instantMs !== undefined && instantMs > afterMs ? new Date(instantMs) : undefined;
    },
  };
}

function timeZone(expression: string, name: string): TimeZone {
  const offset = /^([+-])(\d\d)(?::?(\d\d))?$/.exec(name);
  if (offset !== null) {
    const [, sign, hours, minutes = "00"] = offset;
    // Etc/GMT-2 is two hours ahead of UTC: the sign is reversed.
    const fixed = Number(hours) === 0 ? "UTC" : `Etc/GMT${sign === "+" ? "-" : "+"}${Number(hours)}`;
    const instead = `an IANA name such as Europe/Berlin${minutes === "00" ? `, or ${fixed}` : ""}`;
    throw new InvalidScheduleError(
      expression,
      `the time zone ${JSON.stringify(name)} is an offset; allowed: ${instead}`,
    );
  }
  try {
    return new TimeZone(name);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new InvalidScheduleError(
      expression,
      `the time zone ${JSON.stringify(name)} is not known; allowed: an IANA name such as Europe/Berlin`,
    );
  }
}

/**
 * Gives the first time in UTC after a given one that the fields name; undefined when there is none. Years, months, days and
 * hours that are over are skipped as a whole.
 */
function nextInCalendar(fields: CronFields, afterMs: number): number | undefined {
  const fromMs = Math.floor(afterMs / minuteMs + 1) * minuteMs;
  for (const day of daysFrom(fields, fromMs)) {
    for (const hour of fields.hours) {
      const hourStart = day + hour * hourMs;
      if (hourStart + hourMs <= fromMs) continue;
      for (const minute of fields.minutes) {
        const time = hourStart + minute * minuteMs;
        if (time >= fromMs) return time;
      }
    }
  }
  return undefined;
}

/** Yields the start of each matching day, beginning with the day of a given time. */
function* daysFrom({ years, months, days }: CronFields, fromMs: number): Generator<number, void, undefined> {
  const firstYear = new Date(fromMs).getUTCFullYear();
  for (const year of years) {
    if (year < firstYear) continue;
    for (const month of months) {
      if (Date.UTC(year, month, 1) <= fromMs) continue;
      const monthStart = Date.UTC(year, month - 1, 1);
      for (const day of days(monthOf(year, month))) {
        const start = monthStart + (day - 1) * dayMs;
        if (start + dayMs > fromMs) yield start;
      }
    }
  }
}

/**
 * Converts between instants and the wall time of a time zone. A wall time is given as epoch milliseconds, as if it
 * were in UTC, so that a calendar in UTC can work with it.
 */
class TimeZone {
  /** Undefined for UTC: with Intl, the minutes of a month would take a second. */
  readonly #format: Intl.DateTimeFormat | undefined;

  /** @throws RangeError for a name that the runtime does not know. */
  constructor(name: string) {
    if (name === "UTC") return;
    this.#format = new Intl.DateTimeFormat("en-US", {
      timeZone: name,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
      era: "short",
    });
  }

  /** Gives the wall time of an instant, in whole seconds. */
  wallTime(instantMs: number): number {
    if (this.#format === undefined) return Math.floor(instantMs / 1000) * 1000;
    const parts: Record<string, string> = {};
    for (const { type, value } of this.#format.formatToParts(instantMs)) parts[type] = value;
    const [year, month, day] = [Number(parts.year), Number(parts.month), Number(parts.day)];
    return Date.UTC(year, month - 1, day, Number(parts.hour), Number(parts.minute), Number(parts.second));
  }

  /**
   * Gives the instant of a wall time: the first one when the clocks show it twice, undefined when they skip it.
   */
  instant(wallMs: number): number | undefined {
    if (this.#format === undefined) return wallMs;
    const instants = [this.#offset(wallMs - dayMs), this.#offset(wallMs + dayMs)]
      .map((offsetMs) => wallMs - offsetMs)
      .filter((instantMs) => this.wallTime(instantMs) === wallMs);
    return instants.length === 0 ? undefined : Math.min(...instants);
  }

  #offset(instantMs: number): number {
    const wholeSeconds = Math.floor(instantMs / 1000) * 1000;
    return this.wallTime(wholeSeconds) - wholeSeconds;
  }
}
