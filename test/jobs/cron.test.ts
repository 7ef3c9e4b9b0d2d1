import { LeaseError } from "@leasehold/client";
import { InvalidScheduleError, parseScheduleExpression } from "@leasehold/jobs";
import { Cron } from "croner";
import fc from "fast-check";
import { describe, expect, test } from "vitest";

/** 21 November 2026 is a Saturday. */
const start = "2026-11-21T00:00:00Z";

/** Why, the fields, and the next times: in UTC, and after the start or another time. */
const cases: readonly (readonly [why: string, fields: string, next: string, after?: string])[] = [
  ["any weekday", "15 12 ? * * *", "2026-11-21T12:15 2026-11-22T12:15"],
  ["names of days", "0 18 ? * MON-FRI *", "2026-11-23T18:00 2026-11-24T18:00"],
  ["a step from a start", "0/15 * * * ? *", "2026-11-21T00:15 2026-11-21T00:30"],
  ["a step", "*/20 * * * ? *", "2026-11-21T00:20 2026-11-21T00:40 2026-11-21T01:00"],
  ["steps on weekdays", "0/10 * ? * MON-FRI *", "2026-11-23T00:00 2026-11-23T00:10"],
  ["a range of hours", "0/5 8-17 ? * MON-FRI *", "2026-11-23T17:55 2026-11-24T08:00", "2026-11-23T17:50:00Z"],
  ["a fifth Tuesday, where there is one", "0 12 ? * TUE#5 *", "2026-12-29T12:00 2027-03-30T12:00"],
  ["the last Friday by name", "15 10 ? * FRIL *", "2026-11-27T10:15 2026-12-25T10:15"],
  ["L as a weekday is Saturday", "0 12 ? * L *", "2026-11-28T12:00 2026-12-05T12:00", "2026-11-22T00:00:00Z"],
  [
    "three days before the last",
    "0 8 L-3 * ? *",
    "2026-11-27T08:00 2026-12-28T08:00 2027-01-28T08:00 2027-02-25T08:00",
  ],
  ["the farthest from the last", "0 8 L-27 2 ? *", "2027-02-01T08:00 2028-02-02T08:00"],
  ["1W stays in its month", "0 8 1W * ? *", "2027-05-03T08:00", "2027-04-30T00:00:00Z"],
  ["31 February never comes", "0 0 31 2 ? *", ""],
  ["names of months", "0 0 1 JAN,JUL ? *", "2027-01-01T00:00 2027-07-01T00:00"],
  [
    "hours over midnight",
    "0 22-1 * * ? *",
    "2026-11-21T01:00 2026-11-21T22:00 2026-11-21T23:00 2026-11-22T00:00",
  ],
  ["days over the weekend", "0 0 ? * FRI-MON *", "2026-11-22T00:00 2026-11-23T00:00 2026-11-27T00:00"],
  [
    "months over the new year",
    "0 0 1 NOV-FEB ? *",
    "2026-12-01T00:00 2027-01-01T00:00 2027-02-01T00:00 2027-11-01T00:00",
  ],
  [
    "lists, ranges and years",
    "0 0 1,15 1-3 ? 2027-2028",
    "2027-03-15T00:00 2028-01-01T00:00",
    "2027-03-10T00:00:00Z",
  ],
  ["every other year", "0 0 1 1 ? 2027/2", "2027-01-01T00:00 2029-01-01T00:00"],
  ["a year that is over", "0 0 1 1 ? 2025", ""],
];

