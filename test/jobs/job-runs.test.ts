import { MemoryLeaseStore } from "@leasehold/client/testing";
import { describe } from "vitest";
import { jobRunsContract } from "../contract/job-runs-contract.ts";

describe("job runs in memory", () => {
  const store = new MemoryLeaseStore();
  jobRunsContract(() => ({ store }));
});
