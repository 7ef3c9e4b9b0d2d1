import { LeaseClient } from "@leasehold/client";
import { ManualClock } from "@leasehold/client/testing";
import { AgreeingStore, adoptMany } from "../test/support/agreeing-store.ts";

/** What one renewal costs a process that holds so many leases, without the request. */
export interface HoldingCost {
  readonly leases: number;
  readonly microseconds: number;
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
      onEvent: ({ type }) => {
        if (type === "renewed") renewed += 1;
      },
    });
    await adoptMany(client, leases, { leaseDurationMs: 3 * heartbeat, heartbeat });
    await clock.advance(heartbeat);
    renewed = 0;
    const before = process.cpuUsage();
    while (renewed < leastRenewals) await clock.advance(heartbeat);
    const { user, system } = process.cpuUsage(before);
    costs.push({ leases, microseconds: (user + system) / renewed });
  }
  return costs;
}
