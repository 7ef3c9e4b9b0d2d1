import { LeaseError } from "@leasehold/client";
import { InvalidScheduleError, parseScheduleExpression } from "@leasehold/jobs";
import { describe, expect, test } from "vitest";

interface Case {
  readonly expression: string;
  readonly timeZone?: string;
  readonly after?: string;
  readonly next: readonly string[];
  readonly why: string;
}

/** 21 November 2026 is a Saturday. */
const start = "2026-11-21T00:00:00Z";

const cases: readonly Case[] = [
  { expression: "cron(0 10 * * ? *)", next: ["2026-11-21T10:00", "2026-11-22T10:00"], why: "every day" },
  { expression: "cron(15 12 ? * * *)", next: ["2026-11-21T12:15", "2026-11-22T12:15"], why: "any weekday" },
  {
    expression: "cron(0 18 ? * MON-FRI *)",
    next: ["2026-11-23T18:00", "2026-11-24T18:00"],
    why: "names of days",
  },
  {
    expression: "cron(0 8 1 * ? *)",
    next: ["2026-12-01T08:00", "2027-01-01T08:00"],
    why: "the first of the month",
  },
  {
    expression: "cron(0/15 * * * ? *)",
    next: ["2026-11-21T00:15", "2026-11-21T00:30"],
    why: "a step from a start",
  },
  {
    expression: "cron(*/20 * * * ? *)",
    next: ["2026-11-21T00:20", "2026-11-21T00:40", "2026-11-21T01:00"],
    why: "a step",
  },
  {
    expression: "cron(0/10 * ? * MON-FRI *)",
    next: ["2026-11-23T00:00", "2026-11-23T00:10"],
    why: "steps on weekdays",
  },
  {
    expression: "cron(0/5 8-17 ? * MON-FRI *)",
    after: "2026-11-23T17:50:00Z",
    next: ["2026-11-23T17:55", "2026-11-24T08:00"],
    why: "a range of hours",
  },
  {
    expression: "cron(0 9 ? * 2#1 *)",
    next: ["2026-12-07T09:00", "2027-01-04T09:00"],
    why: "the first Monday",
  },
  {
    expression: "cron(0 12 ? * 3#2 *)",
    next: ["2026-12-08T12:00", "2027-01-12T12:00"],
    why: "the second Tuesday",
  },
  {
    expression: "cron(0 12 ? * TUE#5 *)",
    next: ["2026-12-29T12:00", "2027-03-30T12:00"],
    why: "a fifth Tuesday, where there is one",
  },
  {
    expression: "cron(15 10 ? * 6L *)",
    next: ["2026-11-27T10:15", "2026-12-25T10:15"],
    why: "the last Friday",
  },
  {
    expression: "cron(15 10 ? * FRIL *)",
    next: ["2026-11-27T10:15", "2026-12-25T10:15"],
    why: "the last Friday by name",
  },
  {
    expression: "cron(0 12 ? * L *)",
    after: "2026-11-22T00:00:00Z",
    next: ["2026-11-28T12:00", "2026-12-05T12:00"],
    why: "L as a weekday is Saturday",
  },
  {
    expression: "cron(0 8 L * ? *)",
    next: ["2026-11-30T08:00", "2026-12-31T08:00", "2027-01-31T08:00", "2027-02-28T08:00"],
    why: "the last day",
  },
  {
    expression: "cron(0 8 L-3 * ? *)",
    next: ["2026-11-27T08:00", "2026-12-28T08:00", "2027-01-28T08:00", "2027-02-25T08:00"],
    why: "three days before the last",
  },
  {
    expression: "cron(0 8 L-27 2 ? *)",
    next: ["2027-02-01T08:00", "2028-02-02T08:00"],
    why: "the farthest from the last",
  },
  {
    expression: "cron(0 8 LW * ? *)",
    next: ["2026-11-30T08:00", "2026-12-31T08:00", "2027-01-29T08:00"],
    why: "the last weekday",
  },
  {
    expression: "cron(0 8 15W * ? *)",
    after: "2027-04-30T00:00:00Z",
    next: ["2027-05-14T08:00", "2027-06-15T08:00", "2027-07-15T08:00", "2027-08-16T08:00"],
    why: "the weekday next to a weekend's 15th",
  },
  {
    expression: "cron(0 8 1W * ? *)",
    after: "2027-04-30T00:00:00Z",
    next: ["2027-05-03T08:00"],
    why: "1W stays in its month",
  },
  { expression: "cron(0 0 29 2 ? *)", next: ["2028-02-29T00:00", "2032-02-29T00:00"], why: "29 February" },
  {
    expression: "cron(0 0 31 * ? *)",
    next: ["2026-12-31T00:00", "2027-01-31T00:00", "2027-03-31T00:00"],
    why: "the 31st",
  },
  { expression: "cron(0 0 31 2 ? *)", next: [], why: "31 February never comes" },
  {
    expression: "cron(0 0 1 JAN,JUL ? *)",
    next: ["2027-01-01T00:00", "2027-07-01T00:00"],
    why: "names of months",
  },
  {
    expression: "cron(0 22-1 * * ? *)",
    next: ["2026-11-21T01:00", "2026-11-21T22:00", "2026-11-21T23:00", "2026-11-22T00:00"],
    why: "hours over midnight",
  },
  {
    expression: "cron(0 0 ? * FRI-MON *)",
    next: ["2026-11-22T00:00", "2026-11-23T00:00", "2026-11-27T00:00"],
    why: "days over the weekend",
  },
  {
    expression: "cron(0 0 1 NOV-FEB ? *)",
    next: ["2026-12-01T00:00", "2027-01-01T00:00", "2027-02-01T00:00", "2027-11-01T00:00"],
    why: "months over the new year",
  },
  {
    expression: "cron(0 0 1,15 1-3 ? 2027-2028)",
    after: "2027-03-10T00:00:00Z",
    next: ["2027-03-15T00:00", "2028-01-01T00:00"],
    why: "lists, ranges and years",
  },
  {
    expression: "cron(0 0 1 1 ? 2027/2)",
    next: ["2027-01-01T00:00", "2029-01-01T00:00"],
    why: "every other year",
  },
  { expression: "cron(0 0 1 1 ? 2025)", next: [], why: "a year that is over" },
  {
    expression: "cron(5,35 14 * * ? *)",
    next: ["2026-11-21T14:05", "2026-11-21T14:35", "2026-11-22T14:05"],
    why: "a list",
  },
  {
    expression: "cron(0 0 ? * 1,7 *)",
    next: ["2026-11-22T00:00", "2026-11-28T00:00"],
    why: "Sunday is 1, Saturday is 7",
  },
  {
    expression: "cron(0 9 * * ? *)",
    timeZone: "Europe/Berlin",
    after: "2027-03-27T00:00:00Z",
    next: ["2027-03-27T08:00", "2027-03-28T07:00"],
    why: "9 o'clock before and after spring",
  },
  {
    expression: "cron(30 2 * * ? *)",
    timeZone: "Europe/Berlin",
    after: "2027-03-27T00:00:00Z",
    next: ["2027-03-27T01:30", "2027-03-29T00:30"],
    why: "a time that spring skips is skipped",
  },
  {
    expression: "cron(0/30 * * * ? *)",
    timeZone: "Europe/Berlin",
    after: "2027-03-28T00:00:00Z",
    next: ["2027-03-28T00:30", "2027-03-28T01:00", "2027-03-28T01:30"],
    why: "the hour after the one that spring skips has all of its times",
  },
  {
    expression: "cron(30 2 * * ? *)",
    timeZone: "Europe/Berlin",
    after: "2026-10-24T00:00:00Z",
    next: ["2026-10-24T00:30", "2026-10-25T00:30", "2026-10-26T01:30"],
    why: "a time that autumn repeats counts once",
  },
  {
    expression: "cron(0/30 * * * ? *)",
    timeZone: "America/New_York",
    after: "2026-11-01T05:00:00Z",
    next: ["2026-11-01T05:30", "2026-11-01T07:00"],
    why: "the repeated hour does not fire again",
  },
  {
    expression: "cron(0 0 ? * SUN *)",
    timeZone: "Asia/Kolkata",
    next: ["2026-11-21T18:30", "2026-11-28T18:30"],
    why: "a zone with half an hour",
  },
  {
    expression: "cron(45 23 31 12 ? *)",
    timeZone: "Pacific/Auckland",
    next: ["2026-12-31T10:45", "2027-12-31T10:45"],
    why: "a zone with summer in December",
  },
  {
    expression: "cron(0 0 L 2 ? *)",
    timeZone: "Pacific/Kiritimati",
    next: ["2027-02-27T10:00", "2028-02-28T10:00"],
    why: "the zone decides which day is the last",
  },
];