/** The same in another zone. */
const zonedCases: readonly (readonly [
  why: string,
  zone: string,
  fields: string,
  next: string,
  after?: string,
])[] = [
  [
    "a time that spring skips is skipped",
    "Europe/Berlin",
    "30 2 * * ? *",
    "2027-03-27T01:30 2027-03-29T00:30",
    "2027-03-27T00:00:00Z",
  ],
  [
    "the hour after the one that spring skips has all of its times",
    "Europe/Berlin",
    "0/30 * * * ? *",
    "2027-03-28T00:30 2027-03-28T01:00 2027-03-28T01:30",
    "2027-03-28T00:00:00Z",
  ],
  [
    "a time that autumn repeats counts once",
    "Europe/Berlin",
    "30 2 * * ? *",
    "2026-10-24T00:30 2026-10-25T00:30 2026-10-26T01:30",
    "2026-10-24T00:00:00Z",
  ],
  [
    "the repeated hour does not fire again",
    "America/New_York",
    "0/30 * * * ? *",
    "2026-11-01T05:30 2026-11-01T07:00",
    "2026-11-01T05:00:00Z",
  ],
  [
    "the zone decides which day is the last",
    "Pacific/Kiritimati",
    "0 0 L 2 ? *",
    "2027-02-27T10:00 2028-02-28T10:00",
  ],
];

function errorOf(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    return error;
  }
}

