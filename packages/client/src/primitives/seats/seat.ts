/**
 * Seats: several leases that share one item, so that one condition can limit their number. Each lease has a seat, and
 * the item counts what the seats take. A counter always equals the sum over the seats of its kind. An item is refused if
 * it does not, or if a seat is unreadable: nothing could be judged by it.
 */

import { LeaseItemError } from "../../base/errors.ts";
import { addressOf, latestTime, parsedJson } from "../../base/item-values.ts";
import type { LeaseRecord, Pause, Seat, SeatKind } from "../../base/lease-record.ts";
import { attributeNames, isCooldownToken } from "../../base/schema.ts";
import type { Item } from "../../base/store.ts";

/** Sort keys of the items of seats: a semaphore's permits, and a read-write lock's readers and writers. */
export const seatSortKeys = { semaphore: "semaphore", readWrite: "read-write" } as const;

/** Whether the leases at a sort key are seats of one item. */
export function isSeatSortKey(sortKey: unknown): boolean {
  return sortKey === seatSortKeys.semaphore || sortKey === seatSortKeys.readWrite;
}

/** N: how much the seats of each kind take together. */
export const seatCounters: Readonly<Record<SeatKind, string>> = {
  permit: "permits",
  read: "readers",
  write: "writers",
  intent: "intents",
};

/** N: the `permits` of the last admitted caller's semaphore; informational. */
export const permitsOfAttribute = "permitsOf";

/** Limits of an item of seats. */
export const seatLimits = {
  /** A seat takes about 200 bytes of the item's 400 KB, and more with a long owner or a payload. */
  mostSeats: 1000,
  /** Our own limit: every write of the item is billed for the payloads of all seats. */
  dataBytes: 4096,
  /** Enough for one renewal a second for 31 years, and a tenth of what a seat's text has room for. */
  handleVersion: 1_000_000_000,
  /** DynamoDB allows 300 operators and 4 KB in an expression. */
  passedPerWrite: 60,
} as const;

/** A lease that has a seat. */
export type SeatRecord = LeaseRecord & { readonly seat: Seat };

/**
 * S: the seat's text, see {@link seatText}. The rest of the name is the seat's token, as in the next two attributes.
 */
export const textPrefix = "s:";
/**
 * N: the seat's fencing token. It proves the seat: the name has the token, and no copy of a write can repeat the
 * number.
 */
export const fencePrefix = "f:";
/** S: why the holder is asked to stop; absent while nobody asks. */
export const revocationPrefix = "r:";

/** N: present while this owner has a reentrant seat of this kind. So an owner has at most one of them. */
export function ownerAttribute(kind: SeatKind, owner: string): string {
  return `o:${kind}:${owner}`;
}

/** The mark that a seat has left; undefined without a reentrant owner. */
export function markOfSeat({ owner, reentrant, seat }: SeatRecord): string | undefined {
  return reentrant ? ownerAttribute(seat.kind, owner) : undefined;
}

export const versionDigits = 10;

/** Versions as text have one length, so that texts compare as their versions do: a later text is the greater one. */
export function versionText(version: number): string {
  return String(version).padStart(versionDigits, "0");
}

/**
 * Writes a seat's text: the version of its last write, and the rest as JSON. The token and the fencing token are in
 * attributes of their own. `data` is JSON text.
 */
export function seatText(
  lease: Pick<
    SeatRecord,
    "seat" | "owner" | "version" | "acquiredAt" | "expiresAt" | "ownClock" | "leaseDurationMs" | "reentrant"
  >,
  data: string | undefined,
): string {
  const { seat, owner, version, acquiredAt, expiresAt, leaseDurationMs } = lease;
  const fields = [seat.kind, seat.permits, acquiredAt, expiresAt, leaseDurationMs, flagsOf(lease), owner];
  const json = JSON.stringify(fields);
  return `${versionText(version)} ${data === undefined ? json : `${json.slice(0, -1)},${data}]`}`;
}

/** The boolean properties of a seat, as bits. */
export const seatFlags = { reentrant: 1, ownClock: 2 } as const;