function errorOf(read: () => unknown): unknown {
  try {
    return read();
  } catch (error) {
    return error;
  }
}

describe("cron expressions of AWS", () => {
  test.each(cases)("$expression $timeZone: $why", ({ expression, timeZone, after = start, next }) => {
    const times = parseScheduleExpression(expression, timeZone === undefined ? {} : { timeZone });
    const found: string[] = [];
    let at = times.next(new Date(after));
    for (const _ of next) {
      if (at === undefined) break;
      found.push(at.toISOString().slice(0, 16));
      at = times.next(at);
    }
    expect(found).toEqual(next);
    if (next.length === 0) expect(at).toBeUndefined();
  });

  test.each([
    ["cron(0 10 * * * *)", "both days set"],
    ["cron(0 10 ? * ? *)", "no day set"],
    ["cron(0 10 1 * MON *)", "a day and a weekday"],
    ["cron(0 10 * * ?)", "five fields"],
    ["cron(0 0 10 * * ? *)", "seven fields"],
    ["cron(60 10 * * ? *)", "minute 60"],
    ["cron(0 24 * * ? *)", "hour 24"],
    ["cron(0 0 32 * ? *)", "day 32"],
    ["cron(0 0 0 * ? *)", "day 0"],
    ["cron(0 0 1 13 ? *)", "month 13"],
    ["cron(0 0 ? * 8 *)", "weekday 8"],
    ["cron(0 0 ? * 0 *)", "weekday 0"],
    ["cron(0 0 1 1 ? 2200)", "a year too late"],
    ["cron(0 0 1 1 ? 1969)", "a year too early"],
    ["cron(0 0 1 1 ? 2030-2027)", "years backwards"],
    ["cron(*/0 * * * ? *)", "a step of nothing"],
    ["cron(/5 * * * ? *)", "a step from nowhere"],
    ["cron(? * * * ? *)", "? for minutes"],
    ["cron(0 0 1,L * ? *)", "L in a list"],
    ["cron(0 0 1,15W * ? *)", "W in a list"],
    ["cron(0 0 L-28 * ? *)", "too far from the last day"],
    ["cron(0 0 ? * 3#6 *)", "a sixth Tuesday"],
    ["cron(0 0 ? * 3#1,6#3 *)", "two numbered weekdays"],
    ["cron(0 0 ? * 2/2 *)", "a step of weekdays"],
    ["cron(0 0 1 FOO ? *)", "no month"],
    ["cron(1-2-3 0 * * ? *)", "no range"],
    ["every day", "no expression"],
    ["cron 0 10 * * ? *", "no brackets"],
  ])("%s is refused: %s", (expression) => {
    expect(() => parseScheduleExpression(expression)).toThrow(InvalidScheduleError);
  });

  test("a refusal says which field is wrong and what it takes", () => {
    expect(() => parseScheduleExpression("cron(0 24 * * ? *)")).toThrow(
      /"24" is not allowed in hours, which takes 0-23/,
    );
  });

  test.each([
    ["cron(0 0 12 * * ?)", "cron(0 12 * * ? *)"],
    ["cron(0 30 10 ? * MON-FRI)", "cron(30 10 ? * MON-FRI *)"],
    ["cron(0 0/5 14 * * ?)", "cron(0/5 14 * * ? *)"],
    ["cron(0 0 12 * * *)", "cron(0 12 * * ? *)"],
    ["cron(0 15 10 L * ?)", "cron(15 10 L * ? *)"],
    ["cron(0 0 10 * * ? 2027)", "cron(0 10 * * ? 2027)"],
  ])("%s begins with seconds, as other schedulers have them: the refusal gives %s", (expression, instead) => {
    expect(() => parseScheduleExpression(expression)).toThrow(InvalidScheduleError);
    expect(() => parseScheduleExpression(expression)).toThrow(`write ${instead}`);
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

  test.each([
    ["*/20 * * * * *", "cron(*/20 * * * ? *)"],
    ["cron(0 10 * * * *)", "cron(0 10 * * ? *)"],
    ["0 10 1 * * *", "cron(0 10 1 * ? *)"],
  ])("%s may begin with minutes: the refusal gives %s for that case", (expression, instead) => {
    expect(() => parseScheduleExpression(expression)).toThrow(
      `if its first field is minutes, write ${instead}; if its first field is seconds,`,
    );
    expect(() => parseScheduleExpression(instead)).not.toThrow();
  });

  test.each([
    ["0 3 * * *", "cron(0 3 * * ? *)"],
    ["cron(0 3 * * *)", "cron(0 3 * * ? *)"],
    ["cron(0 10 * * ?)", "cron(0 10 * * ? *)"],
    ["*/5 8-17 * * 1-5", "cron(*/5 8-17 ? * MON-FRI *)"],
    ["0 0 * * 0", "cron(0 0 ? * SUN *)"],
    ["0 0 * * 6-7", "cron(0 0 ? * SAT-SUN *)"],
    ["0 0 * * */2", "cron(0 0 ? * SUN,TUE,THU,SAT *)"],
    ["0 0 * * 1-5/2,sun", "cron(0 0 ? * MON,WED,FRI,SUN *)"],
    ["0 0 1 jan *", "cron(0 0 1 jan ? *)"],
  ])("%s is a crontab's: the refusal gives %s", (expression, instead) => {
    expect(() => parseScheduleExpression(expression)).toThrow(
      `if its five fields are those of a crontab, write ${instead}`,
    );
    expect(() => parseScheduleExpression(instead)).not.toThrow();
  });

  test.each([
    ["0 0 12 * * 1-5", "cron(0 12 ? * MON-FRI *)"],
    ["0 0 12 * * 5L", "cron(0 12 ? * FRIL *)"],
    ["0 0 12 * * 5#2", "cron(0 12 ? * FRI#2 *)"],
    ["0 0 12 ? * 0", "cron(0 12 ? * SUN *)"],
    ["0 0 0 1 1 *", "cron(0 0 1 1 ? *)"],
  ])("%s is Spring's, whose weekdays count from 0: the refusal gives %s", (expression, instead) => {
    expect(() => parseScheduleExpression(expression)).toThrow(`leave it out: write ${instead}`);
    expect(() => parseScheduleExpression(instead)).not.toThrow();
  });

  test.each([
    ["0 10 * * ? *", "cron(0 10 * * ? *)"],
    ["@daily", "cron(0 0 * * ? *)"],
    ["@Weekly", "cron(0 0 ? * SUN *)"],
    ["@yearly", "cron(0 0 1 1 ? *)"],
  ])("%s without cron( ) is given as %s", (expression, instead) => {
    expect(() => parseScheduleExpression(expression)).toThrow(`; write ${instead}`);
    expect(() => parseScheduleExpression(instead)).not.toThrow();
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
