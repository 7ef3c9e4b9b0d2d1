/**
 * What an item of seats holds. Several leases share one item, so that one condition can bound their number: each has a
 * seat, and the item counts what the seats take. A counter always equals the sum over the seats of its kind.
 */

/** Sort keys of the items of seats: a semaphore's permits, and a read-write lock's readers and writers. */
export const seatSortKeys = { semaphore: "semaphore", readWrite: "read-write" } as const;

/** Tells whether the leases at a sort key are seats of one item. */
export function isSeatSortKey(sortKey: unknown): boolean {
  return sortKey === seatSortKeys.semaphore || sortKey === seatSortKeys.readWrite;
}

/** What a seat is for; a writer that waits for readers to leave has an `intent`, which keeps new readers out. */
export type SeatKind = "permit" | "read" | "write" | "intent";

/** N: how much the seats of each kind take together. */
export const seatCounters: Readonly<Record<SeatKind, string>> = {
  permit: "permits",
  read: "readers",
  write: "writers",
  intent: "intents",
};

/** What a seat takes of its item. */
export interface Seat {
  readonly kind: SeatKind;
  /** How many permits it takes; 1 for every other kind. */
  readonly permits: number;
}

/** Attributes of one seat; the rest of each name is the seat's token. */
const prefixes = { text: "s:", fence: "f:", revocation: "r:" } as const;

/** S: the version of its last write, and then what the seat is, as JSON. */
export function textAttribute(token: string): string {
  return prefixes.text + token;
}

/** N: its fencing token. It proves the seat: the name holds the token, and no copy of a write can repeat the number. */
export function fenceAttribute(token: string): string {
  return prefixes.fence + token;
}

/** S: why its holder is asked to stop; absent while nobody asks. */
export function revocationAttribute(token: string): string {
  return prefixes.revocation + token;
}

/** N: there while this owner has a seat of this kind that it took reentrantly. So an owner has one of them at most. */
export function ownerAttribute(kind: SeatKind, owner: string): string {
  return `o:${kind}:${owner}`;
}

/** Gives the token of a seat's text attribute; undefined for every other attribute. */
export function tokenIn(attribute: string): string | undefined {
  return attribute.startsWith(prefixes.text) ? attribute.slice(prefixes.text.length) : undefined;
}

const versionDigits = 10;

/** Versions as text have one length, so that texts compare as their versions do: a later text is the greater one. */
export function versionText(version: number): string {
  return String(version).padStart(versionDigits, "0");
}

/** Gives the version that a seat's text begins with, and the JSON behind it. */
export function splitText(text: string): { readonly version: string; readonly json: string } {
  return { version: text.slice(0, versionDigits), json: text.slice(versionDigits + 1) };
}

/** Bounds of an item of seats. */
export const seatLimits: {
  readonly mostSeats: number;
  readonly dataBytes: number;
  readonly passedPerWrite: number;
} = {
  /** A seat takes about 200 bytes of the item's 400 KB, and more with a long owner or a payload. */
  mostSeats: 1000,
  /** Ours: every write of the item is billed for the payloads of all seats. */
  dataBytes: 4 * 1024,
  /** DynamoDB allows 300 operators and 4 KB in an expression. */
  passedPerWrite: 100,
};