describe("cron expressions of AWS", () => {
  const expectNext = (
    fields: string,
    next: string,
    after = start,
    options: { readonly timeZone?: string } = {},
  ): void => {
    const times = parseScheduleExpression(`cron(${fields})`, options);
    const expected = next === "" ? [] : next.split(" ");
    const found: string[] = [];
    let at = times.next(new Date(after));
    for (const _ of expected) {
      if (at === undefined) break;
      found.push(at.toISOString().slice(0, 16));
      at = times.next(at);
    }
    expect(found).toEqual(expected);
    if (expected.length === 0) expect(at).toBeUndefined();
  };

  for (const [why, fields, next, after] of cases)
    test(`${why}: ${fields}`, () => expectNext(fields, next, after));
  for (const [why, timeZone, fields, next, after] of zonedCases)
    test(`${why}, in ${timeZone}: ${fields}`, () => expectNext(fields, next, after, { timeZone }));

  test.each([
    ["cron(0 10 * * * *)", "both days set"],
    ["cron(0 10 ? * ? *)", "no day set"],
    ["cron(0 10 1 * MON *)", "a day and a weekday"],
    ["cron(0 10 * * ?)", "five fields"],
    ["cron(0 0 10 * * ? *)", "seven fields"],
    ["cron(60 10 * * ? *)", "minute 60"],
    ["cron(0 0 32 * ? *)", "day 32"],
    ["cron(0 0 1 13 ? *)", "month 13"],
    ["cron(0 0 ? * 8 *)", "weekday 8"],
    ["cron(0 0 1 1 ? 2200)", "a year too late"],
    ["cron(0 0 1 1 ? 1969)", "a year too early"],
    ["cron(0 0 1 1 ? 2030-2027)", "years backwards"],
    ["cron(*/0 * * * ? *)", "a step of nothing"],
    ["cron(? * * * ? *)", "? for minutes"],
    ["cron(0 0 1,L * ? *)", "L in a list"],
    ["cron(0 0 1,15W * ? *)", "W in a list"],
    ["cron(0 0 L-28 * ? *)", "too far from the last day"],
    ["cron(0 0 ? * 3#6 *)", "a sixth Tuesday"],
    ["cron(0 0 ? * 2/2 *)", "a step of weekdays"],
    ["cron(0 0 1 FOO ? *)", "no month"],
    ["cron(1-2-3 0 * * ? *)", "no range"],
    ["every day", "no expression"],
  ])("%s is refused: %s", (expression) => {
    expect(() => parseScheduleExpression(expression)).toThrow(InvalidScheduleError);
  });

  test("a refusal says which field is wrong and what it takes", () => {
    expect(() => parseScheduleExpression("cron(0 24 * * ? *)")).toThrow(
      /"24" is not allowed in hours, which takes 0-23/,
    );
  });

  const seconds = "leave it out: ";
  const minutes = "if its first field is minutes, ";
  const crontab = "if its five fields are those of a crontab, ";
  /** What is refused, the words before the hint, and the expression that the hint gives. */
  test.each([
    // With seconds, as other schedulers have them.
    ["cron(0 0 12 * * ?)", seconds, "cron(0 12 * * ? *)"],
    ["cron(0 0 10 * * ? 2027)", seconds, "cron(0 10 * * ? 2027)"],
    // Spring's, whose weekdays count from 0.
    ["0 0 12 * * 1-5", seconds, "cron(0 12 ? * MON-FRI *)"],
    ["0 0 12 * * 5L", seconds, "cron(0 12 ? * FRIL *)"],
    ["0 0 12 * * 5#2", seconds, "cron(0 12 ? * FRI#2 *)"],
    // It may begin with minutes.
    ["*/20 * * * * *", minutes, "cron(*/20 * * * ? *)"],
    ["cron(0 10 * * * *)", minutes, "cron(0 10 * * ? *)"],
    ["0 10 1 * * *", minutes, "cron(0 10 1 * ? *)"],
    // A crontab's.
    ["0 3 * * *", crontab, "cron(0 3 * * ? *)"],
    ["cron(0 10 * * ?)", crontab, "cron(0 10 * * ? *)"],
    ["0 0 * * 0", crontab, "cron(0 0 ? * SUN *)"],
    ["0 0 * * 6-7", crontab, "cron(0 0 ? * SAT-SUN *)"],
    ["0 0 * * */2", crontab, "cron(0 0 ? * SUN,TUE,THU,SAT *)"],
    ["0 0 * * 1-5/2,sun", crontab, "cron(0 0 ? * MON,WED,FRI,SUN *)"],
    // Without cron( ).
    ["0 10 * * ? *", "; ", "cron(0 10 * * ? *)"],
    ["@Weekly", "; ", "cron(0 0 ? * SUN *)"],
    ["@yearly", "; ", "cron(0 0 1 1 ? *)"],
  ])("%s is refused with a hint: %swrite %s", (expression, words, instead) => {
    expect(() => parseScheduleExpression(expression)).toThrow(InvalidScheduleError);
    expect(() => parseScheduleExpression(expression)).toThrow(`${words}write ${instead}`);
    expect(() => parseScheduleExpression(instead)).not.toThrow();
  });

  test("a weekday's number behind seconds is given with what it means here", () => {
    expect(() => parseScheduleExpression("cron(0 0 12 ? * 2)")).toThrow(
      "write cron(0 12 ? * 2 *), where weekdays count from 1 for Sunday",
    );
  });

  test.each([
    ["*/20 * * * * *", "cron(* * * * ? *) fires once in a minute and not 3 times"],
    ["cron(*/20 * * * * *)", "cron(* * * * ? *) fires once in a minute and not 3 times"],
    ["0,30 0 12 * * ?", "cron(0 12 * * ? *) fires once in a minute and not 2 times"],
    ["30 0 12 ? * MON-FRI", "cron(0 12 ? * MON-FRI *) fires at second 0 and not at second 30"],
    ["15 0 12 * * ? 2027", "cron(0 12 * * ? 2027) fires at second 0 and not at second 15"],
  ])("%s has seconds, which schedules have not: the refusal says what would be lost", (expression, lost) => {
    const read = (): unknown => parseScheduleExpression(expression);
    expect(read).toThrow(InvalidScheduleError);
    expect(read).toThrow(`they are lost, because schedules have no seconds: ${lost}`);
    expect(read).not.toThrow(`write ${lost.slice(0, lost.indexOf(")"))}`);
  });

  test("a crontab's day and weekday together become two schedules, because it fires on both", () => {
    expect(() => parseScheduleExpression("0 8 1,15 * 1")).toThrow(
      "it fires on either of its days, which takes two schedules: cron(0 8 1,15 * ? *) and cron(0 8 ? * MON *)",
    );
  });

  test.each([
    "cron(0 24 * * ? *)",
    "cron(0 0 25 * * ?)",
    "cron(0 0 ? * 2/2 *)",
    "0 0 8 1 * MON",
    "0 0 * * 9",
    "0 0 * * 1/2",
    "99 0 12 * * ?",
    "0 24 * * *",
    "@reboot",
    "constructor",
    "every day",
  ])("what no other scheduler means by %s gets no hint", (expression) => {
    expect(() => parseScheduleExpression(expression)).toThrow(/^(?!.*(second|crontab|write))/);
  });

  test.each(["Europe/Nowhere", "", "local"])("the time zone %j is not known, and refused", (timeZone) => {
    expect(() => parseScheduleExpression("cron(0 10 * * ? *)", { timeZone })).toThrow(
      `the time zone ${JSON.stringify(timeZone)} is not known`,
    );
  });

  test.each([
    ["+02:00", "Etc/GMT-2"],
    ["-05:00", "Etc/GMT+5"],
    ["+0200", "Etc/GMT-2"],
    ["+02", "Etc/GMT-2"],
    ["-00:00", "UTC"],
  ])("the offset %s is no time zone of IANA, and refused with %s in its place", (timeZone, instead) => {
    for (const expression of ["cron(0 10 * * ? *)", "at(2026-11-21T10:00:00)", "rate(1 day)"]) {
      const read = (): unknown => parseScheduleExpression(expression, { timeZone });
      expect(read).toThrow(InvalidScheduleError);
      expect(read).toThrow(`the time zone "${timeZone}" is an offset`);
      expect(read).toThrow(`or ${instead}`);
      expect(() => parseScheduleExpression(expression, { timeZone: instead })).not.toThrow();
    }
  });

  test("an offset of half an hour has no IANA name that is fixed", () => {
    expect(() => parseScheduleExpression("rate(1 day)", { timeZone: "+05:30" })).toThrow(
      "an IANA name such as Europe/Berlin",
    );
  });

  test("a refusal is an error of this package, with its own code", () => {
    const error = errorOf(() => parseScheduleExpression("every day"));
    expect(error).toBeInstanceOf(LeaseError);
    expect(error).toMatchObject({
      name: "InvalidScheduleError",
      code: "INVALID_SCHEDULE",
      expression: "every day",
      mayHaveLanded: false,
    });
  });
});

