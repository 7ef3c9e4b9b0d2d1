/**
 * Reads the six fields of a cron expression, by AWS's rules.
 * What AWS refuses is refused here, with the field's name and its allowed values.
 */

/** One of the six fields of a cron expression, and its allowed values. */
interface Field {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  readonly names?: readonly string[];
  /** Whether a range may go past the last value, as FRI-MON does. */
  readonly wraps: boolean;
  readonly steps: boolean;
}

const monthNames = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
/** The names of weekdays, from Sunday on. */
export const dayNames: readonly string[] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const minutes: Field = { name: "minutes", min: 0, max: 59, wraps: true, steps: true };
const hours: Field = { name: "hours", min: 0, max: 23, wraps: true, steps: true };
const dayOfMonth: Field = { name: "day-of-month", min: 1, max: 31, wraps: true, steps: true };
const month: Field = { name: "month", min: 1, max: 12, names: monthNames, wraps: true, steps: true };
const dayOfWeek: Field = { name: "day-of-week", min: 1, max: 7, names: dayNames, wraps: true, steps: false };
const year: Field = { name: "year", min: 1970, max: 2199, wraps: false, steps: true };

/** The numbers that a cron expression stands for, in order. */
export interface CronFields {
  readonly minutes: readonly number[];
  readonly hours: readonly number[];
  readonly days: DayRule;
  readonly months: readonly number[];
  readonly years: readonly number[];
}

/** What is wrong with one field. */
export class CronFieldError extends Error {}

/** The longest distance that keeps `L-3` within its month in every February. */
const longestBeforeLast = 27;

/**
 * Reads the six fields by AWS's rules.
 *
 * @throws CronFieldError
 */
export function cronFields(text: string): CronFields {
  const fields = text.trim().split(/\s+/);
  if (fields.length !== 6) {
    throw new CronFieldError(
      `it needs six fields (minutes hours day-of-month month day-of-week year), not ${fields.length}`,
    );
  }
  const [minute, hour, dom, monthText, dow, yearText] = fields.map((field) => field.toUpperCase()) as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  if ((dom === "?") === (dow === "?")) {
    throw new CronFieldError("exactly one of day-of-month and day-of-week must be ?");
  }
  return {
    minutes: listed(minute, minutes),
    hours: listed(hour, hours),
    days: dow === "?" ? dayOfMonthRule(dom) : dayOfWeekRule(dow),
    months: listed(monthText, month),
    years: listed(yearText, year),
  };
}

/**
 * Reads seconds, which other schedulers have before the minutes.
 *
 * @throws CronFieldError
 */
export function secondsOf(text: string): readonly number[] {
  return listed(text, { ...minutes, name: "seconds" });
}

function dayOfMonthRule(text: string): DayRule {
  if (text === "L") return beforeLast(0);
  if (text === "LW") return lastWorkday;
  const days = /^L-(\d+)$/.exec(text)?.[1];
  if (days !== undefined) {
    if (Number(days) < 1 || Number(days) > longestBeforeLast) {
      throw new CronFieldError(`in day-of-month, L-${days} must lie from L-1 to L-${longestBeforeLast}`);
    }
    return beforeLast(Number(days));
  }
  const nearest = /^(\d+)W$/.exec(text)?.[1];
  if (nearest !== undefined) return nearestWorkday(number(nearest, dayOfMonth));
  if (/[LW]/.test(text)) throw new CronFieldError(`in day-of-month, L and W must be alone, not in ${text}`);
  return onDays(listed(text, dayOfMonth));
}

function dayOfWeekRule(text: string): DayRule {
  if (text === "L") return onWeekdays([dayOfWeek.max]);
  const last = /^(\d|[A-Z]{3})L$/.exec(text)?.[1];
  if (last !== undefined) return nthWeekday(number(last, dayOfWeek), -1);
  const nth = /^(\d|[A-Z]{3})#([1-5])$/.exec(text);
  if (nth) return nthWeekday(number(nth[1] ?? "", dayOfWeek), Number(nth[2]));
  if (text.includes("#")) {
    throw new CronFieldError(`in day-of-week, # takes one weekday and a number from 1 to 5, not ${text}`);
  }
  return onWeekdays(listed(text, dayOfWeek));
}

