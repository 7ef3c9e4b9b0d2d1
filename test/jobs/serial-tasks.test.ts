import { MemoryLeaseStore } from "@leasehold/client/testing";
import { describe } from "vitest";
import { serialTasksContract } from "../contract/serial-tasks-contract.ts";

describe("tasks with serial keys in memory", () => {
  const store = new MemoryLeaseStore();
  serialTasksContract(() => ({ store }));
});
