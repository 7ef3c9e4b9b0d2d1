import type { LeaseEvent } from "../events.ts";
import type { Moment } from "../time/clock.ts";
import type { ServiceClock } from "../time/service-clock.ts";

const quietMs = 60_000;

/**
 * Returns a function to call after each answer. It publishes `skew`, at most once a minute, if this machine's wall
 * clock and the service's are too far apart. It publishes `timeUnknown`, once, if no answer tells the service's time.
 */
export function timeWatch(
  clock: ServiceClock,
  clockSkewMs: number,
  publish: (event: LeaseEvent) => void,
): (now: Moment) => void {
  let quietUntil = Number.NEGATIVE_INFINITY;
  let hasToldUnknown = false;
  return (now) => {
    if (clock.isUntold && !hasToldUnknown) {
      hasToldUnknown = true;
      publish({ type: "timeUnknown" });
    }
    const ahead = clock.ahead(now);
    if (ahead === undefined) return;
    const { minMs: offsetMinMs, maxMs: offsetMaxMs } = ahead;
    if (offsetMinMs <= clockSkewMs && offsetMaxMs >= -clockSkewMs) return;
    if (now.monotonic < quietUntil) return;
    quietUntil = now.monotonic + quietMs;
    publish({ type: "skew", offsetMinMs, offsetMaxMs, clockSkewMs });
  };
}
