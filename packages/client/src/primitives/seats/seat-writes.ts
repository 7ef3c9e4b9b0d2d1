/**
 * The statements of seats: several leases in one item, which counts what they take. A write that removes seats insists
 * that they are there, and counts them: so the counters always equal the seats.
 *
 * `#Seat` is a seat's text, `#SeatFence` its number, `#Wish` the wish that it ends, and `#Mark` says that a reentrant owner
 * has one; of seats that are passed, `#S1`, `#F1`, `#R1` and `#O1`.
 */

import type { Seat, SeatKind } from "../../base/lease-record.ts";
import { cooldownToken, leaseItemKey } from "../../base/schema.ts";
import { type LeaseAddress, notRevoked, type Proof, tokenRevoked } from "../../statements/lock.ts";
import {
  type Names,
  type Part,
  type Statement,
  say,
  times,
  type Values,
  Write,
} from "../../statements/statement.ts";
import {
  fencePrefix,
  markOfSeat,
  revocationPrefix,
  type SeatRecord,
  seatCounters,
  seatText,
  takenBy,
  textPrefix,
  versionText,
} from "./seat.ts";

const seated: Part = {
  set:
    "#Seat = :seat, #SeatFence = if_not_exists(#fence, :fromFence) + :byFence, " +
    "#fence = if_not_exists(#fence, :fromFence) + :byFence, #ttl = :ttl",
};
/** A second copy of one write is refused. */
const seatNew: Part = { when: "attribute_not_exists(#SeatFence)" };
const seatMine: Part = { when: "#SeatFence = :seatFence" };
const seatProlonged: Part = { set: "#Seat = :seat" };
const ttlSet: Part = { set: "#ttl = :ttl" };
/** A pause, which may last longer, has set a later one. */
const ttlGrown: Part = { set: "#ttl = if_not_exists(#ttl, :fromTtl) + :byTtl" };
/** A renewal that arrives late does not shorten a newer one. */
const seatNewer: Part = { when: "#Seat < :newSeat" };
const seatNotAsked: Part = { when: "attribute_not_exists(#Wish)" };
const seatGone: Part = { remove: "#Seat, #SeatFence, #Wish" };
const seatClosed: Part = { set: "#ClosedSeat = :closedSeat, #ClosedFence = :seatFence" };
const seatThere: Part = { when: "attribute_exists(#SeatFence)" };
const ttlThere: Part = { set: "#ttl = if_not_exists(#ttl, :ttl)" };

/** An owner has one reentrant seat of a kind at most. */
const marked: Part = { set: "#Mark = :marked" };
const unmarked: Part = { when: "attribute_not_exists(#Mark)" };
const markGone: Part = { remove: "#Mark" };
const permitsNoted: Part = { set: "#permitsOf = :permitsOf" };

/** Seats as they were judged: the numbers prove them, and nobody has renewed them since. */
const seatsGone = times((n) => ({
  remove: `#S${n}, #F${n}, #R${n}`,
  when: `#F${n} = :f${n} AND #S${n} < :s${n}`,
}));
const marksGone = times((n) => ({ remove: `#O${n}` }));

/** The same part of each kind of seat, by its counter. */
/* @__NO_SIDE_EFFECTS__ */
function byKind(partOf: (counter: string) => Part): Readonly<Record<SeatKind, Part>> {
  const parts = Object.entries(seatCounters).map(([kind, counter]) => [kind, partOf(counter)]);
  return Object.fromEntries(parts) as Record<SeatKind, Part>;
}

const seatsCounted = byKind((of) => ({ set: `#${of} = if_not_exists(#${of}, :zero) + :${of}` }));
const limited = byKind((of) => ({ when: `(#${of} <= :most_${of} OR attribute_not_exists(#${of}))` }));
/** A limit that nothing meets, as that of a semaphore without permits, refuses an item without counters too. */
const refused = byKind((of) => ({ when: `#${of} <= :most_${of}` }));
/** While its owner has another seat, no limit counts: a writer may read. */
const limitedUnlessExempt = byKind((of) => ({
  when: `(#${of} <= :most_${of} OR attribute_not_exists(#${of}) OR attribute_exists(#Exempt))`,
}));

