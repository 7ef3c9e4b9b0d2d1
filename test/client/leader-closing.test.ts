/** What becomes of a candidate whose client is closed. */
import { LeaseClient } from "@leasehold/client";
import { limits } from "@leasehold/client/schema";
import { ManualClock, settled } from "@leasehold/client/testing";
import { expect, it } from "vitest";
import { Leader } from "../../packages/client/src/entries/leader.ts";
import { ScriptedStore } from "../support/scripted-store.ts";

it.each([
  ["while another leads", 0],
  ["in the pause that follows the longest wait, too", limits.durationMs],
])("its campaign ends at once, %s, and leaves no timer", async (_, waitedMs) => {
  const [clock, store] = [new ManualClock(), new ScriptedStore()];
  const another = new LeaseClient({ store, clock, owner: "another" });
  await another.acquire("k", { leaseDurationMs: 60_000 });
  const client = new LeaseClient({ store, clock, owner: "candidate" });
  let ended: unknown;
  const campaign = new Leader(client, "k").campaign().catch((error: unknown) => {
    ended = error;
  });
  await settled();
  clock.freeze(waitedMs);
  // A successor, for a candidate that has waited so long.
  if (waitedMs > 0) await another.acquire("k", { leaseDurationMs: 60_000 });
  await clock.advance(1);
  await settled();
  expect(ended).toBeUndefined();
  await client.close();
  await settled();
  expect(ended).toMatchObject({ code: "LEASE_CLIENT_CLOSED" });
  await campaign;
  await another.close();
  expect(clock.pending).toBe(0);
});
