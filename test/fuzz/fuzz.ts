// Runs a property: few times with every test run, and many times with the long tests, for half a minute at most. Both have their
// seeds, so that a run finds what the last one found. LEASEHOLD_FUZZ_SEED=new looks elsewhere, and LEASEHOLD_FUZZ_RUNS says how
// often, whatever time it takes. A case that fails is printed by fast-check with its seed and its path: LEASEHOLD_FUZZ_SEED and
// LEASEHOLD_FUZZ_PATH repeat it.

import fc from "fast-check";
import { test } from "vitest";
import { checkPrototypes } from "./hostile.ts";

const longMs = 30_000;
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
}

/** Registers a property's two tests. */
export function fuzz<Case>(
  name: string,
  cases: fc.Arbitrary<Case>,
  property: (given: Case) => Promise<void> | void,
  { few = 100, many = 5_000 }: FuzzRuns = {},
): void {
  const run = (numRuns: number, seed: number, more: { readonly interruptAfterTimeLimit?: number } = {}) =>
    fc.assert(
      fc.asyncProperty(cases, async (given) => {
        await property(given);
        checkPrototypes();
      }),
      {
        numRuns,
        ...more,
        ...(LEASEHOLD_FUZZ_SEED === "new" ? {} : { seed: Number(LEASEHOLD_FUZZ_SEED || seed) }),
        ...(LEASEHOLD_FUZZ_PATH ? { path: LEASEHOLD_FUZZ_PATH } : {}),
      },
    );
  test(name, () => run(few, quickSeed));
  test(`${name}, many times`, { tags: ["long"], timeout: hourMs }, () =>
    LEASEHOLD_FUZZ_RUNS
      ? run(Number(LEASEHOLD_FUZZ_RUNS), longSeed)
      : run(many, longSeed, { interruptAfterTimeLimit: longMs }),
  );
}
