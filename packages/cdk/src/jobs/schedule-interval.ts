import { Duration, Token } from "aws-cdk-lib";
import type { ScheduleExpression } from "aws-cdk-lib/aws-scheduler";

/** The time between two runs, if a schedule's expression shows it. */
export interface ScheduleTiming {
  readonly kind: "rate" | "cron" | "once" | "unknown";
  /** The time between two runs; known only for a rate. */
  readonly interval?: Duration;
}

const units: Readonly<Record<string, (count: number) => Duration>> = {
  minute: Duration.minutes,
  hour: Duration.hours,
  day: Duration.days,
};

const cronFields =
  "cron has six fields: minutes, hours, day of month, month, day of week, year; it has no seconds, and day 1 of a week is Sunday";

/**
 * Reads a schedule's expression: `rate(...)`, `cron(...)` or `at(...)`.
 *
 * Throws when EventBridge Scheduler would refuse it at deployment: an unknown form, a cron expression without exactly
 * six fields, or one in which not exactly one of day of month and day of week is `?`.
 */
export function scheduleTiming(schedule: ScheduleExpression): ScheduleTiming {
  const { expressionString: text } = schedule;
  if (Token.isUnresolved(text)) return { kind: "unknown" };
  const [, form, body = ""] = /^(rate|cron|at)\((.*)\)$/.exec(text) ?? [];
  switch (form) {
    case "rate": {
      const [, count, unit = ""] = /^([1-9]\d*) (minute|hour|day)s?$/.exec(body) ?? [];
      const inUnit = units[unit];
      if (inUnit === undefined)
        throw invalid(text, "a rate is a whole number above 0 and minutes, hours or days");
      return { kind: "rate", interval: inUnit(Number(count)) };
    }
    case "cron": {
      const fields = body.trim().split(/\s+/);
      if (fields.length !== 6) {
        throw invalid(text, cronFields);
      }
      if ((fields[2] === "?") === (fields[4] === "?")) {
        const days = "set the day of the month or the day of the week, and write ? for the other";
        throw invalid(text, `${days}; ${cronFields}`);
      }
      return { kind: "cron" };
    }
    case "at":
      return { kind: "once" };
    default:
      throw invalid(text, `use ScheduleExpression.rate, .cron or .at; ${cronFields}`);
  }
}

function invalid(text: string, advice: string): Error {
  return new Error(`schedule is ${JSON.stringify(text)}: ${advice}`);
}
