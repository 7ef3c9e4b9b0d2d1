import type { LeaseEvent, ShortLeaseEvent } from "../events.ts";

/** One slow answer over a network can take this long. */
const shortestSensibleMs = 1_000;

/** Makes what tells, once, that a lease is shorter than one slow answer can be. */
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
