/**
 * The callers that wait for a lease, as the lease's own item shows them. A newcomer, the head of the line and the
 * holder all use one item, so every rule about them is a condition of one write. Another program's value in place of a
 * ticket counts as no ticket, or as an expired one.
 */

import { brandClass } from "../../base/brand.ts";
import { LeaseError, quoted } from "../../base/errors.ts";
import { isWhole, latestTime } from "../../base/item-values.ts";
import { limits } from "../../base/schema.ts";
import type { Item } from "../../base/store.ts";
import type { HoldEstimate } from "../../core/hold-estimate.ts";

/** The attributes that a line adds to those of the lease. */
export const queueAttributeNames = {
  /** N: the last number that was given to a waiter; grows by one with every waiter that joins. */
  lastTicket: "lastTicket",
  /** N: how many tickets the item has; each write that adds or removes tickets updates it. */
  waiting: "waiting",
  /** S: how long holders keep the lease, which hold ended last, and when. */
  holds: "holds",
} as const;

/** N: the number of a ticket. The rest of the name is the ticket's id. */
export const numberPrefix = "q:";

/** S: a ticket's description of its waiter. The rest of the name is the ticket's id. */
export const ticketPrefix = "w:";

/** Bounds of a line. */
export const queueLimits = {
  /** A ticket takes up to 150 bytes of the item; this many leave most of an item's 400 KB to the holder's payload. */
  mostWaiters: 500,
  /** A waiter's owner is cut to this length, because every write of the item is billed for it. */
  ownerBytes: 64,
  /** The limit for a fair holder's payload. Beside a larger payload of another holder, DynamoDB refuses new tickets. */
  dataBytes: 262_144,
  /** DynamoDB's limit for an expression is 4 KB; each removal takes some 30 bytes of the longest one. */
  removalsPerWrite: 40,
} as const;

/** A ticket as it was read, or as it will be written. */
export interface WrittenTicket {
  readonly id: string;
  readonly text: string;
}

/** A ticket's description of its waiter. */
export interface TicketTerms {
  /** When the waiter came, in epoch milliseconds of its own clock. */
  readonly since: number;
  /** When the ticket expires unless it is renewed, in epoch milliseconds. */
  readonly until: number;
  /**
   * Whether `until` comes from the waiter's own clock, because it did not know the service's time: observers go by
   * their own observation.
   */
  readonly ownClock: boolean;
  /** How long an observer has to see the ticket unchanged until it counts as expired for that observer. */
  readonly leaseMs: number;
  /** Whether the waiter looks at the line all the time, so that it soon shows that it is alive; false for check-ins. */
  readonly isWatching: boolean;
  /** What the waiter asks for, as an opaque label such as `permit:2`; undefined for an exclusive lease. */
  readonly shape: string | undefined;
  /** The waiter's label, cut to 64 bytes. */
  readonly owner: string;
}

/** A ticket that will be written. */
export type NewTicket = WrittenTicket & Pick<TicketTerms, "until">;

/** A line as one answer shows it: its tickets in the order of their numbers, including expired ones. */
export interface QueueSnapshot {
  readonly item: Item | undefined;
  readonly tickets: readonly QueueTicket[];
}

/** One waiter's ticket. */
export interface QueueTicket extends WrittenTicket, TicketTerms {
  /** Waiters are served in the order of these numbers. */
  readonly number: number;
}

/** One waiter, as `inspect` shows it. */
export interface WaitingCaller extends Pick<TicketTerms, "owner" | "since"> {
  /** 1 for the waiter whose turn comes next. */
  readonly position: number;
}

/** How long holders keep the lease, which hold ended last, and when. */
export interface HoldNote extends HoldEstimate {
  readonly fencingToken: number;
  /** Epoch milliseconds; undefined if the last holder did not know the service's time. */
  readonly endedAt: number | undefined;
}

/** How many characters of a token distinguish waiters: 62 random bits of a UUID. */
export const ticketIdLength = 16;

/** Returns the ticket id of a caller that acquires under a token. Tokens have to differ in their last 16 characters. */
export function ticketIdOf(token: string): string {
  return token.replaceAll("-", "").slice(-ticketIdLength);
}

const radix = 36;
const none = "-";
const watching = "w";
const ofOwnClock = "o";

function textOf(...numbers: readonly number[]): string {
  return numbers.map((number) => Math.ceil(number).toString(radix)).join(" ");
}

/** Writes a ticket's text. */
export function ticketText(terms: TicketTerms): string {
  const { since, until, leaseMs, isWatching, ownClock, shape = none, owner } = terms;
  const { read } = new TextEncoder().encodeInto(owner, new Uint8Array(queueLimits.ownerBytes));
  const times = textOf(since, until, leaseMs);
  const flags = `${isWatching ? watching : none}${ownClock ? ofOwnClock : ""}`;
  return `${times} ${flags} ${shape} ${owner.slice(0, read)}`;
}

/** Reads all tickets of an item, in their order. */
export function ticketsIn(item: Item = {}): QueueTicket[] {
  const tickets: QueueTicket[] = [];
  for (const [name, number] of Object.entries(item)) {
    if (!name.startsWith(numberPrefix) || typeof number !== "number" || Number.isNaN(number)) continue;
    const id = name.slice(numberPrefix.length);
    const text = item[ticketPrefix + id];
    if (typeof text !== "string") continue;
    const [since, until, leaseMs, flags = "", shape, ...owner] = text.split(" ");
    const read = (digits = "", most = latestTime): number => {
      const value = Number.parseInt(digits, radix);
      return isWhole(value, most) ? value : 0;
    };
    tickets.push({
      ...{ id, text, number, owner: owner.join(" ") },
      ...{ since: read(since), until: read(until), leaseMs: read(leaseMs, limits.durationMs) },
      isWatching: !flags.startsWith(none),
      ownClock: flags.endsWith(ofOwnClock),
      shape: shape === none ? undefined : shape,
    });
  }
  return tickets.sort((one, other) => one.number - other.number);
}

/** Writes a release's note of how long the lease was held. */
export function holdText({ typicalMs, spreadMs, fencingToken, endedAt }: HoldNote): string {
  return textOf(typicalMs, spreadMs, fencingToken, ...(endedAt === undefined ? [] : [endedAt]));
}

/** Reads the note of the last release; undefined if it is unreadable, because it is only a help. */
export function holdNoteIn(item: Item | undefined): HoldNote | undefined {
  const text = item?.[queueAttributeNames.holds];
  if (typeof text !== "string") return undefined;
  const numbers = text.split(" ").map((digits) => Number.parseInt(digits, radix));
  const [typicalMs, spreadMs, fencingToken, endedAt] = numbers;
  const isKnown = isWhole(typicalMs) && isWhole(spreadMs) && isWhole(fencingToken);
  if (!isKnown || !(endedAt === undefined || isWhole(endedAt))) return undefined;
  return { typicalMs, spreadMs, fencingToken, endedAt };
}

/** The line is full. Nothing is held, and the caller has no ticket. */
export class QueueFullError extends LeaseError {
  static {
    brandClass(QueueFullError, "QueueFullError");
  }
  declare readonly key: string;
  /** How many callers wait. */
  declare readonly waiting: number;
  /** How many callers may wait. */
  declare readonly maxWaiters: number;

  constructor(key: string, waiting: number, maxWaiters: number) {
    super(
      "LEASE_QUEUE_FULL",
      `${waiting} wait for the lock ${quoted(key)} already, and ${maxWaiters} may: try again later, or raise maxWaiters`,
      { key, waiting, maxWaiters },
    );
  }
}
