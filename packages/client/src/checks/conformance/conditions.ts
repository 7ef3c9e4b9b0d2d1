/** Each form of a condition: when it must hold, and when not. */
import assert from "node:assert/strict";
import type { Item } from "../../base/store.ts";
import { type ConformanceCheck, defineCheck } from "./check.ts";

/** The item of the conditions. */
const item: Item = { n: 9, m: 10, text: "b", other: "b", digits: "9" };

export const conditionChecks: readonly ConformanceCheck[] = [
  conditions("attribute_exists and attribute_not_exists tell whether an attribute is there", {
    holding: ["attribute_exists(#n)", "attribute_not_exists(#gone)"],
    failing: ["attribute_exists(#gone)", "attribute_not_exists(#n)"],
  }),
  conditions("= holds of the same value and type alone, and never of a missing attribute", {
    holding: ["#n = 9", '#text = "b"'],
    failing: ["#n = 10", '#text = "B"', "#digits = 9", '#n = "9"', '#gone = ""', "#gone = 0"],
  }),
  conditions("<> holds of every other value, of another type, and of a missing attribute", {
    holding: ["#n <> 10", '#text <> "c"', "#digits <> 9", '#gone <> "b"'],
    failing: ["#n <> 9", '#text <> "b"'],
  }),
  conditions("numbers are compared by their value, not by their digits", {
    holding: ["#n < 10", "#n <= 9", "#m >= 10"],
    failing: ["#n < 9", "#n <= 8", "#m >= 11"],
  }),
  conditions("texts are compared by their bytes", {
    holding: ['#text < "ba"', '#text <= "b"', '#text >= "b"'],
    failing: ['#text < "b"', '#text < "B"'],
  }),
  conditions("what is missing, or of another type, is neither less nor greater", {
    holding: [],
    failing: ["#gone < 1", '#gone <= "a"', '#gone >= ""', "#digits < 100", '#n <= "z"', '#n >= "0"'],
  }),
  conditions("an attribute is compared with another one of the same item", {
    holding: ["#text = #other", "#n < #m", "#gone <> #n"],
    failing: ["#n = #m", "#m < #n", "#n = #gone"],
  }),
  conditions("OR takes one that holds", {
    holding: ["(#n = 9 OR #m = 0)", "(#n = 0 OR #m = 10)"],
    failing: ["(#n = 0 OR #m = 0)"],
  }),
  conditions("AND takes all of them, beside OR in parentheses", {
    holding: ["#n = 9 AND #m = 10 AND attribute_not_exists(#gone)", '(#n = 0 OR #m = 10) AND #text = "b"'],
    failing: [
      "#n = 9 AND #m = 10 AND attribute_exists(#gone)",
      "#n = 0 AND #m = 10",
      '(#n = 9 OR #m = 10) AND #text = "c"',
      '#text = "c" AND (#n = 0 OR #m = 10)',
    ],
  }),
];

/** A check of conditions: each is tested on one item. */
function conditions(
  name: string,
  { holding, failing }: { readonly holding: readonly string[]; readonly failing: readonly string[] },
): ConformanceCheck {
  return defineCheck("conditions", name, async (table) => {
    await table.put("item", item);
    const cases = [
      ...holding.map((when) => [when, true] as const),
      ...failing.map((when) => [when, false] as const),
    ];
    for (const [when, holds] of cases) {
      const { applied } = await table.write("item", { set: "#seen = 1", when });
      assert.equal(applied, holds, `${when} ${holds ? "holds" : "does not hold"}`);
    }
  });
}
