import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { together } from "@leasehold/client/together";
import { AgreeingStore, adoptMany } from "../../test/support/agreeing-store.ts";

/** What one renewal costs a process that holds so many leases, without the request. */
export interface HoldingCost {
  readonly leases: number;
  readonly microseconds: number;
  /** What one lease with its heartbeat keeps of the heap. */
  readonly bytes: number;
}

const counts = [1_000, 10_000, 100_000];
const leastRenewals = 100_000;
const heartbeat = 1_200_000;

/** Renews very many leases by their heartbeats, on a clock that is moved and a store that agrees to everything. */
export async function benchManyLeases(): Promise<HoldingCost[]> {
  const costs: HoldingCost[] = [];
  for (const leases of counts) {
    const clock = new ManualClock();
    let renewed = 0;
    const client = new LeaseClient({
      store: new AgreeingStore(),
      clock,
      renewals: together(),
      onEvent: ({ type }) => {
        if (type === "renewed") renewed += 1;
      },
    });
    const heapBefore = heapInUse();
    const held = await adoptMany(client, leases, { leaseDurationMs: 3 * heartbeat, heartbeat });
    await clock.advance(heartbeat);
    const bytes = (heapInUse() - heapBefore) / held.length;
    renewed = 0;
    const before = process.cpuUsage();
    while (renewed < leastRenewals) await clock.advance(heartbeat);
    const { user, system } = process.cpuUsage(before);
    costs.push({ leases, microseconds: (user + system) / renewed, bytes });
  }
  return costs;
}

/** After a collection of garbage. */
function heapInUse(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  return process.memoryUsage().heapUsed;
}
