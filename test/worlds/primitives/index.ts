import type { Simulation } from "../simulation.ts";
import { checkIn } from "./check-in.ts";
import { crowdedReaders } from "./crowded-readers.ts";
import { durableLeases } from "./durable-leases.ts";
import { fairLock } from "./fair-lock.ts";
import { fairLockDeaths } from "./fair-lock-deaths.ts";
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
  fairLockDeaths,
  checkIn,
  ...seats,
  crowdedReaders,
  ...singleFlight,
  jobRuns,
  keptWorkflows,
  waitingWorkflows,
  guardedWorkflows,
  durableLeases,
  ...tasks,
];

/** What 1.0.0-rc.1 does not have. */
const newerThanCandidate: readonly string[] = ["single-flight:ahead", "tasks:serial", "tasks:rate"];

/**
 * Those whose hosts may have several releases. Not `fair-lock:deaths`, which is about the order alone: 1.0.0-rc.1 does not
 * keep it there. Workflows and durable functions have the packages of now.
 */
export const upgrades: readonly Simulation[] = [
  lock,
  group,
  leader,
  fairLock,
  checkIn,
  ...seats,
  crowdedReaders,
  ...singleFlight,
  jobRuns,
  ...tasks,
].filter(({ name }) => !newerThanCandidate.includes(name));
