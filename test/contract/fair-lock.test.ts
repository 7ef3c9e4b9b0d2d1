import { MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, describe } from "vitest";
import { fairLockContract } from "./fair-lock-contract.ts";

describe("fair locks in memory", () => {
  let store: MemoryLeaseStore;
  beforeEach(() => {
    store = new MemoryLeaseStore();
  });
  fairLockContract(() => ({ store }));
});
