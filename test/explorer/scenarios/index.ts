import type { AnyScenario } from "../scenario.ts";
import { group } from "./group.ts";
import { jobRuns } from "./job-runs.ts";
import { leader } from "./leader.ts";
import { lock } from "./lock.ts";
import { singleFlight } from "./single-flight.ts";
import { tasks } from "./tasks.ts";

export const scenarios: readonly AnyScenario[] = [
  ...lock,
  ...group,
  ...leader,
  ...jobRuns,
  ...tasks,
  ...singleFlight,
];
