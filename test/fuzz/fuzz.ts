// Runs a property: few times under one seed with every test run, and many times under a new seed with the long tests. A case
// that fails is printed by fast-check with its seed and its path: LEASEHOLD_FUZZ_SEED and LEASEHOLD_FUZZ_PATH repeat it.

import fc from "fast-check";
import { test } from "vitest";
import { checkPrototypes } from "./hostile.ts";

const quickSeed = 20_261_122;
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
  const run = (numRuns: number, seed?: number): Promise<void> =>
    fc.assert(
      fc.asyncProperty(cases, async (given) => {
        await property(given);
        checkPrototypes();
      }),
      {
        numRuns,
        ...(LEASEHOLD_FUZZ_SEED ? { seed: Number(LEASEHOLD_FUZZ_SEED) } : seed === undefined ? {} : { seed }),
        ...(LEASEHOLD_FUZZ_PATH ? { path: LEASEHOLD_FUZZ_PATH } : {}),
      },
    );
  test(name, () => run(few, quickSeed));
  test(`${name}, many times`, { tags: ["long"] }, () => run(Number(LEASEHOLD_FUZZ_RUNS ?? many)));
}
