/** Tickets as their item shows them. What another program has written in their place is no ticket, or one that has expired. */
import type { HoldEstimate } from "../protocol/hold-estimate.ts";
import type { Item } from "../store.ts";
import { numberPrefix, queueAttributeNames, queueLimits, ticketPrefix } from "./schema.ts";

/** A ticket as it was seen, or as it is to be. */
export interface WrittenTicket {
  readonly id: string;
  readonly text: string;
}

/** What a ticket says of its waiter. */
export interface TicketTerms {
  /** When the waiter came, in epoch milliseconds of its own clock. */
  readonly since: number;
  /** When the ticket expires unless it is renewed, in epoch milliseconds of its own clock. */
  readonly until: number;
  /** How long an observer has to see it unchanged before it has expired for that observer. */
  readonly leaseMs: number;
  /** The fencing token of the use whose end the waiter has seen; undefined for a waiter that only checks in. */
  readonly answered: number | undefined;
  /** What the waiter asks for, by its form's own word; undefined where a lease excludes every other. */
  readonly shape: string | undefined;
  /** Its label, cut to 64 bytes. */
  readonly owner: string;
}

/** One waiter's ticket. */
export interface QueueTicket extends WrittenTicket, TicketTerms {
  /** Waiters are served in the order of these numbers. */
  readonly number: number;
}

/** One waiter, as a look shows it. */
export interface WaitingCaller extends Pick<TicketTerms, "owner" | "since"> {
  /** 1 for the waiter whose turn comes next. */
  readonly position: number;
}

/** How long holders keep the lease, which of its uses ended last, and when. */
export interface HoldNote extends HoldEstimate {
  readonly fencingToken: number;
  /** In epoch milliseconds of the last holder's clock. */
  readonly endedAt: number;
}

const radix = 36;
const none = "-";

function numbersText(numbers: readonly (number | undefined)[]): string {
  return numbers.map((number) => (number === undefined ? none : Math.ceil(number).toString(radix))).join(" ");
}

/** Writes a ticket's text. */
export function ticketText({ since, until, leaseMs, answered, shape = none, owner }: TicketTerms): string {
  return `${numbersText([since, until, leaseMs, answered])} ${shape} ${shortOwner(owner)}`;
}

/** Cuts an owner to what a ticket holds of it, between characters. */
export function shortOwner(owner: string): string {
  const { read } = new TextEncoder().encodeInto(owner, new Uint8Array(queueLimits.ownerBytes));
  return owner.slice(0, read);
}

/** Reads all tickets of an item, in their order. */
export function ticketsIn(item: Item = {}): QueueTicket[] {
  const tickets: QueueTicket[] = [];
  for (const [name, number] of Object.entries(item)) {
    if (!name.startsWith(numberPrefix) || typeof number !== "number" || Number.isNaN(number)) continue;
    const id = name.slice(numberPrefix.length);
    const text = item[ticketPrefix + id] ?? "";
    if (typeof text !== "string") continue;
    const [since, until, leaseMs, answered, shape, ...owner] = text.split(" ");
    const read = (digits: string | undefined): number => Number.parseInt(digits ?? "", radix) || 0;
    tickets.push({
      id,
      text,
      number,
      since: read(since),
      until: read(until),
      leaseMs: read(leaseMs),
      answered: answered === none ? undefined : read(answered),
      shape: shape === none ? undefined : shape,
      owner: owner.join(" "),
    });
  }
  return tickets.sort((one, other) => one.number - other.number);
}

/** Numbers waiters, which are given in the order of their turns. */
export function inLine(tickets: readonly QueueTicket[]): WaitingCaller[] {
  return tickets.map(({ owner, since }, index) => ({ owner, since, position: index + 1 }));
}

/** Writes what a release notes. */
export function holdText({ typicalMs, spreadMs, fencingToken, endedAt }: HoldNote): string {
  return numbersText([typicalMs, spreadMs, fencingToken, endedAt]);
}

/** Reads what the last release has noted; undefined where there is nothing, for it only helps. */
export function holdNoteIn(item: Item | undefined): HoldNote | undefined {
  const text = item?.[queueAttributeNames.holds];
  if (typeof text !== "string") return undefined;
  const [typicalMs = -1, spreadMs = -1, fencingToken = 0, endedAt = 0] = text
    .split(" ")
    .map((digits) => Number.parseInt(digits, radix));
  return typicalMs >= 0 && spreadMs >= 0 ? { typicalMs, spreadMs, fencingToken, endedAt } : undefined;
}

/** The number that was given last; 0 for an item that has never had a line. */
export function lastNumberIn(item: Item | undefined): number {
  const number = item?.[queueAttributeNames.lastTicket];
  return typeof number === "number" ? number : 0;
}