/** Gives the numbers of values, lists, ranges and steps. */
function listed(text: string, field: Field): readonly number[] {
  const values = new Set<number>();
  for (const part of text.split(",")) for (const value of valuesOf(part, field)) values.add(value);
  return [...values].sort((left, right) => left - right);
}

function valuesOf(part: string, field: Field): number[] {
  const [range = "", stepText, ...rest] = part.split("/");
  if (rest.length > 0 || (stepText !== undefined && !field.steps)) refuseField(part, field);
  const step = stepText === undefined ? 1 : stepOf(stepText, field);
  const [from, to] = rangeOf(range, stepText !== undefined, field);
  if (from > to && !field.wraps) refuseField(part, field);
  const span = field.max - field.min + 1;
  const end = from > to ? to + span : to;
  const values: number[] = [];
  for (let value = from; value <= end; value += step) values.push(value > field.max ? value - span : value);
  return values;
}

function rangeOf(range: string, isStepped: boolean, field: Field): [from: number, to: number] {
  if (range === "*") return [field.min, field.max];
  const [from = "", to, ...rest] = range.split("-");
  if (rest.length > 0) refuseField(range, field);
  const first = number(from, field);
  if (to !== undefined) return [first, number(to, field)];
  return [first, isStepped ? field.max : first];
}

function stepOf(text: string, field: Field): number {
  const step = Number(text);
  if (!/^\d+$/.test(text) || step < 1) throw new CronFieldError(`in ${field.name}, ${text} is not a step`);
  return step;
}

function number(text: string, field: Field): number {
  const named = field.names?.indexOf(text) ?? -1;
  if (named !== -1) return named + field.min;
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < field.min || value > field.max) refuseField(text, field);
  return value;
}

function refuseField(text: string, { name, min, max, names, steps }: Field): never {
  const words = names ? ` or ${names[0]}-${names.at(-1)}` : "";
  const forms = steps ? "lists, ranges and steps" : "lists and ranges";
  throw new CronFieldError(
    `${JSON.stringify(text)} is not allowed in ${name}, which takes ${min}-${max}${words}, in ${forms}`,
  );
}

/** The properties of a month that a rule needs. */
export interface Month {
  /** How many days it has. */
  readonly length: number;
  /** The weekday of its first day, from 0 for Sunday. */
  readonly firstWeekday: number;
}

/** Gives the days of a month that match, in order: by number, by weekday, or relative to the month's end. */
export type DayRule = (month: Month) => readonly number[];

const daysInWeek = 7;

/** Gives a month of the calendar. Months are counted from 1. */
export function monthOf(year: number, month: number): Month {
  const length = new Date(Date.UTC(year, month, 0)).getUTCDate();
  return { length, firstWeekday: new Date(Date.UTC(year, month - 1, 1)).getUTCDay() };
}

/** Gives a rule for days by their number. */
function onDays(days: readonly number[]): DayRule {
  return ({ length }) => days.filter((day) => day <= length);
}

/** Gives a rule for the day that is this many days before the last. */
function beforeLast(days: number): DayRule {
  return ({ length }) => [length - days];
}

/** The last day of a month that is a Monday to Friday. */
const lastWorkday: DayRule = (month) => nearestWorkday(month.length)(month);

/** Gives a rule for the Monday to Friday that is nearest to a day, within the month. */
function nearestWorkday(day: number): DayRule {
  return (month) => {
    if (day > month.length) return [];
    const weekday = weekdayOf(month, day);
    if (weekday === 6) return [day === 1 ? day + 2 : day - 1];
    if (weekday === 0) return [day === month.length ? day - 2 : day + 1];
    return [day];
  };
}

/** Gives a rule for weekdays; 1 is Sunday. */
function onWeekdays(weekdays: readonly number[]): DayRule {
  const wanted = new Set(weekdays.map((weekday) => weekday - 1));
  return (month) =>
    Array.from({ length: month.length }, (_, index) => index + 1).filter((day) =>
      wanted.has(weekdayOf(month, day)),
    );
}

/** Gives a rule for the nth of a weekday, in months that have it. A negative n counts from the month's end. */
function nthWeekday(weekday: number, nth: number): DayRule {
  const all = onWeekdays([weekday]);
  return (month) => {
    const day = all(month).at(nth > 0 ? nth - 1 : nth);
    return day === undefined ? [] : [day];
  };
}

function weekdayOf({ firstWeekday }: Month, day: number): number {
  return (firstWeekday + day - 1) % daysInWeek;
}
