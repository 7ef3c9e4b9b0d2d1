import type { TakeoverReason } from "../events.ts";
import type { LeaseAddress } from "../expressions.ts";
import type { Expiry, ExpiryDetector } from "../protocol/expiry-detector.ts";
import type { Cancellation, Grant, LeaseForm, Prospect, Takeover } from "../protocol/lease-form.ts";
import { isOpenTo, type LeaseRecord } from "../record.ts";
import { attributeNames, leaseItemKey, timeToLive } from "../schema.ts";
import type { Condition, Count, Test, Write } from "../store/write.ts";
import type { Item } from "../store.ts";
import { counted, HeldSeat } from "./held-seat.ts";
import { permitsOfAttribute, type Seat, type SeatKind, seatCounters, seatLimits } from "./schema.ts";
import {
  attributesOf,
  fencePrefix,
  ownerAttribute,
  type SeatRecord,
  seatText,
  takenBy,
  textPrefix,
  tokenAttributes,
  versionText,
} from "./seat.ts";

const { fence, releasedToken, timeToLive: ttl } = attributeNames;

const { passedPerWrite } = seatLimits;

/** No item shows when a pause ends: a caller that waits tries again after so long. */
const pausedRetryMs = 60_000;

/** By kind, how much may be taken already. */
export type Bounds = Readonly<Partial<Record<SeatKind, number>>>;

/** A seat that a caller asks for. */
export interface WantedSeat extends Seat {
  /** How many permits the semaphore has, for this caller; undefined for every other kind. */
  readonly capacity?: number | undefined;
}

/** Which seat is asked for, and beside which others it may be: that table is all that a primitive adds. */
export interface SeatTerms extends WantedSeat {
  readonly key: string;
  readonly sortKey: string;
  readonly bounds: (seat: WantedSeat) => Bounds;
  /** The owner that has one seat of this kind at most, which it may take over; undefined without `reentrant`. */
  readonly reentrantOwner?: string | undefined;
  /** While that owner has a seat of this kind, no bound counts: a writer may read. */
  readonly exemptBy?: SeatKind;
}

/**
 * A seat that is asked for.
 *
 * The bounds are conditions on the counters of the very write that takes the seat, and the counters always equal the
 * seats: nothing else has to hold for the promise.
 */
export class SeatForm extends HeldSeat implements LeaseForm {
  /** Seats of different kinds are no leases to share. */
  readonly shareKey: SeatKind;
  readonly shape: string;
  // Not private, as OrderedWait asks.
  readonly terms: SeatTerms;

  constructor(terms: SeatTerms) {
    super(terms.key, terms.sortKey);
    this.shareKey = terms.kind;
    this.shape = shapeOf(terms);
    this.terms = terms;
  }

  acquire(grant: Grant, passed: readonly LeaseRecord[]): Write {
    const { token, acquiredAt, expiresAt, retentionMs } = grant;
    const { kind, permits, capacity } = this.terms;
    const gone = passed.slice(-passedPerWrite) as readonly SeatRecord[];
    const next: Count = { of: fence, from: acquiredAt, by: 1 };
    const set = {
      [textPrefix + token]: seatText({ ...grant, seat: { kind, permits } }, grant.data),
      [fencePrefix + token]: next,
      [fence]: next,
      [ttl]: timeToLive(expiresAt, retentionMs),
      ...counted(gone, { kind, permits }),
      ...Object.fromEntries(this.marksOf(kind).map((mark) => [mark, 1])),
      ...(capacity === undefined ? {} : { [permitsOfAttribute]: capacity }),
    };
    const insist: readonly Condition[] = [
      [fencePrefix + token, "missing"],
      [releasedToken, "<>", token],
      ...gone.flatMap(unchanged),
      ...this.capacityTests(gone),
    ];
    const remove = gone.flatMap(attributesOf).filter((attribute) => !(attribute in set));
    return { key: leaseItemKey(this.key, this.sortKey), set, remove, insist, returnsItem: true };
  }

  cancel({ token }: Cancellation): Write {
    const { kind, permits } = this.terms;
    return {
      key: leaseItemKey(this.key, this.sortKey),
      set: { ...counted([], { kind, permits: -permits }), [releasedToken]: token },
      remove: [...tokenAttributes(token), ...this.marksOf(kind)],
      insist: [[fencePrefix + token, "exists"]],
    };
  }

  revoke({ token, now, retentionMs }: Cancellation): Write {
    return {
      key: leaseItemKey(this.key, this.sortKey),
      set: { [releasedToken]: token, [ttl]: { of: ttl, from: timeToLive(now, retentionMs), by: 0 } },
      insist: [[fencePrefix + token, "missing"]],
      returnsItem: true,
    };
  }

  /** All but those that `acquire` takes along. */
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

