/**
 * How far the service's clock is ahead of ours, as far as one answer can tell.
 *
 * The Date header has a resolution of one second, so the truth lies somewhere in an interval.
 */
export interface ClockOffset {
  readonly minMs: number;
  readonly maxMs: number;
}

/** The Date header's resolution: it names the second in which the answer was made. */
const dateResolutionMs = 1000;

/**
 * Measures the service's clock against ours from one answer's Date header.
 *
 * The answer was made between the sending of its request and its arrival, and within the second that the header
 * names. Returns undefined for a missing or unreadable header.
 */
export function offsetFromDate(
  date: string | undefined,
  sentAtMs: number,
  receivedAtMs: number,
): ClockOffset | undefined {
  const second = date === undefined ? Number.NaN : Date.parse(date);
  if (Number.isNaN(second)) return undefined;
  return { minMs: second - receivedAtMs, maxMs: second + dateResolutionMs - sentAtMs };
}

/** Tells whether a clock with this offset can be within the allowance. Without a measurement it is not known to be. */
export function isWithinAllowance(offset: ClockOffset | undefined, clockSkewMs: number): boolean {
  return offset !== undefined && offset.minMs <= clockSkewMs && offset.maxMs >= -clockSkewMs;
}
