import type { TakeoverReason } from "../events.ts";
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

/** Which seat is asked for, and what each seat has to fit beside: that table is all that a primitive adds. */
export interface SeatTerms extends Seat {
  readonly key: string;
  readonly sortKey: string;
  readonly bounds: (seat: Seat) => Bounds;
  /** The owner that has one seat of this kind at most, which it may take over; undefined without `reentrant`. */
  readonly reentrantOwner?: string | undefined;
  /** While that owner has a seat of this kind, no bound counts: a writer may read. */
  readonly beside?: SeatKind;
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
    this.shape = `${terms.kind}:${terms.permits}`;
    this.terms = terms;
  }

  acquire(grant: Grant, passed: readonly LeaseRecord[]): Write {
    const { token, acquiredAt, expiresAt, retentionMs } = grant;
    const { kind, permits } = this.terms;
    const gone = passed.slice(-passedPerWrite) as readonly SeatRecord[];
    const next: Count = { of: fence, from: acquiredAt, by: 1 };
    const set = {
      [textPrefix + token]: seatText({ ...grant, seat: { kind, permits } }, grant.data),
      [fencePrefix + token]: next,
      [fence]: next,
      [ttl]: timeToLive(expiresAt, retentionMs),
      ...counted(gone, { kind, permits }),
      ...Object.fromEntries(this.marksOf(kind).map((mark) => [mark, 1])),
      ...(kind === "permit" ? { [permitsOfAttribute]: permitsOf(this.terms) } : {}),
    };
    const insist: readonly Condition[] = [
      [fencePrefix + token, "missing"],
      [releasedToken, "<>", token],
      ...gone.map(unchanged),
      ...this.fits(gone),
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
      const key = leaseItemKey(this.key, this.sortKey);
      const remove = gone.flatMap(attributesOf);
      writes.push({ key, set: counted(gone), remove, insist: gone.map(unchanged) });
    }
    return writes;
  }

  describe(blocker: LeaseRecord | undefined): string {
    const { kind, permits } = this.terms;
    const name = JSON.stringify(this.key);
    const most = permitsOf(this.terms);
    if (blocker?.pause !== undefined)
      return `the ${kind === "permit" ? "semaphore" : "read-write lock"} ${name} is`;
    if (kind !== "permit")
      return `the ${blocker?.seat?.kind === "read" ? "read" : "write"} lock of ${name} is`;
    if (permits === 0) return `a permit of the semaphore ${name} is`;
    if (most === 0) return `the semaphore ${name}, paused with permits: 0, is`;
    return `too few of the ${most} permits of the semaphore ${name} are free, and the next to end is`;
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
    const isBeside = this.besides.some((attribute) => item?.[attribute] !== undefined);

    const gone: SeatRecord[] = [];
    let isPaused = false;
    for (const [kind, most] of boundsOf(this.terms, this.terms)) {
      if (isBeside) break;
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

  roomFor(item: Item | undefined, shapes: readonly string[], detector: ExpiryDetector): boolean {
    const taken: { readonly seat: Seat }[] = [...detector.standing(this.leasesIn(item))];
    return shapes.every((shape) => {
      const [kind, permits] = shape.split(":");
      const seat = { kind: kind as SeatKind, permits: Number(permits) };
      const fits = boundsOf(this.terms, seat).every(([of, most]) => takenBy(taken, of) <= most);
      taken.push({ seat });
      return fits;
    });
  }

  /** A bound that nothing meets, as that of a semaphore without permits, refuses an item without counters too. */
  protected fits(gone: readonly SeatRecord[]): readonly Condition[] {
    const own = this.besides.map((attribute): Test => [attribute, "exists"]);
    const bounded = boundsOf(this.terms, this.terms).map(([of, most]): Condition => {
      const none: readonly Test[] = most < 0 ? [] : [[seatCounters[of], "missing"]];
      return { anyOf: [[seatCounters[of], "<=", most + takenBy(gone, of)], ...none, ...own] };
    });
    // A reentrant owner's earlier seat is taken over, or there is none.
    const going = gone.flatMap(attributesOf);
    const absent = this.marksOf(this.terms.kind).filter((mark) => !going.includes(mark));
    return [...bounded, ...absent.map((mark): Test => [mark, "missing"])];
  }

  /** What shows that the owner has a seat beside which no bound counts. */
  protected get besides(): readonly string[] {
    const { beside } = this.terms;
    return beside === undefined ? [] : this.marksOf(beside);
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

/** How many permits the semaphore has, for this caller. */
function permitsOf(terms: SeatTerms): number {
  return terms.permits + (terms.bounds(terms).permit ?? 0);
}

function boundsOf({ bounds }: SeatTerms, seat: Seat): readonly [SeatKind, number][] {
  return Object.entries(bounds(seat)) as [SeatKind, number][];
}

/** Nobody has renewed it since it was judged: its text still has the version that it had then, or an earlier one. */
function unchanged({ token, version }: SeatRecord): Test {
  return [textPrefix + token, "<", versionText(version + 1)];
}
