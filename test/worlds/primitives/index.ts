import type { Simulation } from "../simulation.ts";
import { checkIn } from "./check-in.ts";
import { fairLock } from "./fair-lock.ts";
import { group } from "./group.ts";
import { jobRuns } from "./job-runs.ts";
import { keptWorkflows } from "./kept-workflows.ts";
import { leader } from "./leader.ts";
import { lock } from "./lock.ts";
import { seats } from "./seats.ts";
import { singleFlight } from "./single-flight.ts";
import { tasks } from "./tasks.ts";

export const simulations: readonly Simulation[] = [
  lock,
  group,
  leader,
  fairLock,
  checkIn,
  ...seats,
  singleFlight,
  jobRuns,
  keptWorkflows,
  ...tasks,
];

/** Those whose hosts may have several releases: workflows have the packages of now. */
export const upgrades: readonly Simulation[] = simulations.filter((one) => one !== keptWorkflows);
