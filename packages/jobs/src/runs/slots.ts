/**
 * The slots of a job: the times that its runs are scheduled for, those of a schedule, and those that were missed.
 * Each time has exactly one text, so that two texts never mean one slot.
 */
import {
  check,
  checkOptions,
  InvalidOptionsError,
  type Rules,
  readable,
  unchecked,
} from "@leasehold/client/internal";
import { InvalidScheduleError } from "../schedule/errors.ts";
import { parseScheduleExpression } from "../schedule/expression.ts";
import type { JobRun } from "./run.ts";

/** The time that a run is scheduled for: a Date, or the text that its `toISOString` gives. */
export type Slot = string | Date;

/** Years 0 to 9999 in UTC: as text, these sort in the order of time. The text of every other year begins with a sign. */
const unsigned = /^\d/;

/** The last time that has such a text. */
export const lastTime: number = Date.parse("9999-12-31T23:59:59.999Z");

/** Gives a slot as text. Refuses every other way to write a time: one slot has one text. */
export function checkSlotTime(option: string, slot: unknown): string {
  const isDate = readable(option, slot, () => slot instanceof Date);
  const time = isDate ? (slot as Date).getTime() : typeof slot === "string" ? Date.parse(slot) : Number.NaN;
  const text = Number.isNaN(time) ? "" : new Date(time).toISOString();
  const isExact = unsigned.test(text) && (isDate || slot === text);
  const shown = isDate ? text || "an invalid Date" : slot;
  check(isExact, option, shown, "a Date, or an ISO time in UTC with milliseconds: 2026-01-31T08:00:00.000Z");
  return text;
}

/** The times when a job is due. */
export interface Schedule {
  /** The first time after a given one; undefined or null when there is none. */
  next(after: Date): Date | null | undefined;
}

/** Options of {@link JobRuns.missed}. */
export interface MissedQuery {
  /**
   * An expression of EventBridge Scheduler, in UTC: `cron(0 8 ? * MON-FRI *)`, or `rate(1 hour)` counted from the
   * epoch. For a time zone or a start, give the result of {@link parseScheduleExpression}, or any other object with
   * `next`. On AWS a rate without a start begins when it is deployed, so its slots cannot be computed.
   */
  readonly schedule: Schedule | string;
  /** From this slot on; no earlier than the history is kept (`keepForMs`). */
  readonly since: Slot;
  /** Up to, and without, this slot, and never beyond now. Leave recent slots time to begin. @default - now */
  readonly until?: Slot;
}

/** A slot that was due, that has neither succeeded nor been skipped, and that is not running. */
export interface MissedSlot {
  readonly slot: string;
  /** Its last attempt; undefined when none has begun. */
  readonly run: JobRun | undefined;
}

/** The rules of a query; a schedule is turned into an object by its own. */
export const missedRules: Rules<MissedQuery> = {
  schedule: unchecked,
  since: checkSlotTime,
  until: checkSlotTime,
};

/** A range that has been validated. */
export interface MissedRange {
  readonly schedule: Schedule;
  readonly since: string;
  readonly until: string;
}

/** Validates a query; its range ends at a time at the latest. */
export function checkMissedQuery(query: MissedQuery, now: number): MissedRange {
  const given = checkOptions(query, missedRules, "query", ["since"]);
  const schedule = readSchedule(given.schedule);
  const until = given.until as string | undefined;
  const upTo = Math.min(until === undefined ? Number.POSITIVE_INFINITY : Date.parse(until), now);
  return { schedule, since: given.since as string, until: new Date(upTo).toISOString() };
}

/** Reads a schedule that is given as an option. Throws InvalidOptionsError. */
export function readSchedule(schedule: unknown): Schedule {
  if (typeof schedule === "string") return checkExpression(schedule);
  const allowed =
    "an expression such as cron(0 8 * * ? *), or an object with next(after), which gives the first time after a Date";
  const { next } = readable("schedule", schedule, () => ({ next: Object(schedule).next as unknown }));
  check(typeof next === "function", "schedule", schedule, allowed);
  return schedule as Schedule;
}

/** Reads an expression that is given as an option. Throws InvalidOptionsError. */
export function checkExpression(expression: string, timeZone?: string): Schedule {
  try {
    return parseScheduleExpression(expression, timeZone === undefined ? {} : { timeZone });
  } catch (error) {
    if (!(error instanceof InvalidScheduleError)) throw error;
    throw new InvalidOptionsError(
      "schedule",
      expression,
      `an expression of EventBridge Scheduler: ${error.problem}`,
    );
  }
}

/** Goes through a schedule's slots within a range. */
export function* slotsOf({ schedule, since, until }: MissedRange): Generator<string, void, undefined> {
  let after = Date.parse(since) - 1;
  for (;;) {
    const next = schedule.next(new Date(after));
    if (next === null || next === undefined) return;
    const slot = checkSlotTime("schedule.next", next);
    check(Date.parse(slot) > after, "schedule.next", slot, `a time after ${new Date(after).toISOString()}`);
    if (slot >= until) return;
    yield slot;
    after = Date.parse(slot);
  }
}

/**
 * Gives the slots whose run is missing, failed or lost. Slots and runs both come in the order of time, so one pass over
 * each is enough.
 */
export async function* missedAmong(
  slots: Iterable<string>,
  runs: AsyncIterator<JobRun, unknown>,
): AsyncGenerator<MissedSlot, void, undefined> {
  let current = await runs.next();
  for (const slot of slots) {
    while (!current.done && current.value.slot < slot) current = await runs.next();
    const run = !current.done && current.value.slot === slot ? current.value : undefined;
    if (run === undefined || run.state === "failed" || run.state === "lost") yield { slot, run };
  }
}
