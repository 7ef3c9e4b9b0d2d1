import { parseScheduleExpression } from "@leasehold/jobs";
import { Cron } from "croner";
import fc from "fast-check";
import { expect, test } from "vitest";

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

test("finds the times that an independent implementation finds", () => {
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