const takesSeat = say(seated, seatNew, notRevoked);
const givesSeatBack = say(tokenRevoked, seatGone, seatMine);
const breaksSeat = say({ set: "#brokenToken = :brokenToken" }, seatGone, seatMine);
const cancelsSeat = say(tokenRevoked, seatGone, seatThere);
const revokesSeat = say(tokenRevoked, ttlThere, seatNew);
const asksSeatToStop = say({ set: "#Wish = :wish" }, seatThere);
const clearsSeats = say();
const renewsSeat = say(seatProlonged, seatMine, seatNewer);
const provesSeat = say(seatMine);

/** Takes a seat, whatever else is taken: its limits are added by {@link limit}. */
export function takeSeat(
  { key, sortKey }: LeaseAddress,
  { token, acquiredAt }: { readonly token: string; readonly acquiredAt: number },
  text: string,
  ttl: number,
): Write {
  const values = {
    ":seat": text,
    ":fromFence": acquiredAt,
    ":byFence": 1,
    ":ttl": ttl,
    ":ifReleasedToken": token,
  };
  const names = { "#Seat": textPrefix + token, "#SeatFence": fencePrefix + token };
  return new Write(leaseItemKey(key, sortKey), takesSeat, values, names).returning();
}

/** Insists on how much of a kind is taken at most, beside the seats that go; not while the `exempt` attribute is there. */
export function limit(
  write: Write,
  kind: SeatKind,
  most: number,
  gone: number,
  exempt: string | undefined,
): Write {
  const values = { [`:most_${seatCounters[kind]}`]: most + gone };
  if (exempt !== undefined) return write.and(limitedUnlessExempt[kind], values, { "#Exempt": exempt });
  return write.and((most < 0 ? refused : limited)[kind], values);
}

/** Counts seats that have gone, and one that has come. */
export function count(write: Write, gone: readonly { readonly seat: Seat }[], come?: Seat): Write {
  for (const kind of Object.keys(seatCounters) as SeatKind[]) {
    const by = (come?.kind === kind ? come.permits : 0) - takenBy(gone, kind);
    if (by !== 0) write.and(seatsCounted[kind], { ":zero": 0, [`:${seatCounters[kind]}`]: by });
  }
  return write;
}

/** Marks a reentrant owner's seat. `isPassed`: it takes the place of an earlier one, which had the same mark. */
export function mark(write: Write, attribute: string, isPassed: boolean): Write {
  write.and(marked, { ":marked": 1 }, { "#Mark": attribute });
  return isPassed ? write : write.and(unmarked);
}

/** Notes how many permits there are, for this caller. */
export function notePermits(write: Write, permits: number): Write {
  return write.and(permitsNoted, { ":permitsOf": permits });
}

/** Removes seats as they were judged, and counts them with the one that has come. All marks go but that one's. */
export function passSeats(write: Write, gone: readonly SeatRecord[], come?: Seat, ownMark?: string): Write {
  const names: Record<`#${string}`, string> = {};
  const values: Record<`:${string}`, string | number> = {};
  let marks = 0;
  for (const [index, seat] of gone.entries()) {
    const { token, version, fencingToken } = seat;
    const n = index + 1;
    names[`#S${n}`] = textPrefix + token;
    names[`#F${n}`] = fencePrefix + token;
    names[`#R${n}`] = revocationPrefix + token;
    values[`:f${n}`] = fencingToken;
    // Its text still has the version that it had then, or an earlier one.
    values[`:s${n}`] = versionText(version + 1);
    const itsMark = markOfSeat(seat);
    if (itsMark === undefined || itsMark === ownMark) continue;
    marks += 1;
    names[`#O${marks}`] = itsMark;
  }
  if (gone.length > 0) write.and(seatsGone(gone.length), values, names);
  if (marks > 0) write.and(marksGone(marks));
  return count(write, gone, come);
}

/** Removes seats whose time is over, as they were judged. */
export function clearSeats({ key, sortKey }: LeaseAddress, gone: readonly SeatRecord[]): Write {
  return passSeats(new Write(leaseItemKey(key, sortKey), clearsSeats), gone);
}

/** Takes back a seat that may be there. `ownMark`: of a reentrant owner. */
export function cancelSeat(
  { key, sortKey }: LeaseAddress,
  token: string,
  seat: Seat,
  ownMark: string | undefined,
): Write {
  const write = new Write(
    leaseItemKey(key, sortKey),
    cancelsSeat,
    { ":releasedToken": token },
    seatNames(token),
  );
  if (ownMark !== undefined) write.and(markGone, undefined, { "#Mark": ownMark });
  return count(write, [{ seat }]);
}

