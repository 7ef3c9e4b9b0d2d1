// The time by which leases are judged: the service's time, by its answers.

import type { LeaseClient } from "@leasehold/client";
import { coreOf } from "@leasehold/client/internal";
import { durationText } from "../terminal/durations.ts";

/** The service's time in epoch milliseconds; before the first answer, the machine's own. */
export function serviceNow(client: LeaseClient): number {
  return coreOf(client).clock.now();
}

/** The least that this machine's clock is ahead of the service's; negative for behind, 0 if they may agree. */
export function machineAheadMs(client: LeaseClient): number {
  const ahead = coreOf(client).clock.ahead();
  if (ahead === undefined) return 0;
  if (ahead.minMs > 0) return -ahead.minMs;
  return ahead.maxMs < 0 ? -ahead.maxMs : 0;
}

/** A notice if this machine's clock is off by more than the allowance; otherwise undefined. */
export function clockNotice(client: LeaseClient): string | undefined {
  const aheadMs = machineAheadMs(client);
  if (Math.abs(aheadMs) <= coreOf(client).times.clockSkewMs) return undefined;
  const off = `${durationText(Math.abs(aheadMs))} ${aheadMs > 0 ? "ahead of" : "behind"}`;
  return `this machine's clock is ${off} DynamoDB's; all times here are told by DynamoDB's`;
}
