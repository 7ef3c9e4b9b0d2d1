/**
 * The writes of a pause: the lock's own lease, and a seat in each item of seats that exceeds every caller's limits.
 * They are one transaction. Clients of every version respect it, because for them it is a holder like any other.
 *
 *     close   the lock as an acquisition does; a seat item where the token has no seat and was not revoked. Seats that
 *             others hold stay: their holders finish
 *     open    the lock's lease and the seats are the pause's own
 */

import { optionalTextIn } from "../base/item-values.ts";
import type { LeaseRecord, Seat } from "../base/lease-record.ts";
import { attributeNames, leaseSortKey, timeToLive } from "../base/schema.ts";
import type { Item } from "../base/store.ts";
import {
  isPauseAlone,
  type SeatRecord,
  seatLimits,
  seatOf,
  seatSortKeys,
  seatText,
} from "../primitives/seats/seat.ts";
import { passSeats, removeSeat, takeSeat } from "../primitives/seats/seat-writes.ts";
import { release, take } from "../statements/lock.ts";
import type { Part, Write } from "../statements/statement.ts";

const pausing: Part = { set: "#pauseToken = :pauseToken" };
/** The token of an earlier pause is not needed here any more. The lock still refuses a late copy of it. */
const earlierPauseGone: Part = { remove: "#releasedToken", when: "#releasedToken = :earlierPause" };

/** What a pause takes of each item of seats: no permit, reader or writer fits beside it. */
const pausingSeats: Readonly<Record<string, Seat>> = {
  [seatSortKeys.readWrite]: { kind: "write", permits: 1 },
  [seatSortKeys.semaphore]: { kind: "permit", permits: seatLimits.mostSeats },
};

/** The sort keys of everything that a pause closes, the lock first. */
export const closedSortKeys: readonly string[] = [leaseSortKey, ...Object.keys(pausingSeats)];

/** The items that a pause closes, as they were read: the lock's first, in the order of {@link closedSortKeys}. */
export type SeenItems = readonly (Item | undefined)[];

/** Closes everything under a key. `judged`: the lock's record that it takes over. */
export function close(
  lease: LeaseRecord,
  judged: LeaseRecord | undefined,
  [, ...seen]: SeenItems,
  retentionMs: number,
): Write[] {
  const data = JSON.stringify(lease.data);
  const mark = { ":pauseToken": lease.token };
  return [
    take({ key: lease.key }, { ...lease, retentionMs, data, slot: undefined }, judged).and(pausing, mark),
    ...Object.entries(pausingSeats).map(([sortKey, seat], index) => {
      const text = seatText({ ...lease, seat }, data);
      const ttl = timeToLive(lease.expiresAt, retentionMs);
      const write = takeSeat({ key: lease.key, sortKey }, lease, text, ttl).and(pausing, mark);
      const item = seen[index];
      const earlier = pauseAlone(item);
      if (earlier !== undefined) write.and(earlierPauseGone, { ":earlierPause": earlier });
      return passSeats(write, restOfPause(item, lease), seat);
    }),
  ];
}

/** The token of an ended pause, if only pauses have used the item. */
function pauseAlone(item: Item | undefined): string | undefined {
  return item !== undefined && isPauseAlone(item)
    ? optionalTextIn(item, attributeNames.releasedToken)
    : undefined;
}

/** The seat of an earlier pause, which has ended without a resume: the new one takes its place, and its mark. */
function restOfPause(item: Item | undefined, { token }: LeaseRecord): readonly SeatRecord[] {
  const seat = seatOf(item, String(item?.[attributeNames.pauseToken]));
  return seat === undefined || seat.token === token ? [] : [seat];
}

/** Opens what a pause has closed, if it is unchanged since the look. */
export function endPauses(pauses: readonly LeaseRecord[], now: number, retentionMs: number): Write[] {
  return pauses.map((shown) =>
    shown.seat === undefined
      ? release({ key: shown.key }, { shown, now, retentionMs, slot: undefined, cooldown: undefined })
      : removeSeat(shown as SeatRecord),
  );
}
