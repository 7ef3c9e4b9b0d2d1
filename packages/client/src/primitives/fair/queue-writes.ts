/**
 * The writes of a line, and what it adds to those of the lease. `waiting` counts the tickets: a write that removes a ticket
 * insists that it is there, so the count never drifts.
 *
 *     acquire   a newcomer: nobody waits; a waiter: its ticket is there, and goes. Expired tickets in front go too, if
 *               they are as they were judged
 *     join      there is room; the ticket's number is the service's own count, so that no clock has a part in the order
 *               (the count begins at the time: so no number comes again after ttl has removed the item)
 *     renew     the tickets are there
 *     leave     the ticket is there
 *
 * A write that passes unresponsive waiters also insists on {@link FreeAsJudged}: nobody has had the lease since.
 */

import { optionalWholeIn } from "../../base/item-values.ts";
import { attributeNames, type ItemKey, leaseItemKey, timeToLive } from "../../base/schema.ts";
import type { Item } from "../../base/store.ts";
import { notGrantedSince } from "../../statements/lock.ts";
import { type Names, type Part, say, times, Write } from "../../statements/statement.ts";
import {
  type NewTicket,
  numberPrefix,
  QueueFullError,
  type QueueSnapshot,
  type QueueTicket,
  queueLimits,
  ticketPrefix,
  type WrittenTicket,
} from "./queue-ticket.ts";

/** Which lease the line is for. */
export interface QueueKey {
  readonly key: string;
  readonly sortKey: string;
}

/** The lease that was judged free, where a write passes waiters that are unresponsive only while it is. */
export interface FreeAsJudged {
  /** The fencing token of its last use; 0 for none. */
  readonly fence: number;
  /** When that lease expired, if it was not released. A late renewal, and a late release, make the lease free anew. */
  readonly expiresAt: Item[string] | undefined;
}

/** Tickets as they were judged. `#Place` is a ticket's number, `#Ticket` its text, here and below. */
const ticketsGone = times((n) => ({
  remove: `#Place${n}, #Ticket${n}`,
  when: `#Ticket${n} = :ticket${n}`,
}));
const fewerWait: Part = { set: "#waiting = if_not_exists(#waiting, :gone) - :gone" };
/** A waiter that was passed and has joined anew has another number: an earlier turn's write, arriving late, is refused. */
const ownTurn: Part = { remove: "#Place, #Ticket", when: "#Place = :place" };
const nobodyWaits: Part = { when: "(attribute_not_exists(#waiting) OR #waiting = :ifWaiting)" };
const onlyTheyWait: Part = { when: "#waiting = :gone" };
const noExpiry: Part = { when: "attribute_not_exists(#expiresAt)" };
const expiryAsSeen: Part = { when: "#expiresAt = :seenExpiresAt" };
/** How long holders keep the lease. */
export const holdsNoted: Part = { set: "#holds = :holds" };

const joinsLine = say({
  set:
    "#lastTicket = if_not_exists(#lastTicket, :fromLastTicket) + :one, " +
    "#Place = if_not_exists(#lastTicket, :fromLastTicket) + :one, #Ticket = :ticket, #ttl = :ttl, " +
    "#waiting = if_not_exists(#waiting, :zero) + :more",
  when: "attribute_not_exists(#Place) AND (attribute_not_exists(#waiting) OR #waiting < :most)",
});
const ticketsRenewed = times((n) => ({ set: `#Ticket${n} = :ticket${n}`, when: `#Place${n} = :place${n}` }));
const leavesLine = say({ remove: "#Place, #Ticket", when: "attribute_exists(#Place)" }, fewerWait);
const removesTickets = say(fewerWait);

/**
 * An acquisition of a newcomer while nobody waits, or of a waiter, whose ticket it takes along. `passed` are tickets that may
 * be passed, as they were judged.
 */
export function inTurn(
  acquire: Write,
  own: Pick<QueueTicket, "id" | "number"> | undefined,
  passed: readonly WrittenTicket[],
  free?: FreeAsJudged,
): Write {
  const gone = passed.length + (own === undefined ? 0 : 1);
  if (gone > 0) acquire.and(fewerWait, { ":gone": gone });
  if (passed.length > 0) without(acquire, passed);
  if (own !== undefined) acquire.and(ownTurn, { ":place": own.number }, ticketNames(own.id));
  else if (passed.length > 0) acquire.and(onlyTheyWait);
  else acquire.and(nobodyWaits, { ":ifWaiting": 0 });
  return whileFree(acquire, free);
}

