/**
 * The writes of a pause: the lock's own lease, and a seat in each item of seats that is larger than any caller may find
 * taken. They are one transaction. So clients of every version respect it: for them it is a holder like any other.
 *
 *     close   the lock as an acquisition does; a seat item where the token has no seat and was not revoked. Seats that
 *             others hold stay: their holders finish
 *     open    the lock's lease and the seats are the pause's own
 */
import { release } from "../expressions.ts";
import { acquireAmongOthers } from "../group/expressions.ts";
import type { LeaseRecord } from "../record.ts";
import { attributeNames, leaseItemKey, leaseSortKey, timeToLive } from "../schema.ts";
import { counted, removeSeat } from "../seats/held-seat.ts";
import { type Seat, seatLimits, seatSortKeys } from "../seats/schema.ts";
import { fencePrefix, isPauseAlone, type SeatRecord, seatText, textPrefix } from "../seats/seat.ts";
import { optionalTextIn } from "../store/item-values.ts";
import { amended, type Count, type Write } from "../store/write.ts";
import type { Item } from "../store.ts";

const { fence, releasedToken, pauseToken, timeToLive: ttl } = attributeNames;

/** What a pause takes of each item of seats: beside it no permit, no reader and no writer fits. */
const pausingSeats: Readonly<Record<string, Seat>> = {
  [seatSortKeys.readWrite]: { kind: "write", permits: 1 },
  [seatSortKeys.semaphore]: { kind: "permit", permits: seatLimits.mostSeats },
};

/** The sort keys of all that a pause closes, the lock first. */
export const closedSortKeys: readonly string[] = [leaseSortKey, ...Object.keys(pausingSeats)];

/** The items that a pause closes, as they were seen: the lock's first, in the order of {@link closedSortKeys}. */
export type SeenItems = readonly (Item | undefined)[];

/** Closes everything under a key. `judged`: the lock's record that it takes the place of. */
export function close(
  lease: LeaseRecord,
  judged: LeaseRecord | undefined,
  [, ...seen]: SeenItems,
  retentionMs: number,
): Write[] {
  const data = JSON.stringify(lease.data);
  const grant = { ...lease, retentionMs, data, slot: undefined };
  const lock = acquireAmongOthers(lease.key, grant, judged, lease.fencingToken);
  return [
    amended(lock, { set: { [pauseToken]: lease.token } }),
    ...Object.entries(pausingSeats).map(([sortKey, seat], index) => {
      const write = closeSeats(lease, sortKey, seat, retentionMs);
      const earlier = pauseAlone(seen[index]);
      // Of an earlier pause nothing is left to say; the lock still refuses a late copy of it.
      return earlier === undefined
        ? write
        : amended(write, { remove: [releasedToken], insist: [[releasedToken, "=", earlier]] });
    }),
  ];
}

/** The token of a pause that is over, where nobody but pauses has used the item. */
function pauseAlone(item: Item | undefined): string | undefined {
  return item !== undefined && isPauseAlone(item) ? optionalTextIn(item, releasedToken) : undefined;
}

function closeSeats(lease: LeaseRecord, sortKey: string, seat: Seat, retentionMs: number): Write {
  const { key, token, acquiredAt, expiresAt } = lease;
  const next: Count = { of: fence, from: acquiredAt, by: 1 };
  return {
    key: leaseItemKey(key, sortKey),
    set: {
      [textPrefix + token]: seatText({ ...lease, seat }, JSON.stringify(lease.data)),
      [fencePrefix + token]: next,
      [fence]: next,
      [pauseToken]: token,
      [ttl]: timeToLive(expiresAt, retentionMs),
      ...counted([], seat),
    },
    insist: [
      [fencePrefix + token, "missing"],
      [releasedToken, "<>", token],
    ],
  };
}

/** Opens what a pause has closed, as it was seen. */
export function open(pauses: readonly LeaseRecord[], now: number, retentionMs: number): Write[] {
  return pauses.map((shown) =>
    shown.seat === undefined
      ? release({ key: shown.key }, { shown, now, retentionMs, slot: undefined, cooldown: undefined })
      : removeSeat(shown as SeatRecord),
  );
}
