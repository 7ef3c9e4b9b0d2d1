import type { AnyScenario } from "../scenario.ts";
import { checkIn } from "./check-in.ts";
import { fairLock } from "./fair-lock.ts";
import { group } from "./group.ts";
import { jobRuns } from "./job-runs.ts";
import { leader } from "./leader.ts";
import { lock } from "./lock.ts";
import { seats } from "./seats.ts";
import { singleFlight } from "./single-flight.ts";
import { tasks } from "./tasks.ts";

export const scenarios: readonly AnyScenario[] = [
  ...lock,
  ...fairLock,
  ...checkIn,
  ...seats,
  ...group,
  ...leader,
  ...jobRuns,
  ...tasks,
  ...singleFlight,
];
