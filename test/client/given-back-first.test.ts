/** A call that fails has given back what it held, and the service has confirmed that, before its caller hears of it. */
import { LeaseClient } from "@leasehold/client";
import { acquireAll } from "@leasehold/client/group";
import { Leader } from "@leasehold/client/leader";
import { SingleFlight } from "@leasehold/client/single-flight";
import { ManualClock, settled } from "@leasehold/client/testing";
import { JobRuns } from "@leasehold/jobs";
import { expect, it } from "vitest";
import { failureOf } from "../support/failure-of.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

const again = { owner: "me", reentrant: true } as const;
const fail = (): never => {
  throw new Error("broken");
};

it.each<[string, (client: LeaseClient, clock: ManualClock) => Promise<unknown>]>([
  ["work under a lock", (client) => client.withLease("k", fail)],
  ["a leader's work", (client) => new Leader(client, "k").lead(fail)],
  [
    "a run, whose outcome is in the table as well",
    (client, clock) => new JobRuns(client, "k").run(new Date(clock.now()), fail),
  ],
  [
    "a computation, whose failure is kept as well",
    (client) =>
      new SingleFlight(client, { freshForMs: 60_000, failureForMs: 60_000 }).getOrCompute("k", {
        compute: fail,
      }),
  ],
  [
    "a group that has shared a lock, whose other handle was released meanwhile",
    async (client, clock) => {
      const shared = await client.acquire("k", again);
      await client.acquire("l", { owner: "another" });
      const group = acquireAll(client, ["k", "l"], { ...again, waitMs: 1_000 });
      await settled();
      await shared.release();
      void clock.advance(1_000);
      return await group;
    },
  ],
  [
    "a group that has shared a lock, whose lease has ended meanwhile",
    async (client, clock) => {
      await client.acquire("k", { ...again, leaseDurationMs: 5_000 });
      const other = await client.acquire("l", { owner: "another" });
      const group = acquireAll(client, ["k", "l"], { ...again, waitMs: 60_000 });
      await clock.advance(6_000);
      await other.release();
      void clock.advance(60_000);
      return await group;
    },
  ],
])("%s", async (_, failing) => {
  const clock = new ManualClock();
  const store = new ScriptedStore();
  const underWay = new Set<object>();
  let mostAtOnce = 0;
  const update = store.update.bind(store);
  store.update = async (request, call) => {
    underWay.add(request);
    mostAtOnce = Math.max(mostAtOnce, underWay.size);
    const result = await update(request, call);
    await settled();
    underWay.delete(request);
    return result;
  };
  const client = new LeaseClient({ store, clock, leaseDurationMs: 60_000 });
  expect(await failureOf(failing(client, clock))).toBeInstanceOf(Error);
  // Each write is sent when the one before it is confirmed, and the last one is confirmed as well.
  expect([mostAtOnce, underWay.size]).toEqual([1, 0]);
});
