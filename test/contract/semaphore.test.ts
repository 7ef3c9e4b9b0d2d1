import { MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, describe } from "vitest";
import { semaphoreContract } from "./semaphore-contract.ts";

describe("semaphores in memory", () => {
  let store: MemoryLeaseStore;
  beforeEach(() => {
    store = new MemoryLeaseStore();
  });
  semaphoreContract(() => ({ store }));
});
