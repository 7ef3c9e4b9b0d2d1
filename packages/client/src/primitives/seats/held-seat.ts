import type { LeaseRecord } from "../../base/lease-record.ts";
import { attributeNames, timeToLive } from "../../base/schema.ts";
import type { Item } from "../../base/store.ts";
import type { Ending, HeldForm, Renewal } from "../../core/form.ts";
import type { Write } from "../../statements/statement.ts";
import { type SeatRecord, seatOf, seatsIn, seatText } from "./seat.ts";
import { closeSeat, removeSeat, renewSeat, seatHeld, unlessAskedToStop } from "./seat-writes.ts";

/** A renewal keeps the ttl if it leaves this share of the retention beyond the seat's end. */
export const keptShare = 0.8;

/**
 * A held lease as a seat: several leases share one item.
 *
 * A write that removes seats checks that they are there, and counts them. So the counters always equal the seats. Only
 * a write that takes or prolongs a seat sets the ttl. The ttl outlasts all seats, because none lasts as long as the
 * retention. A seat proves itself by its own fencing number, under its token: a late copy of its acquire has another
 * number.
 */
export class HeldSeat implements HeldForm {
  readonly isShared = true;
  readonly key: string;
  readonly sortKey: string;
  /** The item's ttl by the last answer; 0 before the first. Not private, because lines use forms as prototypes. */
  protected shownTimeToLive = 0;

  constructor(key: string, sortKey: string) {
    this.key = key;
    this.sortKey = sortKey;
  }

  confirmed(item: Item | undefined): void {
    this.shownTimeToLive = Number(item?.[attributeNames.timeToLive] ?? 0);
  }

  /**
   * Adds to the ttl that it has seen, and only when that end is near. A pause may last longer, and has set a later ttl.
   */
  renew({ shown, version, expiresAt, ownClock, leaseDurationMs, retentionMs }: Renewal): Write {
    const seen = this.shownTimeToLive;
    const isNear = seen < timeToLive(expiresAt, keptShare * retentionMs);
    const ttl = isNear ? { seen, wanted: timeToLive(expiresAt, retentionMs) } : undefined;
    const data: string | undefined = JSON.stringify(shown.data);
    const renewed = { ...(shown as SeatRecord), version, expiresAt, ownClock, leaseDurationMs };
    return renewSeat(this, shown, version, seatText(renewed, data), ttl);
  }

  /** A cooldown replaces the seat, under a token that nobody holds. */
  release({ shown, cooldown }: Ending): Write {
    const seat = shown as SeatRecord;
    if (cooldown === undefined) return removeSeat(seat);
    const { until: expiresAt, ownClock, forMs: leaseDurationMs } = cooldown;
    return closeSeat(seat, { ...seat, expiresAt, ownClock, leaseDurationMs, reentrant: false });
  }

  /** Unlike `leasesIn`, it accepts an item with another holder's unreadable seat. */
  leaseIn(item: Item | undefined, token: string): SeatRecord | undefined {
    return seatOf(item, token);
  }

  leasesIn(item: Item | undefined): readonly SeatRecord[] {
    return seatsIn(item);
  }

  proof(lease: LeaseRecord): Write {
    return seatHeld(this, lease);
  }
}

/** Prolongs a seat whose holder was not asked to stop. For a renewer that reads only what it has written. */
export function renewSeatUnlessRevoked(form: HeldSeat, renewal: Renewal): Write {
  return unlessAskedToStop(form.renew(renewal), renewal.shown.token);
}
