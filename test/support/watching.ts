/** How long an observer has to watch a record before it calls its holder dead: a lease, and a margin for clocks' rates. */
export function watchedMs(leaseDurationMs: number): number {
  return leaseDurationMs * 1.0025;
}
