/** A few worlds of each simulation: what no unit test sees may still be seen by chance, at a cost that mutants can bear. */
import { describe, expect, it } from "vitest";
import { simulations } from "../worlds/primitives/index.ts";
import { tellViolation } from "../worlds/report.ts";
import { simulate } from "../worlds/simulation.ts";

describe.each(simulations)("a few worlds of $name", (simulation) => {
  it.each([1, 2, 3, 4])("seed %i", async (seed) => {
    const outcome = await simulate(simulation, seed);
    expect(outcome.violation === undefined ? "" : tellViolation(outcome)).toBe("");
  });
});
