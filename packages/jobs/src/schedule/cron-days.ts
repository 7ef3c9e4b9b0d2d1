/**
 * Rules for the days of a month: by number, by weekday, and relative to the month's end.
 * A rule gives only days that the month has.
 */

/** The properties of a month that a rule needs. */
export interface Month {
  /** How many days it has. */
  readonly length: number;
  /** The weekday of its first day, from 0 for Sunday. */
  readonly firstWeekday: number;
}

/** Gives the matching days of a month, in order. */
export type DayRule = (month: Month) => readonly number[];

const daysInWeek = 7;

/** Gives a month of the calendar. Months are counted from 1. */
export function monthOf(year: number, month: number): Month {
  const length = new Date(Date.UTC(year, month, 0)).getUTCDate();
  return { length, firstWeekday: new Date(Date.UTC(year, month - 1, 1)).getUTCDay() };
}

/** Gives a rule for days by their number. */
export function onDays(days: readonly number[]): DayRule {
  return ({ length }) => days.filter((day) => day <= length);
}

/** Gives a rule for the day that is this many days before the last. */
export function beforeLast(days: number): DayRule {
  return ({ length }) => [length - days];
}

/** The last day of a month that is a Monday to Friday. */
export const lastWorkday: DayRule = (month) => nearestWorkday(month.length)(month);

/** Gives a rule for the Monday to Friday that is nearest to a day, within the month. */
export function nearestWorkday(day: number): DayRule {
  return (month) => {
    if (day > month.length) return [];
    const weekday = weekdayOf(month, day);
    if (weekday === 6) return [day === 1 ? day + 2 : day - 1];
    if (weekday === 0) return [day === month.length ? day - 2 : day + 1];
    return [day];
  };
}

/** Gives a rule for weekdays; 1 is Sunday. */
export function onWeekdays(weekdays: readonly number[]): DayRule {
  const wanted = new Set(weekdays.map((weekday) => weekday - 1));
  return (month) =>
    Array.from({ length: month.length }, (_, index) => index + 1).filter((day) =>
      wanted.has(weekdayOf(month, day)),
    );
}

/** Gives a rule for the nth of a weekday, in months that have it. A negative n counts from the month's end. */
export function nthWeekday(weekday: number, nth: number): DayRule {
  const all = onWeekdays([weekday]);
  return (month) => {
    const day = all(month).at(nth > 0 ? nth - 1 : nth);
    return day === undefined ? [] : [day];
  };
}

function weekdayOf({ firstWeekday }: Month, day: number): number {
  return (firstWeekday + day - 1) % daysInWeek;
}
