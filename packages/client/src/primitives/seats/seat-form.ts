import type { TakeoverReason } from "../../base/events.ts";
import type { LeaseRecord, Seat, SeatKind } from "../../base/lease-record.ts";
import { isOpenTo } from "../../base/record.ts";
import { attributeNames, timeToLive } from "../../base/schema.ts";
import type { Item } from "../../base/store.ts";
import type { Expiry, ExpiryDetector } from "../../core/expiry-detector.ts";
import type { Availability, Ending, HeldForm, LeaseForm, Renewal, Takeover } from "../../core/form.ts";
import type { Cancellation, Grant } from "../../statements/lock.ts";
import type { Write } from "../../statements/statement.ts";
import {
  markOfSeat,
  ownerAttribute,
  type SeatRecord,
  seatLimits,
  seatOf,
  seatsIn,
  seatText,
  takenBy,
} from "./seat.ts";
import {
  cancelSeat,
  clearSeats,
  closeSeat,
  limit,
  mark,
  notePermits,
  passSeats,
  removeSeat,
  renewSeat,
  revokeSeat,
  seatHeld,
  takeSeat,
  unlessAskedToStop,
} from "./seat-writes.ts";

const { passedPerWrite } = seatLimits;

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

/** No item shows when a pause ends, so a waiting caller tries again after this time. */
const pausedRetryMs = 60_000;

/** By kind, how much may already be taken. */
export type SeatLimits = Readonly<Partial<Record<SeatKind, number>>>;

/** The seat that a caller asks for. */
export interface WantedSeat extends Seat {
  /** How many permits the semaphore has for this caller; undefined for every other kind. */
  readonly capacity?: number | undefined;
}

/** The wanted seat, and the seats that may be beside it. A primitive adds nothing else. */
export interface SeatTerms extends WantedSeat {
  readonly key: string;
  readonly sortKey: string;
  readonly limits: (seat: WantedSeat) => SeatLimits;
  /** The owner, which has at most one seat of this kind and may take that over; undefined without `reentrant`. */
  readonly reentrantOwner?: string | undefined;
  /** While the owner has a seat of this kind, no limit applies: a writer may read. */
  readonly exemptBy?: SeatKind;
}

/**
 * A wanted seat.
 *
 * The write that takes the seat also checks the limits, as conditions on the counters. The counters always equal the
 * seats, so the promise depends on nothing else.
 */
export class SeatForm extends HeldSeat implements LeaseForm {
  /** Seats of different kinds cannot be shared. */
  readonly shareKey: SeatKind;
  readonly shape: string;
  // Not private, because OrderedWait requires it.
  readonly terms: SeatTerms;

  constructor(terms: SeatTerms) {
    super(terms.key, terms.sortKey);
    this.shareKey = terms.kind;
    this.shape = shapeOf(terms);
    this.terms = terms;
  }

  acquire(grant: Grant, passed: readonly LeaseRecord[]): Write {
    const { kind, permits, capacity } = this.terms;
    const seat = { kind, permits };
    // An earlier try of this token may have landed: then its seat refuses this try.
    const others = passed.slice(-passedPerWrite).filter(({ token }) => token !== grant.token);
    const gone = others as readonly SeatRecord[];
    const own = this.markOf(kind);
    const ttl = timeToLive(grant.expiresAt, grant.retentionMs);
    const write = takeSeat(this, grant, seatText({ ...grant, seat }, grant.data), ttl);
    passSeats(write, gone, seat, own);
    for (const [of, most] of limitsOf(this.terms, this.terms))
      limit(write, of, most, takenBy(gone, of), this.exemption);
    // This write takes over a reentrant owner's earlier seat if there is one.
    if (own !== undefined)
      mark(
        write,
        own,
        gone.some((seat) => markOfSeat(seat) === own),
      );
    return capacity === undefined ? write : notePermits(write, capacity);
  }

  /** An intent holds nothing. */
  announces({ seat }: LeaseRecord): boolean {
    return seat?.kind !== "intent";
  }

  cancel({ token }: Cancellation): Write {
    const { kind, permits } = this.terms;
    return cancelSeat(this, token, { kind, permits }, this.markOf(kind));
  }

  revoke({ token, now, retentionMs }: Cancellation): Write {
    return revokeSeat(this, token, timeToLive(now, retentionMs));
  }

  /** Removes all passed seats except those that `acquire` removes. */
  clear(passed: readonly LeaseRecord[]): readonly Write[] {
    const writes: Write[] = [];
    for (let end = passed.length - passedPerWrite; end > 0; end -= passedPerWrite) {
      const gone = passed.slice(Math.max(0, end - passedPerWrite), end) as readonly SeatRecord[];
      writes.push(clearSeats(this, gone));
    }
    return writes;
  }

