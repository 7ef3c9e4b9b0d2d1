import { MemoryLeaseStore } from "@leasehold/client/testing";
import { describe } from "vitest";
import { leaseContract } from "./lease-contract.ts";
import { storeContract } from "./store-contract.ts";

describe("leases in memory", () => {
  const store = new MemoryLeaseStore();
  leaseContract(() => ({ store }));
  storeContract(() => store);
});
