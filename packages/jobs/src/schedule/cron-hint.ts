/**
 * Says how to write an expression of another scheduler: of a crontab, of Quartz or of Spring.
 * Where a schedule of EventBridge cannot do the same, the hint says what would be lost.
 */
import { CronFieldError, cronFields, dayNames, secondsOf } from "./cron-fields.ts";

/** The names that crontabs and Spring have for common lines. */
const nicknames: ReadonlyMap<string, string> = new Map([
  ["@yearly", "0 0 1 1 ? *"],
  ["@annually", "0 0 1 1 ? *"],
  ["@monthly", "0 0 1 * ? *"],
  ["@weekly", "0 0 ? * SUN *"],
  ["@daily", "0 0 * * ? *"],
  ["@midnight", "0 0 * * ? *"],
  ["@hourly", "0 * * * ? *"],
]);

/**
 * Returns the expression to write instead of fields that EventBridge Scheduler refuses; undefined when no scheduler
 * would accept them. Where fields have two meanings, the hint has both.
 */
export function cronHint(text: string): string | undefined {
  const body = text.trim();
  const fields = (nicknames.get(body.toLowerCase()) ?? body).split(/\s+/);
  switch (fields.length) {
    case 5:
      return unixHint(fields);
    case 6: {
      const written = cronText(fields);
      if (written === undefined) return secondsHint(fields);
      const seconds = secondsHint(fields);
      return seconds === undefined
        ? `write ${written}`
        : `if its first field is minutes, write ${written}; ${seconds}`;
    }
    case 7:
      return secondsHint(fields);
    default:
      return undefined;
  }
}

/** Reads five fields, which have no year. */
function unixHint(fields: readonly string[]): string | undefined {
  const [minutes = "", hours = "", dayOfMonth = "", month = "", dayOfWeek = ""] = fields;
  const start = "if its five fields are those of a crontab,";
  const one = cronText([...fields, "*"], unixWeekdays);
  if (one !== undefined) return `${start} write ${one}`;
  const byDay = cronText([minutes, hours, dayOfMonth, month, "?", "*"]);
  const byWeekday = cronText([minutes, hours, "?", month, unixWeekdays(dayOfWeek), "*"]);
  if (byDay === undefined || byWeekday === undefined) return undefined;
  return `${start} it fires on either of its days, which takes two schedules: ${byDay} and ${byWeekday}`;
}

/** Reads six or seven fields, of which the first is seconds. */
function secondsHint([secondsText = "", ...rest]: readonly string[]): string | undefined {
  const seconds = unlessRefused(() => secondsOf(secondsText));
  const written = cronText(rest.length === 5 ? [...rest, "*"] : rest, unixWeekdays);
  if (seconds === undefined || written === undefined) return undefined;
  const start = "if its first field is seconds, as in Quartz and Spring,";
  const [first, ...more] = seconds;
  if (first === 0 && more.length === 0) return `${start} leave it out: write ${written}`;
  const lost =
    more.length === 0
      ? `fires at second 0 and not at second ${first}`
      : `fires once in a minute and not ${seconds.length} times`;
  return `${start} they are lost, because schedules have no seconds: ${written} ${lost}`;
}

/**
 * Returns six fields as an expression, with `?` for one of the two days; undefined when EventBridge refuses them. If a
 * field is `?` already, a weekday's number counts as EventBridge's own, which is also that of Quartz.
 */
function cronText(fields: readonly string[], weekdays = (text: string): string => text): string | undefined {
  const [minutes, hours, dayOfMonth = "", month, dayOfWeek = "", year] = fields;
  const written = (days: string, ofWeek: string): string | undefined => {
    const text = [minutes, hours, days, month, ofWeek, year].join(" ");
    const note = /^\d|[-,]\d/.test(ofWeek) ? ", where weekdays count from 1 for Sunday" : "";
    return unlessRefused(() => cronFields(text)) && `cron(${text})${note}`;
  };
  if (dayOfMonth === "?" || dayOfWeek === "?") {
    return written(dayOfMonth, dayOfWeek) ?? written(dayOfMonth, weekdays(dayOfWeek));
  }
  if (dayOfWeek === "*") return written(dayOfMonth, "?");
  return dayOfMonth === "*" ? written("?", weekdays(dayOfWeek)) : undefined;
}

/** Gives weekdays by name that are counted from 0 for Sunday, with 7 for Sunday too. Steps become a list. */
function unixWeekdays(text: string): string {
  return text.toUpperCase().split(",").map(namedWeekdays).join(",");
}

function namedWeekdays(part: string): string {
  const named = part.replace(/(?<![#/\d])[0-7](?!\d)/g, (digit) => dayNames[Number(digit) % 7] ?? digit);
  const [, range = "", stepText] = /^(.+)\/([1-7])$/.exec(named) ?? [];
  if (stepText === undefined) return named;
  const [from = "", to = ""] = (range === "*" ? "SUN-SAT" : range).split("-");
  const [first, last] = [dayNames.indexOf(from), dayNames.indexOf(to)];
  if (first === -1 || last === -1) return part;
  const length = ((last - first + 7) % 7) + 1;
  const days: (string | undefined)[] = [];
  for (let day = 0; day < length; day += Number(stepText)) days.push(dayNames[(first + day) % 7]);
  return days.join(",");
}

/** Gives what a text is read as; undefined when it is refused. */
function unlessRefused<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof CronFieldError) return undefined;
    throw error;
  }
}
