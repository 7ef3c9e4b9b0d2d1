import { MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, describe } from "vitest";
import { operatorContract } from "./operator-contract.ts";

describe("operators in memory", () => {
  let store: MemoryLeaseStore;
  beforeEach(() => {
    store = new MemoryLeaseStore();
  });
  operatorContract(() => ({ store }));
});