  /** The seats that end first make room; the last of them is what the caller waits for. */
  judge(
    item: Item | undefined,
    { owner, resumes }: { readonly owner: string; readonly resumes: boolean },
    detector: ExpiryDetector,
  ): Prospect {
    const seats = this.leasesIn(item);
    const expiries = detector.judgeAll(seats);
    const expiryOf = (seat: SeatRecord): Expiry => expiries.get(seat) as Expiry;
    const endsIn = (seat: SeatRecord): number => expiryOf(seat).claimableInMs;
    const own = seats.find((seat) => resumes && this.isOwn(seat, owner));
    const others = seats.filter((seat) => seat !== own).sort((one, other) => endsIn(one) - endsIn(other));
    const isExempt = this.exemptions.some((attribute) => item?.[attribute] !== undefined);

    const gone: SeatRecord[] = [];
    let isPaused = false;
    for (const [kind, most] of boundsOf(this.terms, this.terms)) {
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
    // What is claimable now is so for a reason.
    const reasonOf = (seat: SeatRecord): TakeoverReason => expiryOf(seat).reason as TakeoverReason;
    const takeovers = gone.map((from): Takeover => ({ from, reason: reasonOf(from) }));
    const resumed: Takeover[] = own === undefined ? [] : [{ from: own, reason: "sameOwner" }];
    // The own one comes last: then it goes with the very write that takes its place, however many have to go before.
    return { blocker: undefined, claimableInMs: 0, takeovers: [...takeovers, ...resumed] };
  }

  mayJoin(item: Item | undefined, shapes: readonly string[], detector: ExpiryDetector): boolean {
    const taken: { readonly seat: Seat }[] = [...detector.standing(this.leasesIn(item))];
    return shapes.every((shape) => {
      const seat = { ...this.terms, ...seatOfShape(shape) };
      const mayJoin = boundsOf(this.terms, seat).every(([of, most]) => takenBy(taken, of) <= most);
      taken.push({ seat });
      return mayJoin;
    });
  }

  /** A bound that nothing meets, as that of a semaphore without permits, refuses an item without counters too. */
  protected capacityTests(gone: readonly SeatRecord[]): readonly Condition[] {
    const own = this.exemptions.map((attribute): Test => [attribute, "exists"]);
    const bounded = boundsOf(this.terms, this.terms).map(([of, most]): Condition => {
      const none: readonly Test[] = most < 0 ? [] : [[seatCounters[of], "missing"]];
      return { anyOf: [[seatCounters[of], "<=", most + takenBy(gone, of)], ...none, ...own] };
    });
    // A reentrant owner's earlier seat is taken over, or there is none.
    const going = gone.flatMap(attributesOf);
    const absent = this.marksOf(this.terms.kind).filter((mark) => !going.includes(mark));
    return [...bounded, ...absent.map((mark): Test => [mark, "missing"])];
  }

  /** The marks of the owner's own seats that exempt it from all bounds. */
  protected get exemptions(): readonly string[] {
    const { exemptBy } = this.terms;
    return exemptBy === undefined ? [] : this.marksOf(exemptBy);
  }

  /** What shows that the reentrant owner has a seat of a kind; nothing does without one. */
  protected marksOf(kind: SeatKind): readonly string[] {
    const { reentrantOwner } = this.terms;
    return reentrantOwner === undefined ? [] : [ownerAttribute(kind, reentrantOwner)];
  }

  protected isOwn(seat: SeatRecord, owner: string): boolean {
    return seat.seat.kind === this.terms.kind && isOpenTo(seat, owner);
  }
}

/** Removes seats whose time is over, as they were judged. */
export function clearSeats({ key, sortKey }: LeaseAddress, gone: readonly SeatRecord[]): Write {
  return {
    key: leaseItemKey(key, sortKey),
    set: counted(gone),
    remove: gone.flatMap(attributesOf),
    insist: gone.flatMap(unchanged),
  };
}

/** What a waiter's ticket says of the seat that it asks for: by its own number of permits the others judge when it may go. */
function shapeOf({ kind, permits, capacity }: WantedSeat): string {
  return [kind, permits, ...(capacity === undefined ? [] : [capacity])].join(":");
}

function seatOfShape(shape: string): WantedSeat {
  const [kind, permits, capacity] = shape.split(":");
  const seat = { kind: kind as SeatKind, permits: Number(permits) };
  return capacity === undefined ? seat : { ...seat, capacity: Number(capacity) };
}

function boundsOf({ bounds }: SeatTerms, seat: WantedSeat): readonly [SeatKind, number][] {
  return Object.entries(bounds(seat)) as [SeatKind, number][];
}

/** It is the seat that was judged, and not renewed since: its text still has the version that it had then, or an earlier one. */
function unchanged({ token, version, fencingToken }: SeatRecord): readonly Test[] {
  return [
    [fencePrefix + token, "=", fencingToken],
    [textPrefix + token, "<", versionText(version + 1)],
  ];
}
