import { MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, describe } from "vitest";
import { readWriteContract } from "./read-write-contract.ts";

describe("read-write locks in memory", () => {
  let store: MemoryLeaseStore;
  beforeEach(() => {
    store = new MemoryLeaseStore();
  });
  readWriteContract(() => ({ store }));
});
