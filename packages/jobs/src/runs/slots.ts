/**
 * The slot of a run: the time that it is scheduled for.
 * Each time has exactly one text, so that two texts never mean one slot.
 */
import { check, readable } from "@leasehold/client/internal";

/** The time that a run is scheduled for: a Date, or the text that its `toISOString` gives. */
export type Slot = string | Date;

/** Years 0 to 9999 in UTC: as text, these sort in the order of time. */
const slotPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

/** Gives a slot as text. Refuses every other way to write a time: one slot has one text. */
export function checkSlotTime(option: string, slot: unknown): string {
  const isDate = readable(option, slot, () => slot instanceof Date);
  const time = isDate ? (slot as Date).getTime() : typeof slot === "string" ? Date.parse(slot) : Number.NaN;
  const text = Number.isNaN(time) ? "" : new Date(time).toISOString();
  const isExact = slotPattern.test(text) && (isDate || slot === text);
  const shown = isDate ? text || "an invalid Date" : slot;
  check(isExact, option, shown, "a Date, or an ISO time in UTC with milliseconds: 2026-01-31T08:00:00.000Z");
  return text;
}
