import type { Simulation } from "../simulation.ts";
import { checkIn } from "./check-in.ts";
import { fairLock } from "./fair-lock.ts";
import { group } from "./group.ts";
import { jobRuns } from "./job-runs.ts";
import { guardedWorkflows, keptWorkflows, waitingWorkflows } from "./kept-workflows.ts";
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
  ...singleFlight,
  jobRuns,
  keptWorkflows,
  waitingWorkflows,
  guardedWorkflows,
  ...tasks,
];

/** Workflows have the packages of now. */
const ofOneRelease: readonly Simulation[] = [keptWorkflows, waitingWorkflows, guardedWorkflows];

/** Those whose hosts may have several releases. */
export const upgrades: readonly Simulation[] = simulations.filter((one) => !ofOneRelease.includes(one));