/** As many tickets as one write can remove. */
export function removable(tickets: readonly QueueTicket[]): readonly QueueTicket[] {
  return tickets.slice(0, queueLimits.removalsPerWrite);
}

/** What a joining is bound to. */
export interface JoinTerms {
  readonly maxWaiters: number;
  readonly retentionMs: number;
  /** In epoch milliseconds. */
  readonly now: number;
  /** What a joining insists on that passes tickets. @default - nothing */
  readonly free?: FreeAsJudged | undefined;
}

/**
 * Joins the line at its end, if there is room; where it is full, tickets that may be passed make room. A second copy is
 * refused by the ticket that the first has brought. Throws QueueFullError.
 */
export function joinIfRoom(
  queue: QueueKey,
  { item, tickets }: QueueSnapshot,
  passable: readonly QueueTicket[],
  { id, text, until }: NewTicket,
  { maxWaiters, retentionMs, now, free }: JoinTerms,
): Write {
  const living = tickets.length - passable.length;
  if (living >= maxWaiters) throw new QueueFullError(queue.key, living, maxWaiters);
  const passed = tickets.length >= maxWaiters ? removable(passable) : [];
  const shownTimeToLive = (item && optionalWholeIn(item, attributeNames.timeToLive)) ?? 0;
  const values = {
    ":fromLastTicket": Math.floor(now),
    ":one": 1,
    ":ticket": text,
    ":ttl": Math.max(shownTimeToLive, timeToLive(until, retentionMs)),
    ":zero": 0,
    ":more": 1 - passed.length,
    ":most": maxWaiters + passed.length,
  };
  const write = new Write(queueItemKey(queue), joinsLine, values, ticketNames(id)).returning();
  return passed.length === 0 ? write : whileFree(without(write, passed), free);
}

/** Renews tickets that are still there: all of them or none. */
export function renewTickets(
  queue: QueueKey,
  tickets: readonly (WrittenTicket & Pick<QueueTicket, "number">)[],
): Write {
  const values: Record<`:${string}`, string | number> = {};
  for (const [index, { text, number }] of tickets.entries()) {
    values[`:ticket${index + 1}`] = text;
    values[`:place${index + 1}`] = number;
  }
  return new Write(
    queueItemKey(queue),
    say(ticketsRenewed(tickets.length)),
    values,
    namesOfTickets(tickets),
  ).returning();
}

/** Leaves the line. */
export function leave(queue: QueueKey, id: string): Write {
  return new Write(queueItemKey(queue), leavesLine, { ":gone": 1 }, ticketNames(id)).returning();
}

/** Removes tickets as they were judged, where an acquisition cannot take them along. */
export function removeTickets(queue: QueueKey, passed: readonly WrittenTicket[], free?: FreeAsJudged): Write {
  const write = new Write(queueItemKey(queue), removesTickets, { ":gone": passed.length }).returning();
  return whileFree(without(write, passed), free);
}

function without(write: Write, passed: readonly WrittenTicket[]): Write {
  const texts: Record<`:${string}`, string> = {};
  for (const [index, { text }] of passed.entries()) texts[`:ticket${index + 1}`] = text;
  return write.and(ticketsGone(passed.length), texts, namesOfTickets(passed));
}

function whileFree(write: Write, free: FreeAsJudged | undefined): Write {
  if (free === undefined) return write;
  notGrantedSince(write, free.fence > 0 ? free.fence : undefined);
  if (free.expiresAt === undefined) return write.and(noExpiry);
  return write.and(expiryAsSeen, { ":seenExpiresAt": free.expiresAt });
}

function ticketNames(id: string): Names {
  return { "#Place": numberPrefix + id, "#Ticket": ticketPrefix + id };
}

function namesOfTickets(tickets: readonly WrittenTicket[]): Names {
  const names: Record<`#${string}`, string> = {};
  for (const [index, { id }] of tickets.entries()) {
    names[`#Place${index + 1}`] = numberPrefix + id;
    names[`#Ticket${index + 1}`] = ticketPrefix + id;
  }
  return names;
}

function queueItemKey({ key, sortKey }: QueueKey): ItemKey {
  return leaseItemKey(key, sortKey);
}
