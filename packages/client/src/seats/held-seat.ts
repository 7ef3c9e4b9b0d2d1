import type { LeaseAddress } from "../expressions.ts";
import type { Ending, HeldForm, Renewal } from "../protocol/lease-form.ts";
import type { LeaseRecord } from "../record.ts";
import { attributeNames, cooldownToken, leaseItemKey, timeToLive } from "../schema.ts";
import { amended, type Count, type Test, type Write } from "../store/write.ts";
import type { Item } from "../store.ts";
import { type Seat, type SeatKind, seatCounters } from "./schema.ts";
import {
  attributesOf,
  fencePrefix,
  revocationPrefix,
  type SeatRecord,
  seatOf,
  seatsIn,
  seatText,
  takenBy,
  textPrefix,
  versionText,
} from "./seat.ts";

const { releasedToken, brokenToken, timeToLive: ttl } = attributeNames;

/** A renewal lets a ttl stand that leaves this share of the retention beyond the seat's end. */
export const keptShare = 0.8;

/**
 * A lease as a seat in an item that several share, as far as its holder needs it.
 *
 * A write that removes seats insists that they are there, and counts them: so the counters always equal the seats. Only
 * what takes or prolongs a seat sets the ttl, which then outlasts all seats: none lasts as long as the retention.
 * A seat proves itself by its own fencing number, under its token: a late copy of its acquire has another number.
 */
export class HeldSeat implements HeldForm {
  readonly key: string;
  readonly sortKey: string;
  /** The item's ttl by the last answer; 0 before the first. Not private: lines make forms of it. */
  protected shownTimeToLive = 0;

  constructor(key: string, sortKey: string) {
    this.key = key;
    this.sortKey = sortKey;
  }

  confirmed(item: Item | undefined): void {
    this.shownTimeToLive = Number(item?.[ttl] ?? 0);
  }

  /** Adds to the ttl that it has seen, and only when that is near: a pause, which may last longer, has set a later one. */
  renew({ shown, version, expiresAt, ownClock, leaseDurationMs, retentionMs }: Renewal): Write {
    const text = textPrefix + shown.token;
    const wanted = timeToLive(expiresAt, retentionMs);
    const isNear = this.shownTimeToLive < timeToLive(expiresAt, keptShare * retentionMs);
    const grown: Count = { of: ttl, from: this.shownTimeToLive, by: wanted - this.shownTimeToLive };
    const data: string | undefined = JSON.stringify(shown.data);
    const renewed = { ...(shown as SeatRecord), version, expiresAt, ownClock, leaseDurationMs };
    return {
      key: leaseItemKey(this.key, this.sortKey),
      set: {
        [text]: seatText(renewed, data),
        ...(isNear ? { [ttl]: this.shownTimeToLive > 0 ? grown : wanted } : {}),
      },
      insist: [...this.proof(shown), [text, "<", versionText(version)]],
      returnsItem: true,
    };
  }

  /** A cooldown replaces the seat, under another token that nobody holds: the counters stay as they are. */
  release({ shown, cooldown }: Ending): Write {
    const seat = shown as SeatRecord;
    const write = removeSeat(seat);
    if (cooldown === undefined) return write;
    const token = cooldownToken(seat.token);
    const { until: expiresAt, ownClock, forMs: leaseDurationMs } = cooldown;
    const cooling = { ...seat, expiresAt, ownClock, leaseDurationMs, reentrant: false };
    const set = {
      [textPrefix + token]: seatText(cooling, undefined),
      [fencePrefix + token]: seat.fencingToken,
      [releasedToken]: seat.token,
    };
    return { ...write, set };
  }

  /** Unlike `leasesIn`, it accepts an item in which another holder's seat cannot be read. */
  leaseIn(item: Item | undefined, token: string): SeatRecord | undefined {
    return seatOf(item, token);
  }

  leasesIn(item: Item | undefined): readonly SeatRecord[] {
    return seatsIn(item);
  }

  proof({ token, fencingToken }: LeaseRecord): readonly Test[] {
    return [[fencePrefix + token, "=", fencingToken]];
  }
}

/** Removes another holder's seat, and marks it as broken: so the holder does not mistake this for its own release. */
export function breakSeat(seat: SeatRecord): Write {
  const write = removeSeat(seat);
  const { [releasedToken]: _, ...cooldown } = write.set;
  return { ...write, set: { ...(seat.inCooldown ? cooldown : write.set), [brokenToken]: seat.token } };
}

/** Prolongs a seat whose holder was not asked to stop: for a renewer that reads only what it has written. */
export function renewSeatUnlessRevoked(form: HeldSeat, renewal: Renewal): Write {
  return amended(form.renew(renewal), { insist: [[revocationPrefix + renewal.shown.token, "missing"]] });
}

/** Asks the holder of a seat to stop. */
export function askSeatToStop({ key, sortKey }: LeaseAddress, token: string, reason: string): Write {
  const insist: readonly Test[] = [[fencePrefix + token, "exists"]];
  return { key: leaseItemKey(key, sortKey), set: { [revocationPrefix + token]: reason }, insist };
}

/** The counters, once seats have gone and another has come. */
export function counted(gone: readonly SeatRecord[], come?: Seat): Record<string, Count> {
  const set: Record<string, Count> = {};
  for (const [kind, counter] of Object.entries(seatCounters)) {
    const by = (come?.kind === kind ? come.permits : 0) - takenBy(gone, kind as SeatKind);
    if (by !== 0) set[counter] = { of: counter, from: 0, by };
  }
  return set;
}

/** Removes a seat as its holder does. */
export function removeSeat(seat: SeatRecord): Write {
  return {
    key: leaseItemKey(seat.key, seat.sortKey),
    set: { ...counted([seat]), [releasedToken]: seat.token },
    remove: attributesOf(seat),
    insist: [[fencePrefix + seat.token, "=", seat.fencingToken]],
  };
}
