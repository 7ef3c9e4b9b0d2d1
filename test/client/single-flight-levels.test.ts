import { MemoryLeaseStore } from "@leasehold/client/testing";
import { singleFlightContract } from "../contract/single-flight-contract.ts";

const store = new MemoryLeaseStore();
singleFlightContract(() => ({ store }));
