import { MemoryLeaseStore } from "@leasehold/client/testing";
import { describe } from "vitest";
import { tasksContract } from "../contract/tasks-contract.ts";

describe("tasks in memory", () => {
  const store = new MemoryLeaseStore();
  tasksContract(() => ({ store }));
});