/** Fields that both write alike, with AWS's weekdays turned into the library's by its own option. */
const numbers = (min: number, max: number) =>
  fc
    .uniqueArray(fc.integer({ min, max }), { minLength: 1, maxLength: 4 })
    .map((values) => values.sort((a, b) => a - b).join(","));
const orAny = (field: fc.Arbitrary<string>) => fc.oneof(field, fc.constant("*"));
const day = fc.oneof(
  orAny(numbers(1, 31)),
  fc.constantFrom("L", "LW"),
  fc.integer({ min: 1, max: 28 }).map((value) => `${value}W`),
);
const weekday = fc.oneof(
  numbers(1, 7),
  fc.integer({ min: 1, max: 7 }).map((value) => `${value}L`),
  fc.tuple(fc.integer({ min: 1, max: 7 }), fc.integer({ min: 1, max: 5 })).map(([of, nth]) => `${of}#${nth}`),
);
const days = fc.oneof(
  day.map((dom) => ({ dom, dow: "?" })),
  weekday.map((dow) => ({ dom: "?", dow })),
);
const instant = fc.integer({ min: Date.UTC(2024, 0), max: Date.UTC(2032, 0) });

test("cron expressions have the times that an independent implementation finds", () => {
  const fields = fc.tuple(orAny(numbers(0, 59)), orAny(numbers(0, 23)), days, orAny(numbers(1, 12)), instant);
  fc.assert(
    fc.property(fields, ([minutes, hours, { dom, dow }, months, after]) => {
      const times = parseScheduleExpression(`cron(${minutes} ${hours} ${dom} ${months} ${dow} *)`);
      const [libraryDom, libraryDow] = [dom, dow].map((text) => (text === "?" ? "*" : text));
      const oracle = new Cron(`0 ${minutes} ${hours} ${libraryDom} ${months} ${libraryDow}`, {
        alternativeWeekdays: true,
        domAndDow: true,
        timezone: "UTC",
      });
      let at = new Date(after);
      for (let step = 0; step < 3; step += 1) {
        const next = times.next(at);
        const expected = oracle.nextRun(at) ?? undefined;
        // The library looks a few years ahead; AWS to the end of its years.
        if (expected === undefined) return;
        expect(next).toEqual(expected);
        at = expected;
      }
    }),
    { numRuns: 300 },
  );
});

