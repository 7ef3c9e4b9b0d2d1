import { MemoryLeaseStore } from "@leasehold/client/testing";
import { beforeEach, describe } from "vitest";
import { fairLockContract } from "./fair-lock-contract.ts";
import { groupContract } from "./group-contract.ts";
import { leaderContract } from "./leader-contract.ts";
import { leaseContract } from "./lease-contract.ts";
import { operatorContract } from "./operator-contract.ts";
import { readWriteContract } from "./read-write-contract.ts";
import { semaphoreContract } from "./semaphore-contract.ts";
import { singleFlightContract } from "./single-flight-contract.ts";
import { storeContract } from "./store-contract.ts";

let store: MemoryLeaseStore;
beforeEach(() => {
  store = new MemoryLeaseStore();
});

describe.each([
  ["leases", leaseContract],
  ["groups", groupContract],
  ["elections", leaderContract],
  ["fair locks", fairLockContract],
  ["semaphores", semaphoreContract],
  ["read-write locks", readWriteContract],
  ["operators", operatorContract],
  ["single flight", singleFlightContract],
])("%s in memory", (_, contract) => contract(() => ({ store })));

describe("a store in memory", () => storeContract(() => store));
