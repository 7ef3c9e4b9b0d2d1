// Runs a property: few times with every test run, and many times with the long tests, for five seconds at most. Both have their
// seeds, so that a run finds what the last one found. LEASEHOLD_FUZZ_SEED=new looks elsewhere, and LEASEHOLD_FUZZ_RUNS says how
// often, whatever time it takes. A case that fails is printed by fast-check with its seed and its path: LEASEHOLD_FUZZ_SEED and
// LEASEHOLD_FUZZ_PATH repeat it.

import fc from "fast-check";
import { expect, test } from "vitest";
import { checkPrototypes } from "./hostile.ts";

const longMs = 5_000;
const hourMs = 3_600_000;
const quickSeed = 20_261_122;
const longSeed = 20_261_123;
const { LEASEHOLD_FUZZ_RUNS, LEASEHOLD_FUZZ_SEED, LEASEHOLD_FUZZ_PATH } = process.env;

/** How often a property is tried. */
export interface FuzzRuns {
  /** With every test run. @default 100 */
  readonly few?: number;
  /** With the long tests, unless LEASEHOLD_FUZZ_RUNS says otherwise. @default 5000 */
  readonly many?: number;
  /** Which cases have to be accepted: a property that refuses nearly all of its cases tests one check. */
  readonly accepted?: {
    /** The least share of all cases. */
    readonly share: number;
    /** Names of options; each is in an accepted case. */
    readonly options: readonly string[];
  };
}

/** Registers a property's two tests. Of an accepted case the property gives the names of its options, in an array. */
export function fuzz<Case>(
  name: string,
  cases: fc.Arbitrary<Case>,
  property: (given: Case) => unknown,
  { few = 100, many = 5_000, accepted }: FuzzRuns = {},
): void {
  const run = async (
    numRuns: number,
    seed: number,
    more: { readonly interruptAfterTimeLimit?: number } = {},
  ): Promise<void> => {
    const found = { all: 0, accepted: 0, options: new Set<string>() };
    await fc.assert(
      fc.asyncProperty(cases, async (given) => {
        const options = await property(given);
        checkPrototypes();
        found.all += 1;
        if (!Array.isArray(options)) return;
        found.accepted += 1;
        for (const option of options) found.options.add(option);
      }),
      {
        numRuns,
        ...more,
        ...(LEASEHOLD_FUZZ_SEED === "new" ? {} : { seed: Number(LEASEHOLD_FUZZ_SEED || seed) }),
        ...(LEASEHOLD_FUZZ_PATH ? { path: LEASEHOLD_FUZZ_PATH } : {}),
      },
    );
    // Few cases of a long run that a busy machine cuts off say nothing of shares: those of the short run are chosen.
    const enough = Math.min(numRuns, 10 * few);
    if (accepted === undefined || LEASEHOLD_FUZZ_PATH || found.all < enough) return;
    expect(found.accepted / found.all, "the share of accepted cases").toBeGreaterThanOrEqual(accepted.share);
    expect(accepted.options.filter((option) => !found.options.has(option))).toEqual([]);
  };
  test(name, () => run(few, quickSeed));
  test(`${name}, many times`, { tags: ["long"], timeout: hourMs }, () =>
    LEASEHOLD_FUZZ_RUNS
      ? run(Number(LEASEHOLD_FUZZ_RUNS), longSeed)
      : run(many, longSeed, { interruptAfterTimeLimit: longMs }),
  );
}
