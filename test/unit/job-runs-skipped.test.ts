import { LeaseClient, LeaseLostError, LeaseUnavailableError } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { expect, it } from "vitest";
import { JobRuns } from "../../packages/jobs/src/index.ts";
import { watchedMs } from "../support/watching.ts";

const leaseDurationMs = 5_000;
const clockSkewMs = 500;

it("a work that ends after its slot was skipped over its head is told that its lease is lost, not that it succeeded", async () => {
  const clock = new ManualClock();
  const store = new MemoryLeaseStore();
  const runsOf = (owner: string): JobRuns => {
    const client = new LeaseClient({ store, clock, owner, leaseDurationMs, clockSkewMs });
    return new JobRuns(client, "report", { heartbeat: false });
  };
  const slot = new Date(clock.now()).toISOString();
  const ends = Promise.withResolvers<void>();
  const slow = runsOf("slow").run(slot, () => ends.promise);
  await clock.advance(0);
  const impatient = runsOf("impatient");
  await expect(impatient.skip(slot)).rejects.toThrow(LeaseUnavailableError);
  await clock.advance(watchedMs(leaseDurationMs));
  await impatient.skip(slot, "took too long");

  ends.resolve();
  await expect(slow).rejects.toThrow(LeaseLostError);
  expect(await impatient.get(slot)).toMatchObject({ state: "skipped", lostAttempts: 1 });
});
