// Expressions of schedules: any text is refused by name or read; what is read fires when its definition says.

import { parseScheduleExpression, type ScheduleTimes } from "@leasehold/jobs";
import fc from "fast-check";
import { expect } from "vitest";
import { isNamed } from "./bench.ts";
import { fuzz } from "./fuzz.ts";
import { hostileText } from "./hostile.ts";

const earliest = Date.UTC(1990, 0);
const latest = Date.UTC(2150, 0);
const instant = fc.integer({ min: earliest, max: latest });
const zone = fc.constantFrom(
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "Asia/Kathmandu",
  "Australia/Lord_Howe",
);
/** No expression takes longer to be read, or to find its next time, even one that never fires. */
const longestMs = 5_000;

/** Pieces of expressions, right and wrong ones. */
const piece = fc.constantFrom(
  ..."rate( cron( at( ) * ? L W LW # / - , 0 1 5 31 60 2026 2199 MON FRI-MON JAN DEC L-3 15W 2#5 6L */5 minute minutes hours days T : 1e9 -1 0x10 99999999999999999999".split(
    " ",
  ),
);
const soup = fc.array(piece, { maxLength: 14 }).map((pieces) => pieces.join(" "));
const tight = fc.array(piece, { maxLength: 10 }).map((pieces) => pieces.join(""));
const wrapped = fc
  .tuple(fc.constantFrom("rate", "cron", "at"), fc.oneof(soup, hostileText))
  .map(([kind, body]) => `${kind}(${body})`);

/** Each part is one that expressions can have there. */
const shaped = fc.oneof(
  fc
    .tuple(fc.nat(100), fc.constantFrom("minute", "minutes", "hours", "days", "weeks"))
    .map(([count, unit]) => `rate(${count} ${unit})`),
  fc
    .tuple(
      fc.constantFrom("0", "*/5", "1,31", "59-0", "60"),
      fc.constantFrom("*", "8", "0/6", "23"),
      fc.constantFrom("?", "*", "L", "15W", "31", "L-3"),
      fc.constantFrom("*", "JAN", "2", "DEC-JAN"),
      fc.constantFrom("?", "*", "MON-FRI", "2#5", "6L"),
      fc.constantFrom("*", "2026", "2199", "2000"),
    )
    .map((fields) => `cron(${fields.join(" ")})`),
);

/** Reads and asks; gives the times, or undefined where it was refused by name. */
function read(expression: unknown, options: unknown): ScheduleTimes | undefined {
  try {
    return parseScheduleExpression(expression as string, options as object);
  } catch (error) {
    if (!isNamed(error)) throw new Error("not a named error", { cause: error });
    return undefined;
  }
}

fuzz(
  "any text is refused by name, or fires after the time that is asked for",
  fc.tuple(fc.oneof(soup, tight, wrapped, shaped, hostileText), zone, instant),
  ([expression, timeZone, after]) => {
    const startedAt = performance.now();
    const next = read(expression, { timeZone })?.next(new Date(after));
    if (next !== undefined) expect(next.getTime()).toBeGreaterThan(after);
    expect(performance.now() - startedAt).toBeLessThan(longestMs);
    return next === undefined ? undefined : [];
  },
  { few: 500, many: 100_000, accepted: { share: 0.01, options: [] } },
);

fuzz(
  "a rate fires at whole periods from its start, and leaves none out",
  fc.tuple(
    fc.integer({ min: 1, max: 10_000 }),
    fc.constantFrom(
      ["minutes", 60_000] as const,
      ["hours", 3_600_000] as const,
      ["days", 86_400_000] as const,
    ),
    instant,
    instant,
  ),
  ([count, [unit, unitMs], start, after]) => {
    const next = parseScheduleExpression(`rate(${count} ${unit})`, { start: new Date(start) }).next(
      new Date(after),
    );
    const [time, period] = [next?.getTime() ?? Number.NaN, count * unitMs];
    expect(time).toBeGreaterThanOrEqual(start);
    expect(time).toBeGreaterThan(after);
    expect(Math.abs((time - start) % period)).toBe(0);
    if (time > start) expect(time - period).toBeLessThanOrEqual(after);
  },
  { few: 200, many: 50_000 },
);

const some = (min: number, max: number): fc.Arbitrary<readonly number[]> =>
  fc.uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: 5 });

fuzz(
  "a cron expression fires at its minutes, hours, months and weekdays on the clocks of its time zone, and leaves none out",
  fc.tuple(
    some(0, 59),
    some(0, 23),
    some(1, 12),
    some(1, 7),
    zone,
    instant,
    fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 5 }),
  ),
  ([minutes, hours, months, weekdays, timeZone, after, shares]) => {
    const expression = `cron(${minutes} ${hours} ? ${months} ${weekdays} *)`;
    const next =
      parseScheduleExpression(expression, { timeZone }).next(new Date(after))?.getTime() ?? Number.NaN;
    const format = new Intl.DateTimeFormat("en-GB", {
      timeZone,
      hourCycle: "h23",
      minute: "numeric",
      hour: "numeric",
      month: "numeric",
      weekday: "short",
      second: "numeric",
    });
    const fires = (ms: number): boolean => {
      const parts = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, value]));
      const weekday = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"].indexOf(parts.weekday ?? "") + 1;
      return (
        minutes.includes(Number(parts.minute)) &&
        hours.includes(Number(parts.hour)) &&
        months.includes(Number(parts.month)) &&
        weekdays.includes(weekday) &&
        Number(parts.second) === 0
      );
    };
    expect(next).toBeGreaterThan(after);
    expect(fires(next)).toBe(true);
    for (const share of shares) {
      // A time that the clocks show twice counts once: the first time.
      const between = Math.ceil((after + share * (next - after)) / 60_000) * 60_000;
      const isRepeated = fires(between) && [1_800_000, 3_600_000].some((ms) => fires(between - ms));
      if (between > after && between < next && !isRepeated) expect(fires(between)).toBe(false);
    }
  },
  { few: 150, many: 10_000 },
);
