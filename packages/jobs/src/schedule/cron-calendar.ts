/**
 * Finds the next time that a cron expression names, in UTC.
 * Years, months, days and hours that are over are skipped as a whole.
 */
import { monthOf } from "./cron-days.ts";
import type { CronFields } from "./cron-fields.ts";
import { dayMs } from "./time-zone.ts";

const [minuteMs, hourMs] = [60_000, 3_600_000];

/** Gives the first time in UTC after a given one that the fields name; undefined when there is none. */
export function nextInCalendar(fields: CronFields, afterMs: number): number | undefined {
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
