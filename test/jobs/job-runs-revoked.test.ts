/** What the caller of a run may rely on when the run was revoked. */
import { LeaseClient, type LeaseStore } from "@leasehold/client";
import { ManualClock, MemoryLeaseStore, settled } from "@leasehold/client/testing";
import { JobRuns } from "@leasehold/jobs";
import { expect, test } from "vitest";
import { adminOf } from "../support/admin.ts";

const job = "report";
const slot = "2025-12-31T23:00:00.000Z";

/** A table far away: its answers come when the test says so. */
class SlowStore extends MemoryLeaseStore {
  gate: Promise<void> | undefined;

  override async update(...args: Parameters<LeaseStore["update"]>): ReturnType<LeaseStore["update"]> {
    await this.gate;
    return await super.update(...args);
  }
}

test("a revoked run rejects when its outcome is recorded, so that its caller may end the process", async () => {
  const [clock, store] = [new ManualClock(), new SlowStore()];
  const client = new LeaseClient({ store, clock, leaseDurationMs: 30_000 });
  const runs = new JobRuns(client, job);
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  let ended: unknown;
  const run = runs
    .run(slot, async ({ lease }) => {
      await adminOf(client).requestRevocation(job, {
        sortKey: lease.sortKey,
        token: lease.token,
        reason: "deploy",
      });
      await lease.renew().catch(() => undefined);
      store.gate = gate;
    })
    .catch((error: unknown) => {
      ended = error;
    });
  await settled();
  await settled();
  expect(ended).toBeUndefined();
  expect(await runs.get(slot)).toMatchObject({ state: "running" });
  open();
  await run;
  expect(ended).toMatchObject({ code: "LEASE_LOST", reason: "revoked" });
  expect(await runs.get(slot)).toMatchObject({ state: "failed" });
});
