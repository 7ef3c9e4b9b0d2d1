import type { LeaseEvent, ShortLeaseEvent } from "../events.ts";

/** The possible duration of one slow answer over a network. */
const shortestSensibleMs = 1_000;

/** Returns a function that publishes `shortLease`, once, for a lease that is shorter than one slow answer can be. */
export function shortLeaseWatch(
  publish: (event: LeaseEvent) => void,
): (lease: Omit<ShortLeaseEvent, "type">) => void {
  let isTold = false;
  return ({ key, sortKey, owner, leaseDurationMs }) => {
    if (isTold || leaseDurationMs >= shortestSensibleMs) return;
    isTold = true;
    publish({ type: "shortLease", key, sortKey, owner, leaseDurationMs });
  };
}
