import type { LeaseEvent } from "../events.ts";
import type { ServiceClock } from "../time/service-clock.ts";

const quietMs = 60_000;

/**
 * Makes what looks at the service's answers so far, and tells that this machine's wall clock and the service's are too
 * far apart: at most once a minute.
 */
export function skewWatch(
  clock: ServiceClock,
  clockSkewMs: number,
  publish: (event: LeaseEvent) => void,
): () => void {
  let quietUntil = Number.NEGATIVE_INFINITY;
  return () => {
    const ahead = clock.ahead();
    if (ahead === undefined) return;
    const { minMs: offsetMinMs, maxMs: offsetMaxMs } = ahead;
    if (offsetMinMs <= clockSkewMs && offsetMaxMs >= -clockSkewMs) return;
    const now = clock.monotonic();
    if (now < quietUntil) return;
    quietUntil = now + quietMs;
    publish({ type: "skew", offsetMinMs, offsetMaxMs, clockSkewMs });
  };
}