/** Revokes a token whose seat is not there. The item's ttl stays, or there is one from now on. */
export function revokeSeat({ key, sortKey }: LeaseAddress, token: string, ttl: number): Write {
  const values = { ":releasedToken": token, ":ttl": ttl };
  const names = { "#SeatFence": fencePrefix + token };
  return new Write(leaseItemKey(key, sortKey), revokesSeat, values, names).returning();
}

/** Removes a seat as its holder does. */
export function removeSeat(seat: SeatRecord): Write {
  return count(seatWithout(seat, givesSeatBack, { ":releasedToken": seat.token }), [seat]);
}

/** A cooldown replaces the seat, under another token that nobody holds: the counters stay as they are. */
export function closeSeat(seat: SeatRecord, cooling: SeatRecord): Write {
  const write = seatWithout(seat, givesSeatBack, { ":releasedToken": seat.token });
  const token = cooldownToken(seat.token);
  const names = { "#ClosedSeat": textPrefix + token, "#ClosedFence": fencePrefix + token };
  return write.and(seatClosed, { ":closedSeat": seatText(cooling, undefined) }, names);
}

/** Removes another holder's seat, and marks it as broken: so the holder does not mistake this for its own release. */
export function breakSeat(seat: SeatRecord): Write {
  const write = seatWithout(seat, breaksSeat, { ":brokenToken": seat.token });
  // One in its cooldown was released before: by that mark its holder recognises its own release.
  if (!seat.inCooldown) write.and(tokenRevoked, { ":releasedToken": seat.token });
  return count(write, [seat]);
}

function seatWithout(seat: SeatRecord, statement: Statement, values: Values): Write {
  const { key, sortKey, token, fencingToken } = seat;
  const all = { ...values, ":seatFence": fencingToken };
  const write = new Write(leaseItemKey(key, sortKey), statement, all, seatNames(token));
  const itsMark = markOfSeat(seat);
  return itsMark === undefined ? write : write.and(markGone, undefined, { "#Mark": itsMark });
}

/** Prolongs a seat. `ttl`: put off by so much from what was seen; undefined where it stays. */
export function renewSeat(
  { key, sortKey }: LeaseAddress,
  { token, fencingToken }: Proof,
  version: number,
  text: string,
  ttl: { readonly seen: number; readonly wanted: number } | undefined,
): Write {
  const values = { ":seat": text, ":seatFence": fencingToken, ":newSeat": versionText(version) };
  const names = { "#Seat": textPrefix + token, "#SeatFence": fencePrefix + token };
  const write = new Write(leaseItemKey(key, sortKey), renewsSeat, values, names).returning();
  if (ttl === undefined) return write;
  if (ttl.seen === 0) return write.and(ttlSet, { ":ttl": ttl.wanted });
  return write.and(ttlGrown, { ":fromTtl": ttl.seen, ":byTtl": ttl.wanted - ttl.seen });
}

/** "Only while this very seat is there." */
export function seatHeld({ key, sortKey }: LeaseAddress, { token, fencingToken }: Proof): Write {
  const names = { "#SeatFence": fencePrefix + token };
  return new Write(leaseItemKey(key, sortKey), provesSeat, { ":seatFence": fencingToken }, names);
}

/** Adds to a renewal that its holder was not asked to stop: for a renewer that reads only what it has written. */
export function unlessAskedToStop(renewal: Write, token: string): Write {
  return renewal.and(seatNotAsked, undefined, { "#Wish": revocationPrefix + token });
}

/** Asks the holder of a seat to stop. */
export function askSeatToStop({ key, sortKey }: LeaseAddress, token: string, reason: string): Write {
  const names = { "#Wish": revocationPrefix + token, "#SeatFence": fencePrefix + token };
  return new Write(leaseItemKey(key, sortKey), asksSeatToStop, { ":wish": reason }, names);
}

function seatNames(token: string): Names {
  return {
    "#Seat": textPrefix + token,
    "#SeatFence": fencePrefix + token,
    "#Wish": revocationPrefix + token,
  };
}