function flagsOf(lease: Pick<LeaseRecord, "reentrant" | "ownClock">): number {
  return (lease.reentrant ? seatFlags.reentrant : 0) | (lease.ownClock ? seatFlags.ownClock : 0);
}

/** Returns a token's own seat; undefined if it has none. Other seats are not read. Throws LeaseItemError. */
export function seatOf(item: Item | undefined, token: string): SeatRecord | undefined {
  return item?.[textPrefix + token] === undefined ? undefined : readSeat(item, token);
}

/** Returns all seats of an item, in the order in which they were taken. Throws LeaseItemError. */
export function seatsIn(item: Item = {}): readonly SeatRecord[] {
  const texts = Object.keys(item).filter((attribute) => attribute.startsWith(textPrefix));
  const seats = texts.map((attribute) => readSeat(item, attribute.slice(textPrefix.length)));
  for (const [kind, counter] of Object.entries(seatCounters)) {
    const sum = takenBy(seats, kind as SeatKind);
    const isCounted = (item[counter] ?? 0) === sum;
    if (!isCounted) throw refusal(item, counter, "differs from what the seats take", `${sum}, or no seat`);
  }
  return seats.sort((one, other) => one.fencingToken - other.fencingToken);
}

/** Whether an item of seats exists only for a pause: no other caller has had a seat in it. */
export function isPauseAlone(item: Item): boolean {
  const { partitionKey, sortKey, fence, releasedToken, pauseToken, timeToLive } = attributeNames;
  const token = item[pauseToken];
  if (token === undefined || (item[releasedToken] ?? token) !== token) return false;
  const own = [partitionKey, sortKey, fence, releasedToken, pauseToken, timeToLive];
  const ofSeat = [textPrefix, fencePrefix, revocationPrefix].map((prefix) => prefix + token);
  const known = new Set([...own, ...Object.values(seatCounters), ...ofSeat]);
  return Object.keys(item).every((attribute) => known.has(attribute));
}

/** Counts what the seats of a kind take. */
export function takenBy(seats: readonly { readonly seat: Seat }[], kind: SeatKind): number {
  return seats.reduce((sum, { seat }) => sum + (seat.kind === kind ? seat.permits : 0), 0);
}

function readSeat(item: Item, token: string): SeatRecord {
  const text = String(item[textPrefix + token]);
  const version = Number(text.slice(0, versionDigits));
  const fencingToken = item[fencePrefix + token];
  const fields = parsedJson(text.slice(versionDigits + 1))?.value;
  const [kind, permits, acquiredAt, expiresAt, leaseDurationMs, bits, owner, data] = Array.isArray(fields)
    ? fields
    : [];
  const numbers = [version, fencingToken, permits, acquiredAt, expiresAt, leaseDurationMs, bits];
  const isSeat = typeof kind === "string" && Object.hasOwn(seatCounters, kind) && typeof owner === "string";
  // Without the token, which allows its bearer to end the lease.
  if (!isSeat || !numbers.every(isCount))
    throw refusal(item, `${textPrefix}…`, "is not a seat's", "what this package writes");
  const revocation = item[revocationPrefix + token];
  return {
    ...addressOf(item),
    seat: { kind: kind as SeatKind, permits },
    ...{
      owner,
      token,
      version,
      fencingToken: Number(fencingToken),
      acquiredAt,
      expiresAt,
      leaseDurationMs,
      data,
    },
    inCooldown: isCooldownToken(token),
    reentrant: (bits & seatFlags.reentrant) !== 0,
    ...((bits & seatFlags.ownClock) !== 0 && { ownClock: true }),
    revocation: revocation === undefined ? undefined : String(revocation),
    // An operator's client has written a pause's payload.
    ...(item[attributeNames.pauseToken] === token && { pause: Object(data) as Pause }),
  };
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= latestTime;
}

function refusal(item: Item, attribute: string, finding: string, allowed: string): LeaseItemError {
  return new LeaseItemError(addressOf(item), attribute, finding, allowed);
}
