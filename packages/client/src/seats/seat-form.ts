import type { LeaseAddress } from "../expressions.ts";
import type { Expiry, ExpiryDetector } from "../protocol/expiry-detector.ts";
import { claimableIn } from "../protocol/expiry-detector.ts";
import type {
  Cancellation,
  Ending,
  Grant,
  LeaseForm,
  Prospect,
  Renewal,
  Takeover,
} from "../protocol/lease-form.ts";
import { isOpenTo, type LeaseRecord } from "../record.ts";
import { attributeNames, cooldownToken, type ItemKey, leaseItemKey, timeToLive } from "../schema.ts";
import type { Condition, Count, Test, Write } from "../store/write.ts";
import type { Item } from "../store.ts";
import {
  fenceAttribute,
  ownerAttribute,
  revocationAttribute,
  type Seat,
  type SeatKind,
  seatCounters,
  seatLimits,
  textAttribute,
  versionText,
} from "./schema.ts";
import { attributesOf, type SeatRecord, seatOf, seatsIn, seatText, takenBy } from "./seat.ts";

const { fence, releasedToken, brokenToken, timeToLive: ttl } = attributeNames;

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
 * A lease as a seat in an item that several share.
 *
 * The bounds are conditions on the counters of the very write that takes the seat; a write that removes seats insists
 * that they are there. So the counters always equal the seats, and nothing else has to hold for the promise.
 * Only what takes or prolongs a seat sets the ttl, which then outlasts all seats: none lasts as long as the retention.
 * A seat proves itself by its own fencing number, under its token: a late copy of its acquire has another number.
 */
export class SeatForm implements LeaseForm {
  readonly key: string;
  readonly sortKey: string;
  /** Seats of different kinds are no leases to share. */
  readonly shareKey: SeatKind;
  readonly shape: string;
  readonly #terms: SeatTerms;
  readonly #bounds: Bounds;
  readonly #itemKey: ItemKey;

  constructor(terms: SeatTerms) {
    this.key = terms.key;
    this.sortKey = terms.sortKey;
    this.shareKey = terms.kind;
    this.shape = `${terms.kind}:${terms.permits}`;
    this.#terms = terms;
    this.#bounds = terms.bounds(terms);
    this.#itemKey = leaseItemKey(terms.key, terms.sortKey);
  }

  /** The form of a seat that is taken, to renew and to release it. */
  static of({ key, sortKey, owner, reentrant }: LeaseRecord, seat: Seat): SeatForm {
    const reentrantOwner = reentrant ? owner : undefined;
    return new SeatForm({ ...seat, key, sortKey, bounds: () => ({}), reentrantOwner });
  }

