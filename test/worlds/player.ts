/**
 * A thread that plays worlds: for each range of seeds that it is sent, what happened in them, or the first seed at which
 * something was wrong. The stories are left to a replay.
 */
import { parentPort, workerData } from "node:worker_threads";
import type { ReleaseBundle } from "../support/last-release.ts";
import { simulations } from "./primitives/index.ts";
import { besideRelease } from "./release.ts";
import { simulate } from "./simulation.ts";
import { addTo, type Tally } from "./world.ts";

/** What a thread plays. */
export interface Cast {
  /** The simulation's. */
  readonly name: string;
  /** The release that some of the hosts have. @default - all have the packages of now */
  readonly release?: ReleaseBundle | undefined;
}

/** Seeds to play, one after the other. */
export interface Seeds {
  readonly first: number;
  readonly count: number;
}

/** What became of some seeds. */
export interface Played {
  /** How many worlds were played. */
  readonly worlds: number;
  readonly virtualMs: number;
  readonly tally: Tally;
  /** The seed at which something was wrong; the later ones were not played. */
  readonly wrong: number | undefined;
}

// Every error that a simulation expects would look for its stack, and nobody reads it here.
Error.stackTraceLimit = 0;
const { name, release } = workerData as Cast;
const simulation = simulations.find((one) => one.name === name);
const parts = { isTold: false, ...(release && besideRelease(release)) };

parentPort?.on("message", async ({ first, count }: Seeds) => {
  if (simulation === undefined) throw new Error(`no simulation has the name ${name}`);
  const tally: Tally = {};
  let [worlds, virtualMs] = [0, 0];
  let wrong: number | undefined;
  for (let seed = first; seed < first + count && wrong === undefined; seed += 1) {
    const outcome = await simulate(simulation, seed, undefined, parts);
    worlds += 1;
    virtualMs += outcome.virtualMs;
    addTo(tally, outcome.tally);
    if (outcome.violation !== undefined) wrong = seed;
  }
  parentPort?.postMessage({ worlds, virtualMs, tally, wrong } satisfies Played);
});
