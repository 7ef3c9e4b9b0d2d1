/**
 * Seats as leases: reads those of an item, and writes a lease as a seat's text. An item whose counters do not equal
 * its seats, or with a seat that cannot be read, is refused: nothing could be judged by it.
 */
import { LeaseItemError } from "../errors/errors.ts";
import type { LeaseRecord } from "../record.ts";
import { attributeNames, isCooldownToken } from "../schema.ts";
import { parsedJson } from "../store/item-values.ts";
import type { Item } from "../store.ts";
import {
  fenceAttribute,
  ownerAttribute,
  revocationAttribute,
  type Seat,
  type SeatKind,
  seatCounters,
  splitText,
  textAttribute,
  tokenIn,
  versionText,
} from "./schema.ts";

/** A lease that has a seat. */
export type SeatRecord = LeaseRecord & { readonly seat: Seat };

/** What a seat's text says; the token and the fencing token are in attributes of their own. */
export type SeatContent = Pick<
  SeatRecord,
  "seat" | "owner" | "version" | "acquiredAt" | "expiresAt" | "leaseDurationMs" | "reentrant"
>;

/** Writes a seat's text; `data` is JSON text. */
export function seatText(content: SeatContent, data: string | undefined): string {
  const { seat, owner, version, acquiredAt, expiresAt, leaseDurationMs, reentrant } = content;
  const fields = [seat.kind, seat.permits, acquiredAt, expiresAt, leaseDurationMs, reentrant ? 1 : 0, owner];
  const json = JSON.stringify(fields);
  return `${versionText(version)} ${data === undefined ? json : `${json.slice(0, -1)},${data}]`}`;
}

/** Gives every attribute of a seat: all of them go with it. */
export function attributesOf({ token, owner, reentrant, seat }: SeatRecord): string[] {
  const mark = reentrant ? [ownerAttribute(seat.kind, owner)] : [];
  return [textAttribute(token), fenceAttribute(token), revocationAttribute(token), ...mark];
}

/** Gives a token's own seat; undefined where it has none. Other seats are not looked at. Throws LeaseItemError. */
export function seatOf(item: Item | undefined, token: string): SeatRecord | undefined {
  return item?.[textAttribute(token)] === undefined ? undefined : readSeat(item, token);
}

/** Gives all seats of an item, in the order in which they were taken. Throws LeaseItemError. */
export function seatsIn(item: Item | undefined): readonly SeatRecord[] {
  if (item === undefined) return [];
  const tokens = Object.keys(item).flatMap((attribute) => tokenIn(attribute) ?? []);
  const seats = tokens.map((token) => readSeat(item, token));
  for (const [kind, counter] of Object.entries(seatCounters)) {
    const sum = takenBy(seats, kind as SeatKind);
    const isCounted = (item[counter] ?? 0) === sum;
    if (!isCounted) throw refusal(item, counter, "differs from what the seats take", `${sum}, or no seat`);
  }
  return seats.sort((one, other) => one.fencingToken - other.fencingToken);
}

/** Counts what seats of a kind take. */
export function takenBy(seats: readonly { readonly seat: Seat }[], kind: SeatKind): number {
  return seats.reduce((sum, { seat }) => sum + (seat.kind === kind ? seat.permits : 0), 0);
}

function readSeat(item: Item, token: string): SeatRecord {
  const text = item[textAttribute(token)];
  const fencingToken = item[fenceAttribute(token)];
  const { version, json } = splitText(String(text));
  const fields = parsedJson(json)?.value;
  const numbers = [Number(version), fencingToken, ...(Array.isArray(fields) ? fields.slice(1, 6) : [])];
  const isReadable =
    Array.isArray(fields) && numbers.length === 7 && numbers.every(isCount) && isOfSeat(fields[0], fields[6]);
  // Without the token, which lets its bearer end the lease.
  if (!isReadable) throw refusal(item, textAttribute("…"), "is not a seat's", "what this package writes");
  const [kind, permits, acquiredAt, expiresAt, leaseDurationMs, reentrant, owner, data] = fields;
  const revocation = item[revocationAttribute(token)];
  return {
    key: String(item[attributeNames.partitionKey]),
    sortKey: String(item[attributeNames.sortKey]),
    seat: { kind, permits },
    owner,
    token,
    version: Number(version),
    fencingToken: Number(fencingToken),
    acquiredAt,
    expiresAt,
    leaseDurationMs,
    inCooldown: isCooldownToken(token),
    reentrant: reentrant === 1,
    data,
    revocation: revocation === undefined ? undefined : String(revocation),
  };
}

/** What comes to an end at a time that no Date can have has another program's times. */
const latestTime = 8_640_000_000_000_000;

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= latestTime;
}

function isOfSeat(kind: unknown, owner: unknown): boolean {
  return typeof kind === "string" && Object.hasOwn(seatCounters, kind) && typeof owner === "string";
}

function refusal(item: Item, attribute: string, finding: string, allowed: string): LeaseItemError {
  const { partitionKey, sortKey } = attributeNames;
  const address = { key: String(item[partitionKey]), sortKey: String(item[sortKey]) };
  return new LeaseItemError(address, attribute, finding, allowed);
}