  acquire(grant: Grant, passed: readonly LeaseRecord[]): Write {
    const { token, acquiredAt, expiresAt, retentionMs } = grant;
    const { kind, permits, reentrantOwner } = this.#terms;
    const gone = passed.slice(-passedPerWrite).filter(hasSeat);
    const next: Count = { of: fence, from: acquiredAt, by: 1 };
    const set = {
      [textAttribute(token)]: seatText({ ...grant, seat: { kind, permits } }, grant.data),
      [fenceAttribute(token)]: next,
      [fence]: next,
      [ttl]: timeToLive(expiresAt, retentionMs),
      ...counted(gone, { kind, permits }),
      ...(reentrantOwner === undefined ? {} : { [ownerAttribute(kind, reentrantOwner)]: 1 }),
    };
    const insist: Condition[] = [
      [fenceAttribute(token), "missing"],
      [releasedToken, "<>", token],
      ...gone.map(unchanged),
      ...this.#fits(gone),
      ...this.#onlyOne(gone),
    ];
    const remove = gone.flatMap(attributesOf).filter((attribute) => !(attribute in set));
    return { key: this.#itemKey, set, remove, insist, returnsItem: true };
  }

  renew({ shown, version, expiresAt, leaseDurationMs, retentionMs }: Renewal): Write {
    const { token } = shown;
    const data = shown.data === undefined ? undefined : JSON.stringify(shown.data);
    const content = { ...withSeat(shown, this.#terms), version, expiresAt, leaseDurationMs };
    return {
      key: this.#itemKey,
      set: { [textAttribute(token)]: seatText(content, data), [ttl]: timeToLive(expiresAt, retentionMs) },
      insist: [...proofOf(shown), [textAttribute(token), "<", versionText(version)]],
      returnsItem: true,
    };
  }

  /** A cooldown takes the seat's place under another token, which nobody holds: the counters stay as they are. */
  release({ shown, cooldown }: Ending): Write {
    const seat = withSeat(shown, this.#terms);
    const write = removal(this.#itemKey, seat);
    if (cooldown === undefined) return write;
    const { until: expiresAt, forMs: leaseDurationMs } = cooldown;
    const token = cooldownToken(seat.token);
    const content = { ...seat, expiresAt, leaseDurationMs, reentrant: false };
    const set = {
      [textAttribute(token)]: seatText(content, undefined),
      [fenceAttribute(token)]: seat.fencingToken,
      [releasedToken]: seat.token,
    };
    return { ...write, set };
  }

  cancel({ token }: Cancellation): Write {
    const { kind, permits, reentrantOwner } = this.#terms;
    const own = [textAttribute(token), fenceAttribute(token), revocationAttribute(token)];
    return {
      key: this.#itemKey,
      set: {
        ...counted([], { kind, permits: -permits }),
        [releasedToken]: token,
      },
      remove: reentrantOwner === undefined ? own : [...own, ownerAttribute(kind, reentrantOwner)],
      insist: [[fenceAttribute(token), "exists"]],
    };
  }

  revoke({ token, now, retentionMs }: Cancellation): Write {
    return {
      key: this.#itemKey,
      set: { [releasedToken]: token, [ttl]: { of: ttl, from: timeToLive(now, retentionMs), by: 0 } },
      insist: [[fenceAttribute(token), "missing"]],
      returnsItem: true,
    };
  }

  /** All but those that `acquire` takes along. */
  clear(passed: readonly LeaseRecord[]): readonly Write[] {
    const writes: Write[] = [];
    for (let end = passed.length - passedPerWrite; end > 0; end -= passedPerWrite) {
      const gone = passed.slice(Math.max(0, end - passedPerWrite), end).filter(hasSeat);
      const remove = gone.flatMap(attributesOf);
      writes.push({ key: this.#itemKey, set: counted(gone), remove, insist: gone.map(unchanged) });
    }
    return writes;
  }

  /** Unlike `leasesIn` it does not mind a seat of somebody else's that cannot be read. */
  leaseIn(item: Item | undefined, token: string): SeatRecord | undefined {
    return seatOf(item, token);
  }

  leasesIn(item: Item | undefined): readonly SeatRecord[] {
    return seatsIn(item);
  }

  proof(lease: LeaseRecord): readonly Condition[] {
    return proofOf(lease);
  }

  describe(blocker: LeaseRecord | undefined): string {
    const { key, kind, permits } = this.#terms;
    const name = JSON.stringify(key);
    const most = permits + (this.#bounds.permit ?? 0);
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
    const { kind, beside, reentrantOwner } = this.#terms;
    const bounds = this.#bounds;
    const seats = this.leasesIn(item);
    const expiries = detector.judgeAll(seats);
    const endsIn = (seat: SeatRecord): number => claimableIn(expiries.get(seat) as Expiry);
    const own = seats.find((seat) => resumes && seat.seat.kind === kind && isOpenTo(seat, owner));
    const isBeside =
      beside !== undefined &&
      reentrantOwner !== undefined &&
      item?.[ownerAttribute(beside, reentrantOwner)] !== undefined;

    const gone = own === undefined ? [] : [own];
    let blocker: SeatRecord | undefined;
    if (!isBeside) {
      const inTheWay = seats
        .filter((seat) => seat !== own && bounds[seat.seat.kind] !== undefined)
        .sort((one, other) => endsIn(one) - endsIn(other));
      for (const [counted, most] of Object.entries(bounds) as [SeatKind, number][]) {
        const leaving = inTheWay.filter(({ seat }) => seat.kind === counted);
        let left = takenBy(seats, counted) - takenBy(gone, counted);
        for (const seat of leaving) {
          if (left <= most) break;
          left -= seat.seat.permits;
          gone.push(seat);
          if (blocker === undefined || endsIn(seat) > endsIn(blocker)) blocker = seat;
        }
        if (left > most) return { blocker, claimableInMs: pausedRetryMs, takeovers: [] };
      }
    }
    const claimableInMs = blocker === undefined ? 0 : endsIn(blocker);
    if (claimableInMs > 0) return { blocker, claimableInMs, takeovers: [] };
    const takeovers = gone.map((from): Takeover => {
      const expiry = expiries.get(from);
      return { from, reason: from !== own && expiry?.expired ? expiry.reason : "sameOwner" };
    });
    return { blocker: undefined, claimableInMs: 0, takeovers };
  }

  roomFor(item: Item | undefined, shapes: readonly string[], detector: ExpiryDetector): boolean {
    const seats = this.leasesIn(item);
    const expiries = detector.judgeAll(seats);
    const taken: { readonly seat: Seat }[] = seats.filter((seat) => !expiries.get(seat)?.expired);
    for (const shape of shapes) {
      const [kind, permits] = shape.split(":");
      const seat = { kind: kind as SeatKind, permits: Number(permits) };
      const bounds = Object.entries(this.#terms.bounds(seat)) as [SeatKind, number][];
      if (bounds.some(([of, most]) => takenBy(taken, of) > most)) return false;
      taken.push({ seat });
    }
    return true;
  }

  /** A bound that nothing meets, as that of a semaphore without permits, refuses an item without counters too. */
  #fits(gone: readonly SeatRecord[]): Condition[] {
    const { beside, reentrantOwner } = this.#terms;
    const own: Test[] =
      beside === undefined || reentrantOwner === undefined
        ? []
        : [[ownerAttribute(beside, reentrantOwner), "exists"]];
    return (Object.entries(this.#bounds) as [SeatKind, number][]).map(([kind, most]) => {
      const counter = seatCounters[kind];
      const atMost: Test = [counter, "<=", most + takenBy(gone, kind)];
      const none: Test[] = most < 0 ? [] : [[counter, "missing"]];
      return { anyOf: [atMost, ...none, ...own] };
    });
  }

  /** A reentrant owner's earlier seat is taken over, or there is none. */
  #onlyOne(gone: readonly SeatRecord[]): Condition[] {
    const { kind, reentrantOwner } = this.#terms;
    if (reentrantOwner === undefined) return [];
    const isOwn = (seat: SeatRecord): boolean => seat.seat.kind === kind && isOpenTo(seat, reentrantOwner);
    return gone.some(isOwn) ? [] : [[ownerAttribute(kind, reentrantOwner), "missing"]];
  }
}

/** Takes another's seat away. It is marked as broken, so that its holder does not take it for its own release. */
export function breakSeat(seat: SeatRecord): Write {
  const write = removal(leaseItemKey(seat.key, seat.sortKey), seat);
  const { [releasedToken]: _, ...cooldown } = write.set;
  return { ...write, set: { ...(seat.inCooldown ? cooldown : write.set), [brokenToken]: seat.token } };
}

/** Asks the holder of a seat to stop. */
export function askSeatToStop({ key, sortKey }: LeaseAddress, token: string, reason: string): Write {
  return {
    key: leaseItemKey(key, sortKey),
    set: { [revocationAttribute(token)]: reason },
    insist: [[fenceAttribute(token), "exists"]],
  };
}

/** What an item shows only while this very seat is taken. */
export function proofOf({ token, fencingToken }: Pick<LeaseRecord, "token" | "fencingToken">): Test[] {
  return [[fenceAttribute(token), "=", fencingToken]];
}

function removal(key: ItemKey, seat: SeatRecord): Write {
  const set = { ...counted([seat]), [releasedToken]: seat.token };
  return { key, set, remove: attributesOf(seat), insist: proofOf(seat) };
}

/** Nobody has renewed it since it was judged: its text still has the version that it had then, or an earlier one. */
function unchanged({ token, version }: SeatRecord): Test {
  return [textAttribute(token), "<", versionText(version + 1)];
}

/** The counters, once seats have gone and another has come. */
function counted(gone: readonly SeatRecord[], come?: Seat): Record<string, Count> {
  const set: Record<string, Count> = {};
  for (const [kind, counter] of Object.entries(seatCounters)) {
    const by = (come?.kind === kind ? come.permits : 0) - takenBy(gone, kind as SeatKind);
    if (by !== 0) set[counter] = { of: counter, from: 0, by };
  }
  return set;
}

function hasSeat(lease: LeaseRecord): lease is SeatRecord {
  return lease.seat !== undefined;
}

function withSeat(shown: LeaseRecord, { kind, permits }: Seat): SeatRecord {
  return { ...shown, seat: shown.seat ?? { kind, permits } };
}