  describe(blocker: LeaseRecord | undefined): string {
    const { kind, permits, capacity } = this.terms;
    const name = JSON.stringify(this.key);
    if (blocker?.pause !== undefined)
      return `the ${kind === "permit" ? "semaphore" : "read-write lock"} ${name} is`;
    if (kind !== "permit")
      return `the ${blocker?.seat?.kind === "read" ? "read" : "write"} lock of ${name} is`;
    if (permits === 0) return `a permit of the semaphore ${name} is`;
    if (capacity === 0) return `the semaphore ${name}, paused with permits: 0, is`;
    return `too few of the ${capacity} permits of the semaphore ${name} are free, and the next to end is`;
  }

  /** The seats that end first make room. The caller waits for the last of these. */
  judge(
    item: Item | undefined,
    { owner, resumes }: { readonly owner: string; readonly resumes: boolean },
    detector: ExpiryDetector,
  ): Availability {
    const seats = this.leasesIn(item);
    const expiries = detector.judgeAll(seats);
    const expiryOf = (seat: SeatRecord): Expiry => expiries.get(seat) as Expiry;
    const endsIn = (seat: SeatRecord): number => expiryOf(seat).claimableInMs;
    const own = seats.find((seat) => resumes && this.isOwn(seat, owner));
    const others = seats.filter((seat) => seat !== own).sort((one, other) => endsIn(one) - endsIn(other));
    const isExempt = this.exemption !== undefined && item?.[this.exemption] !== undefined;

    const gone: SeatRecord[] = [];
    let isPaused = false;
    for (const [kind, most] of limitsOf(this.terms, this.terms)) {
      if (isExempt) break;
      let left = takenBy(others, kind);
      for (const seat of others) {
        if (left <= most) break;
        if (seat.seat.kind !== kind) continue;
        left -= seat.seat.permits;
        gone.push(seat);
      }
      isPaused ||= left > most;
    }
    const [blocker] = [...gone].sort((one, other) => endsIn(other) - endsIn(one));
    const claimableInMs = isPaused ? pausedRetryMs : blocker === undefined ? 0 : endsIn(blocker);
    if (claimableInMs > 0) return { blocker, claimableInMs, takeovers: [] };
    // A claimable seat always has a reason.
    const reasonOf = (seat: SeatRecord): TakeoverReason => expiryOf(seat).reason as TakeoverReason;
    const takeovers = gone.map((from): Takeover => ({ from, reason: reasonOf(from) }));
    const resumed: Takeover[] = own === undefined ? [] : [{ from: own, reason: "sameOwner" }];
    // The own seat comes last. So the write that replaces it removes it, however many other seats go before.
    return { blocker: undefined, claimableInMs: 0, takeovers: [...takeovers, ...resumed] };
  }

  mayJoin(item: Item | undefined, shapes: readonly string[], detector: ExpiryDetector): boolean {
    const taken: { readonly seat: Seat }[] = [...detector.unexpired(this.leasesIn(item))];
    return shapes.every((shape) => {
      const seat = { ...this.terms, ...seatOfShape(shape) };
      const mayJoin = limitsOf(this.terms, seat).every(([of, most]) => takenBy(taken, of) <= most);
      taken.push({ seat });
      return mayJoin;
    });
  }

  /** The mark of the owner's own seat that lifts all limits. */
  protected get exemption(): string | undefined {
    const { exemptBy } = this.terms;
    return exemptBy === undefined ? undefined : this.markOf(exemptBy);
  }

  /** The mark that the reentrant owner has a seat of a kind; undefined without a reentrant owner. */
  protected markOf(kind: SeatKind): string | undefined {
    const { reentrantOwner } = this.terms;
    return reentrantOwner === undefined ? undefined : ownerAttribute(kind, reentrantOwner);
  }

  protected isOwn(seat: SeatRecord, owner: string): boolean {
    return seat.seat.kind === this.terms.kind && isOpenTo(seat, owner);
  }
}

/** The wanted seat as a ticket's label. Others judge by the waiter's own number of permits when it may go. */
function shapeOf({ kind, permits, capacity }: WantedSeat): string {
  return [kind, permits, ...(capacity === undefined ? [] : [capacity])].join(":");
}

function seatOfShape(shape: string): WantedSeat {
  const [kind, permits, capacity] = shape.split(":");
  const seat = { kind: kind as SeatKind, permits: Number(permits) };
  return capacity === undefined ? seat : { ...seat, capacity: Number(capacity) };
}

function limitsOf({ limits }: SeatTerms, seat: WantedSeat): readonly [SeatKind, number][] {
  return Object.entries(limits(seat)) as [SeatKind, number][];
}
