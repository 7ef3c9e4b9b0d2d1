import type { Clock, LeaseStore } from "@leasehold/client";
import { fairLockContract } from "../contract/fair-lock-contract.ts";
import { groupContract } from "../contract/group-contract.ts";
import { jobRunsContract } from "../contract/job-runs-contract.ts";
import { leaderContract } from "../contract/leader-contract.ts";
import { readWriteContract } from "../contract/read-write-contract.ts";
import { semaphoreContract } from "../contract/semaphore-contract.ts";
import { serialTasksContract } from "../contract/serial-tasks-contract.ts";
import { singleFlightContract } from "../contract/single-flight-contract.ts";
import { tasksContract } from "../contract/tasks-contract.ts";

/** The contracts of the primitives, for a table of any kind. */
export const primitiveContracts = {
  election: leaderContract,
  "fair lock": fairLockContract,
  group: groupContract,
  semaphore: semaphoreContract,
  "read-write lock": readWriteContract,
  "single flight": singleFlightContract,
  "job runs": jobRunsContract,
  tasks: tasksContract,
  "serial tasks": serialTasksContract,
} satisfies Record<string, (place: (clock: Clock) => { readonly store: LeaseStore }) => void>;
