// The slot of a run by the clock: the minute, hour or day in UTC, by the service's time, so that all hosts use the same
// slot.

import type { LeaseClient } from "@leasehold/client";
import { coreOf } from "@leasehold/client/internal";

const lengths = { minute: 16, hour: 13, day: 10 } as const;

/** A slot that follows the clock. */
export type SlotUnit = keyof typeof lengths;

/** cron fires by the machine's clock. If that is ahead by at most this, cron has fired for the slot that begins. */
const aheadMs = 5_000;

export function isSlotUnit(text: string): text is SlotUnit {
  return Object.hasOwn(lengths, text);
}

/**
 * The present slot: `2026-11-22T02:00Z`, `2026-11-22T02Z`, `2026-11-22`. 1 read, whose answer has the service's time.
 *
 * A machine's own time counts if it is ahead by up to 5 s: then cron has fired for the slot that is about to begin.
 */
export async function slotOfNow(client: LeaseClient, key: string, unit: SlotUnit): Promise<string> {
  await client.doneSlot(key);
  const { clock } = coreOf(client);
  const { wall } = clock.moment();
  const earliest = clock.earliest() ?? wall;
  const latest = clock.latest() ?? wall;
  return slotAt(wall >= earliest && wall <= latest + aheadMs ? wall : earliest, unit);
}

/** The slot of a time. */
export function slotAt(epochMs: number, unit: SlotUnit): string {
  const text = new Date(epochMs).toISOString().slice(0, lengths[unit]);
  return unit === "day" ? text : `${text}Z`;
}
