import { CronFieldError, cronFields } from "./cron-fields.ts";

/**
 * Gives the expression to write instead of one that begins with seconds, as in Quartz and Spring. Gives undefined
 * when the seconds are not the mistake.
 */
export function withoutSeconds(text: string): string | undefined {
  const [, minutes, hours, dayOfMonth, month, dayOfWeek, year = "*", ...more] = text.trim().split(/\s+/);
  if (dayOfWeek === undefined || more.length > 0) return undefined;
  // Spring writes * for both days, with the same meaning.
  const weekday = dayOfMonth !== "?" && dayOfWeek === "*" ? "?" : dayOfWeek;
  const fields = [minutes, hours, dayOfMonth, month, weekday, year].join(" ");
  if (!canBeRead(fields)) return undefined;
  const note = /\d/.test(weekday) ? ", where weekdays count from 1 for Sunday" : "";
  return `cron(${fields})${note}`;
}

function canBeRead(fields: string): boolean {
  try {
    cronFields(fields);
    return true;
  } catch (error) {
    if (error instanceof CronFieldError) return false;
    throw error;
  }
}
