import { MemoryLeaseStore } from "@leasehold/client/testing";
import { describe } from "vitest";
import { jobRunsContract } from "../contract/job-runs-contract.ts";
import { serialTasksContract } from "../contract/serial-tasks-contract.ts";
import { tasksContract } from "../contract/tasks-contract.ts";

describe.each([
  ["job runs", jobRunsContract],
  ["tasks", tasksContract],
  ["tasks with serial keys", serialTasksContract],
])("%s in memory", (_, contract) => {
  const store = new MemoryLeaseStore();
  contract(() => ({ store }));
});
