/** Each form of a condition: when it must hold, and when not. */
import assert from "node:assert/strict";
import type { Item } from "../../base/store.ts";
import { type ConformanceCheck, defineCheck } from "./check.ts";
import type { Condition } from "./write.ts";

/** The item of the conditions. */
const item: Item = { n: 9, m: 10, text: "b", other: "b", digits: "9" };

export const conditionChecks: readonly ConformanceCheck[] = [
  condition("attribute_exists and attribute_not_exists tell whether an attribute is there", {
    holding: [
      ["n", "exists"],
      ["gone", "missing"],
    ],
    failing: [
      ["gone", "exists"],
      ["n", "missing"],
    ],
  }),
  condition("= holds of the same value and type alone, and never of a missing attribute", {
    holding: [
      ["n", "=", 9],
      ["text", "=", "b"],
    ],
    failing: [
      ["n", "=", 10],
      ["text", "=", "B"],
      ["digits", "=", 9],
      ["n", "=", "9"],
      ["gone", "=", ""],
      ["gone", "=", 0],
    ],
  }),
  condition("<> holds of every other value, of another type, and of a missing attribute", {
    holding: [
      ["n", "<>", 10],
      ["text", "<>", "c"],
      ["digits", "<>", 9],
      ["gone", "<>", "b"],
    ],
    failing: [
      ["n", "<>", 9],
      ["text", "<>", "b"],
    ],
  }),
  condition("numbers are compared by their value, not by their digits", {
    holding: [
      ["n", "<", 10],
      ["n", "<=", 9],
      ["m", ">=", 10],
    ],
    failing: [
      ["n", "<", 9],
      ["n", "<=", 8],
      ["m", ">=", 11],
    ],
  }),
  condition("texts are compared by their bytes", {
    holding: [
      ["text", "<", "ba"],
      ["text", "<=", "b"],
      ["text", ">=", "b"],
    ],
    failing: [
      ["text", "<", "b"],
      ["text", "<", "B"],
    ],
  }),
  condition("what is missing, or of another type, is neither less nor greater", {
    holding: [],
    failing: [
      ["gone", "<", 1],
      ["gone", "<=", "a"],
      ["gone", ">=", ""],
      ["digits", "<", 100],
      ["n", "<=", "z"],
      ["n", ">=", "0"],
    ],
  }),
  condition("an attribute is compared with another one of the same item", {
    holding: [
      ["text", "=", { attribute: "other" }],
      ["n", "<", { attribute: "m" }],
      ["gone", "<>", { attribute: "n" }],
    ],
    failing: [
      ["n", "=", { attribute: "m" }],
      ["m", "<", { attribute: "n" }],
      ["n", "=", { attribute: "gone" }],
    ],
  }),
  condition("OR takes one that holds", {
    holding: [
      {
        anyOf: [
          ["n", "=", 9],
          ["m", "=", 0],
        ],
      },
      {
        anyOf: [
          ["n", "=", 0],
          ["m", "=", 10],
        ],
      },
    ],
    failing: [
      {
        anyOf: [
          ["n", "=", 0],
          ["m", "=", 0],
        ],
      },
    ],
  }),
  defineCheck("conditions", "AND takes all of them, beside OR in parentheses", async (table) => {
    await table.put("item", item);
    const cases: readonly (readonly [boolean, readonly Condition[]])[] = [
      [
        true,
        [
          ["n", "=", 9],
          ["m", "=", 10],
          ["gone", "missing"],
        ],
      ],
      [
        false,
        [
          ["n", "=", 9],
          ["m", "=", 10],
          ["gone", "exists"],
        ],
      ],
      [
        false,
        [
          ["n", "=", 0],
          ["m", "=", 10],
        ],
      ],
      [
        true,
        [
          {
            anyOf: [
              ["n", "=", 0],
              ["m", "=", 10],
            ],
          },
          ["text", "=", "b"],
        ],
      ],
      [
        false,
        [
          {
            anyOf: [
              ["n", "=", 9],
              ["m", "=", 10],
            ],
          },
          ["text", "=", "c"],
        ],
      ],
      [
        false,
        [
          ["text", "=", "c"],
          {
            anyOf: [
              ["n", "=", 0],
              ["m", "=", 10],
            ],
          },
        ],
      ],
    ];
    for (const [holds, insist] of cases) {
      const { applied } = await table.write("item", { set: { seen: 1 }, insist });
      assert.equal(applied, holds, `${JSON.stringify(insist)} ${holds ? "holds" : "does not hold"}`);
    }
  }),
];

/** A check of single conditions: each is tested on one item. */
function condition(
  name: string,
  { holding, failing }: { readonly holding: readonly Condition[]; readonly failing: readonly Condition[] },
): ConformanceCheck {
  return defineCheck("conditions", name, async (table) => {
    await table.put("item", item);
    for (const [holds, conditions] of [
      [true, holding],
      [false, failing],
    ] as const) {
      for (const one of conditions) {
        const { applied } = await table.write("item", { set: { seen: 1 }, insist: [one] });
        assert.equal(applied, holds, `${JSON.stringify(one)} ${holds ? "holds" : "does not hold"}`);
      }
    }
  });
}