describe("rates", () => {
  test("follow each other at their distance from the start", () => {
    const times = parseScheduleExpression("rate(5 minutes)", { start: new Date("2026-11-21T10:02:00Z") });
    expect(times.next(new Date("2026-11-21T09:00:00Z"))).toEqual(new Date("2026-11-21T10:02:00Z"));
    expect(times.next(new Date("2026-11-21T10:02:00Z"))).toEqual(new Date("2026-11-21T10:07:00Z"));
    expect(times.next(new Date("2026-11-21T10:11:59Z"))).toEqual(new Date("2026-11-21T10:12:00Z"));
  });

  test("a day is 24 hours, whatever the clocks do", () => {
    const options = { start: new Date("2027-03-27T10:00:00Z"), timeZone: "Europe/Berlin" };
    const times = parseScheduleExpression("rate(1 day)", options);
    expect(times.next(new Date("2027-03-27T10:00:00Z"))).toEqual(new Date("2027-03-28T10:00:00Z"));
  });

  test.each(["rate(0 minutes)", "rate(5)", "rate(5 seconds)", "rate(-1 hours)", "rate(1.5 hours)"])(
    "%s is refused",
    (expression) => {
      expect(() => parseScheduleExpression(expression)).toThrow(InvalidScheduleError);
    },
  );
});

describe("rates beyond what a calendar holds", () => {
  const lastDay = 100_000_000;

  test.each(["rate(9999999999 days)", "rate(100000001 days)", "rate(99999999999999999999999999 minutes)"])(
    "%s is refused, for it could never come again",
    (expression) => {
      expect(() => parseScheduleExpression(expression)).toThrow(InvalidScheduleError);
      expect(() => parseScheduleExpression(expression)).toThrow(`at most ${lastDay} days`);
    },
  );

  test.each([`rate(${lastDay} days)`, "rate(2400000000 hours)"])(
    "%s comes twice, and then no more",
    (expression) => {
      const times = parseScheduleExpression(expression);
      expect(times.next(new Date(-1))).toEqual(new Date(0));
      const last = times.next(new Date(0));
      expect(last?.getTime()).toBe(8_640_000_000_000_000);
      expect(times.next(last ?? new Date(0))).toBeUndefined();
      expect(times.next(new Date(start))).toEqual(last);
    },
  );
});

describe("times", () => {
  test("come once, in their time zone", () => {
    const times = parseScheduleExpression("at(2026-11-21T10:00:00)", { timeZone: "America/New_York" });
    expect(times.next(new Date(start))).toEqual(new Date("2026-11-21T15:00:00Z"));
    expect(times.next(new Date("2026-11-21T15:00:00Z"))).toBeUndefined();
  });

  test("one that the clocks skip never comes", () => {
    const times = parseScheduleExpression("at(2027-03-28T02:30:00)", { timeZone: "Europe/Berlin" });
    expect(times.next(new Date(start))).toBeUndefined();
  });

  test.each([
    "at(2026-02-31T10:00:00)",
    "at(2026-11-21)",
    "at(2026-11-21T10:00:00Z)",
    "at(2026-11-21T25:00:00)",
  ])("%s is refused", (expression) => {
    expect(() => parseScheduleExpression(expression)).toThrow(InvalidScheduleError);
  });
});
