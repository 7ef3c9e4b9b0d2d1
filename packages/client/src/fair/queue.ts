import type { WrittenPlace } from "../expressions-fair.ts";
import { fairAttributeNames, fairLimits, placePrefix, ticketPrefix } from "../schema-fair.ts";
import type { Item } from "../store.ts";

/** One who waits, as a look shows it. */
export interface WaitingCaller {
  /** Its owner label, cut to 64 bytes. */
  readonly owner: string;
  /** When it came, in epoch milliseconds of its own clock. */
  readonly since: number;
  /** 1 for the one whose turn comes next. */
  readonly place: number;
}

/** A waiter's place as the table shows it. */
export interface QueuePlace extends WrittenPlace {
  /** Places are served in the order of their tickets. */
  readonly ticket: number;
  readonly owner: string;
  /** When it joined, in epoch milliseconds of its own clock. */
  readonly since: number;
  /** Until when it is to be believed unless it is prolonged, in epoch milliseconds of its own clock. */
  readonly until: number;
  /** How long an observer has to watch it unchanged before it may be passed over. */
  readonly leaseMs: number;
}

const radix = 36;

/** Numbers those who wait, who are given in the order of their turns. */
export function inLine(callers: readonly Pick<WaitingCaller, "owner" | "since">[]): WaitingCaller[] {
  return callers.map(({ owner, since }, index) => ({ owner, since, place: index + 1 }));
}

/** Writes a place's text. */
export function placeText(place: Pick<QueuePlace, "owner" | "since" | "until" | "leaseMs">): string {
  const { since, until, leaseMs, owner } = place;
  return [...[since, until, leaseMs].map((time) => Math.ceil(time).toString(radix)), owner].join(" ");
}

/** Cuts an owner to what a place holds of it, between characters. */
export function shortOwner(owner: string): string {
  const { read } = new TextEncoder().encodeInto(owner, new Uint8Array(fairLimits.ownerBytes));
  return owner.slice(0, read);
}

/** Reads all places of a fair lock's item, in their order. What another program has written there is no place. */
export function readQueue(item: Item = {}): QueuePlace[] {
  const places: QueuePlace[] = [];
  for (const name of Object.keys(item)) {
    if (!name.startsWith(ticketPrefix)) continue;
    const id = name.slice(ticketPrefix.length);
    const { [name]: ticket, [placePrefix + id]: text = "" } = item;
    if (typeof ticket !== "number" || Number.isNaN(ticket) || typeof text !== "string") continue;
    const [since = "", until = "", leaseMs = "", ...owner] = text.split(" ");
    const times = [since, until, leaseMs].map((time) => Number.parseInt(time, radix) || 0);
    const [from = 0, to = 0, lasting = 0] = times;
    const place = { id, text, ticket, owner: owner.join(" ") };
    places.push({ ...place, since: from, until: to, leaseMs: lasting });
  }
  return places.sort((one, other) => one.ticket - other.ticket);
}

/** For how long a holder typically holds the lock; undefined before the first release. */
export function typicalHold(item: Item | undefined): number | undefined {
  const typicalMs = item?.[fairAttributeNames.typicalHoldMs];
  // Only a guess: one that cannot be read is none.
  return typeof typicalMs === "number" && typicalMs >= 0 ? typicalMs : undefined;
}

/**
 * The share of a new hold in the typical one. Shorter ones count sooner: who expects its turn too late leaves the lock
 * idle, who expects it too early only looks once more.
 */
const shareOfShorter = 0.5;
const shareOfLonger = 0.2;

/** The typical hold after another one. */
export function typicalAfter(before: number | undefined, heldMs: number): number {
  if (before === undefined) return Math.round(heldMs);
  const share = heldMs < before ? shareOfShorter : shareOfLonger;
  return Math.round(before + (heldMs - before) * share);
}

/** The number that was given last; undefined for an item that has never had a queue. */
export function lastTicketOf(item: Item | undefined): number | undefined {
  const ticket = item?.[fairAttributeNames.lastTicket];
  return typeof ticket === "number" ? ticket : undefined;
}
