// Whether a holder is alive, by its lease: only renewals are a sign of life.

import type { DescribedLease } from "@leasehold/client/admin";
import { ageText, timeText } from "../terminal/durations.ts";

/** How often a lease was renewed. A repeated acquisition counts as one more renewal. */
export function renewals({ version }: Pick<DescribedLease, "version">): number {
  return Math.max(0, version - 1);
}

/** How long ago a lease was renewed, or acquired if never renewed; at least 0, because clocks differ. */
export function renewedAgoMs(
  { expiresAt, leaseDurationMs }: Pick<DescribedLease, "expiresAt" | "leaseDurationMs">,
  readAt: number,
): number {
  return Math.max(0, readAt - (expiresAt - leaseDurationMs));
}

/** When a holder renews next if it keeps its rhythm; undefined if it does not seem to renew. */
export function nextRenewalInMs(lease: DescribedLease, readAt: number): number | undefined {
  const count = renewals(lease);
  const age = readAt - lease.acquiredAt;
  const sinceRenewal = renewedAgoMs(lease, readAt);
  if (count === 0) {
    // A heartbeat comes after a third of the lease. If none has come after half of it, none will come.
    const expected = lease.leaseDurationMs / 3;
    return sinceRenewal > lease.leaseDurationMs / 2 ? undefined : Math.max(0, expected - sinceRenewal);
  }
  const interval = (age - sinceRenewal) / count;
  // It is late by more than the duration of a renewal.
  if (sinceRenewal > 2 * interval + 1_000) return undefined;
  return Math.max(0, interval - sinceRenewal);
}

/** A sentence on a lease for the top of its page: `held, and alive: renewed 3 s ago`. */
export function livenessText(lease: DescribedLease, readAt: number): string {
  const { state, acquiredAt, leaseDurationMs, pause, revocation, expiresAt } = lease;
  const leftMs = expiresAt - readAt;
  switch (state) {
    case "expired":
      return `EXPIRED ${ageText(-leftMs)} ago, and not released: the next caller takes it over`;
    case "grace":
      return "over, but within the allowance for clocks: no caller takes it over yet";
    case "cooldown":
      return `closed for ${ageText(leftMs)} more: its holder has released it early (lockAtLeastFor)`;
    case "paused":
      return `PAUSED by ${pause?.by ?? "?"} for ${ageText(leftMs)} more`;
    case "free":
      return "free";
    case "stopping":
      return `held, and asked to stop: ${JSON.stringify(revocation ?? "")}`;
    default: {
      const ago = ageText(renewedAgoMs(lease, readAt));
      if (renewals(lease) > 0) return `held, and alive: renewed ${ago} ago`;
      const age = ageText(readAt - acquiredAt);
      if (nextRenewalInMs(lease, readAt) !== undefined) return `held: acquired ${age} ago`;
      return `held; whether its holder is alive is not known: not renewed since it was acquired ${age} ago (lease ${ageText(leaseDurationMs)})`;
    }
  }
}

/** The effect of a request to stop: when the holder notices it, or why it never will. */
export function stopForecast(
  lease: DescribedLease,
  readAt: number,
): { readonly isHeard: boolean; readonly text: string } {
  const inMs = nextRenewalInMs(lease, readAt);
  if (inMs !== undefined) {
    return { isHeard: true, text: `It hears of it at its next renewal (in about ${ageText(inMs)}).` };
  }
  const age = ageText(readAt - lease.acquiredAt);
  const text =
    renewals(lease) === 0
      ? `It does not renew (no heartbeat since it was acquired ${age} ago, lease ${ageText(lease.leaseDurationMs)}): it will never hear of it.`
      : `It has renewed ${renewals(lease)} times, but not for ${ageText(renewedAgoMs(lease, readAt))}: it may never hear of it.`;
  return { isHeard: false, text: `${text} Its lease ends at ${timeText(lease.expiresAt).slice(11)} UTC.` };
}
