import { LeaseClient, LeaseLostError, LeaseUnavailableError } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/admin";
import { ManualClock, MemoryLeaseStore } from "@leasehold/client/testing";
import { expect, it } from "vitest";
import { JobRuns } from "../../packages/jobs/src/index.ts";
import { ScriptedStore } from "../support/scripted-store.ts";
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

it.each(["answer lost", "request lost", undefined] as const)(
  "a skip under a person's name leaves one trace, also of a slot whose attempt was lost: %s",
  async (fate) => {
    const clock = new ManualClock();
    const store = new ScriptedStore();
    const client = new LeaseClient({ store, clock, leaseDurationMs, clockSkewMs });
    const runs = new JobRuns(client, "report", { heartbeat: false });
    const slot = new Date(clock.now()).toISOString();
    const dead = runs.run(slot, () => new Promise(() => {}));
    dead.catch(() => undefined);
    await clock.advance(0);
    const skipped = () => runs.skip(slot, "holiday", { by: "alice" });
    await expect(skipped()).rejects.toThrow(LeaseUnavailableError);
    await clock.advance(watchedMs(leaseDurationMs));
    store.next(undefined, fate);
    const first = skipped();
    if (fate === undefined) await first;
    else await expect(first).rejects.toMatchObject({ mayHaveLanded: true });
    await skipped();
    expect(await runs.get(slot)).toMatchObject({ state: "skipped", lostAttempts: 1 });
    const traces: unknown[] = [];
    for await (const trace of new LeaseOperator(client, { by: "reader" }).audit()) traces.push(trace);
    expect(traces).toMatchObject([
      { key: "report", sortKey: `run#${slot}`, action: "skip", by: "alice", reason: "holiday" },
    ]);
    await expect(runs.skip(slot, "holiday", { by: "" })).rejects.toMatchObject({
      code: "LEASE_INVALID_OPTIONS",
    });
  },
);

it.each([
  ["its runs", { owner: "nightly" }, "nightly"],
  ["its client", {}, "pod-1"],
])("a skip is by the owner of %s", async (_, options, owner) => {
  const clock = new ManualClock();
  const client = new LeaseClient({ store: new MemoryLeaseStore(), clock, owner: "pod-1" });
  const runs = new JobRuns(client, "report", options);
  const slot = new Date(clock.now());
  await runs.skip(slot);
  expect(await runs.get(slot)).toMatchObject({ state: "skipped", owner });
});

it("a skip whose transaction was sent twice, and taken back in between, says that the slot was not skipped", async () => {
  const [clock, store] = [new ManualClock(), new ScriptedStore()];
  const runs = new JobRuns(new LeaseClient({ store, clock }), "report");
  const slot = new Date(clock.now()).toISOString();
  const transact = store.transact.bind(store);
  store.transact = async (...sent) => {
    await transact(...sent);
    await runs.takeBack({ slot, attempt: 0, endedAt: clock.now() });
    return await transact(...sent);
  };
  await expect(runs.skip(slot, "holiday", { by: "alice" })).rejects.toThrow(LeaseUnavailableError);
});
