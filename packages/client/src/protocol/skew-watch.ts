import type { LeaseEvent } from "../events.ts";
import type { Moment } from "../time/clock.ts";
import type { ServiceClock } from "../time/service-clock.ts";

const quietMs = 60_000;

/**
 * Makes what looks, at a moment, at the service's answers so far, and tells that this machine's wall clock and the service's are too
 * far apart: at most once a minute.
 */
export function skewWatch(
  clock: ServiceClock,
  clockSkewMs: number,
  publish: (event: LeaseEvent) => void,
): (now: Moment) => void {
  let quietUntil = Number.NEGATIVE_INFINITY;
  return (now) => {
    const ahead = clock.ahead(now);
    if (ahead === undefined) return;
    const { minMs: offsetMinMs, maxMs: offsetMaxMs } = ahead;
    if (offsetMinMs <= clockSkewMs && offsetMaxMs >= -clockSkewMs) return;
    if (now.monotonic < quietUntil) return;
    quietUntil = now.monotonic + quietMs;
    publish({ type: "skew", offsetMinMs, offsetMaxMs, clockSkewMs });
  };
}
