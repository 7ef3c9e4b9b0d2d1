import { describe, expect, it } from "vitest";
import { simulations } from "./primitives/index.ts";
import { tellViolation } from "./report.ts";
import { type Simulation, simulate } from "./simulation.ts";
import { addTo, type Tally } from "./world.ts";

/** A mistake that takes more worlds than this to show itself would slip through the tests. */
const mostWorlds = 1_000;
/** As many worlds are played whenever a person waits: one in so many of all. */
const oneIn = 10;

/** Plays the worlds of these seeds, and tells how often what happened in them. */
async function playAll(simulation: Simulation, first: number, last: number): Promise<Tally> {
  const tally: Tally = {};
  for (let seed = first; seed <= last; seed += 1) {
    const outcome = await simulate(simulation, seed);
    if (outcome.violation !== undefined) expect.fail(`\n${tellViolation(outcome)}`);
    addTo(tally, outcome.tally);
  }
  return tally;
}

describe.each(simulations)("the simulation $name", (simulation) => {
  const { claim, worlds, mustHappen, mistakes } = simulation;
  const few = Math.ceil(worlds / oneIn);

  it(`holds in ${few} worlds: ${claim}`, async () => {
    await playAll(simulation, 1, few);
  });

  it(`holds in ${worlds} more, where all that can happen happens`, { tags: ["long"] }, async () => {
    const tally = await playAll(simulation, few + 1, few + worlds);
    const atLeast = Array.isArray(mustHappen)
      ? mustHappen.map((what) => [what, 1] as const)
      : Object.entries(mustHappen);
    const missing = atLeast.filter(([what, times]) => (tally[what] ?? 0) < times);
    expect(missing, JSON.stringify(tally)).toEqual([]);
  });

  it.each(mistakes)("sees through $what", { tags: ["long"] }, async ({ violation, ...planted }) => {
    for (let seed = 1; seed <= mostWorlds; seed += 1) {
      const outcome = await simulate(simulation, seed, planted);
      if (outcome.violation === undefined) continue;
      expect(outcome.violation).toMatch(violation);
      return;
    }
    throw new Error(`no violation in ${mostWorlds} worlds`);
  });
});

it("the same seed tells the same story, of every primitive", async () => {
  for (const simulation of simulations) {
    const [first, second] = [await simulate(simulation, 7), await simulate(simulation, 7)];
    expect(second.timeline).toEqual(first.timeline);
    expect(first.timeline.length).toBeGreaterThan(10);
  }
});
