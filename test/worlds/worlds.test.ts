import type { LeaseStore } from "@leasehold/client";
import { describe, expect, it } from "vitest";
import { kindOf } from "../support/lease-writes.ts";
import { simulations } from "./primitives/index.ts";
import { lock } from "./primitives/lock.ts";
import { ofWorlds } from "./primitives/lock-mistakes.ts";
import { present, type Release } from "./release.ts";
import { tellViolation } from "./report.ts";
import { type Outcome, type Plant, type Simulation, simulate } from "./simulation.ts";
import { addTo, type Tally } from "./world.ts";

/** A mistake that takes more worlds than this to show itself would slip through the tests. */
const mostWorlds = 1_000;
/** As many worlds are played whenever a person waits: one in so many of all. */
const oneIn = 10;

/** The first of these worlds in which something is wrong. */
async function firstViolation(
  simulation: Simulation,
  plant?: Plant,
  releases?: readonly [Release, Release],
): Promise<Outcome> {
  for (let seed = 1; seed <= mostWorlds; seed += 1) {
    const outcome = await simulate(simulation, seed, plant, releases && { releases });
    if (outcome.violation !== undefined) return outcome;
  }
  throw new Error(`no violation in ${mostWorlds} worlds`);
}

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
    const missing = mustHappen.filter((one) => {
      const [what, times] = typeof one === "string" ? [one, 1] : one;
      return (tally[what] ?? 0) < times;
    });
    expect(missing, JSON.stringify(tally)).toEqual([]);
  });

  it.each(Object.entries(mistakes))("sees through %s", { tags: ["long"] }, async (_, [plant, violation]) => {
    expect((await firstViolation(simulation, plant)).violation).toMatch(violation);
  });
});

it("the same seed tells the same story, of every primitive", async () => {
  for (const simulation of simulations) {
    const [first, second] = [await simulate(simulation, 7), await simulate(simulation, 7)];
    expect(second.timeline).toEqual(first.timeline);
    expect(first.timeline.length).toBeGreaterThan(10);
  }
});

it("hosts of two releases show what one of them does wrong beside the other", {
  tags: ["long"],
}, async () => {
  /** Its renewals keep the version of the grant. */
  class Earlier extends present.LeaseClient {
    constructor(options: ConstructorParameters<typeof present.LeaseClient>[0]) {
      super(options);
      const { store } = options as { readonly store: LeaseStore };
      const send = store.update.bind(store);
      const uncounted = (update: string): string =>
        update.replace("= :version", "= if_not_exists(#version, :version)");
      const update: LeaseStore["update"] = (write, call) =>
        send(kindOf(write) === "renew" ? { ...write, update: uncounted(write.update) } : write, call);
      Object.assign(store, { update });
    }
  }
  const { violation, tally } = await firstViolation(lock, undefined, [
    { ...present, LeaseClient: Earlier },
    present,
  ]);
  expect(violation).toMatch(/believes to hold|is stuck past its lease/);
  expect(tally["rolled forward"] ?? tally["rolled back"]).toBeGreaterThan(0);
});

it("a violation is told with its seed, the way to replay it and what led to it, and replays exactly", async () => {
  const [plant] = Object.values(ofWorlds)[0] ?? [];
  const first = await firstViolation(lock, plant);
  const again = await simulate(lock, first.seed, plant);
  expect(again.timeline).toEqual(first.timeline);
  expect(again.violation).toBe(first.violation);

  const story = tellViolation(first);
  expect(story).toContain(`npm run evidence -- worlds --primitive lock --seed ${first.seed}`);
  expect(story).toContain(first.violation);
  expect(story).toMatch(/\d+\.\d{3} s {2}p\d/);
});
