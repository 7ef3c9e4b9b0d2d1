/**
 * The writes of a line, and what it adds to those of the lease. `waiting` counts the tickets: a write that removes a ticket
 * insists that it is there, so the count never drifts.
 *
 *     acquire   a newcomer: nobody waits; a waiter: its ticket is there, and goes. Expired tickets in front go too, if
 *               they are as they were judged
 *     release   notes how long holders keep the lease
 *     join      there is room; the ticket's number is the service's own count, so that no clock has a part in the order
 *     renew     the tickets are there
 *     leave     the ticket is there
 */

import { attributeNames, leaseItemKey, timeToLive } from "../schema.ts";
import { optionalWholeIn } from "../store/item-values.ts";
import { type Amendment, amended, type Count, type Write } from "../store/write.ts";
import type { Item } from "../store.ts";
import { QueueFullError } from "./errors.ts";
import type { QueueTicket, WrittenTicket } from "./queue-ticket.ts";
import { numberPrefix, queueAttributeNames, queueLimits, ticketPrefix } from "./schema.ts";

const { lastTicket, waiting, holds } = queueAttributeNames;

/** Which lease the line is for. */
export interface QueueKey {
  readonly key: string;
  readonly sortKey: string;
}

/** What an acquisition does to the line. */
export interface Turn {
  /** The ticket of the caller that acquires; undefined for a newcomer. */
  readonly own: Pick<QueueTicket, "id" | "number"> | undefined;
  /** Tickets that have expired, as they were judged. */
  readonly passed: readonly WrittenTicket[];
}

/** An acquisition of a newcomer while nobody waits, or of a waiter, whose ticket it takes along. */
export function inTurn(acquire: Write, { own, passed }: Turn): Write {
  const { remove = [], insist = [] } = removal(passed);
  const removed = passed.length + (own === undefined ? 0 : 1);
  const set = removed > 0 ? { [waiting]: countedDown(removed) } : {};
  if (own !== undefined) {
    // A waiter that was passed and has joined anew has another number: an earlier turn's write, arriving late, is refused.
    const mine: Amendment = {
      set,
      remove: attributesOf(own),
      insist: [[numberPrefix + own.id, "=", own.number]],
    };
    return amended(amended(acquire, { remove, insist }), mine);
  }
  const alone: Amendment["insist"] =
    removed > 0
      ? [[waiting, "=", removed]]
      : [
          {
            anyOf: [
              [waiting, "missing"],
              [waiting, "=", 0],
            ],
          },
        ];
  return amended(acquire, { set, remove, insist: [...insist, ...alone] });
}

/** A release that notes how long holders keep the lease. */
export function noteHold(release: Write, note: string): Write {
  return amended(release, { set: { [holds]: note } });
}

/** What a look has shown of a line, and which of its tickets may be passed. */
export interface ShownQueue {
  readonly item: Item | undefined;
  readonly tickets: readonly QueueTicket[];
  readonly passable: readonly QueueTicket[];
}

/** As many tickets as one write can remove. */
export function removable(tickets: readonly QueueTicket[]): readonly QueueTicket[] {
  return tickets.slice(0, queueLimits.removalsPerWrite);
}

/**
 * Joins the line at its end, if there is room; where it is full, tickets that may be passed make room. A second copy is
 * refused by the ticket that the first has brought. Throws QueueFullError.
 */
export function joinIfRoom(
  queue: QueueKey,
  { item, tickets, passable }: ShownQueue,
  { id, text, until }: WrittenTicket & { readonly until: number },
  maxWaiters: number,
  retentionMs: number,
): Write {
  const living = tickets.length - passable.length;
  if (living >= maxWaiters) throw new QueueFullError(queue.key, living, maxWaiters);
  const passed = tickets.length >= maxWaiters ? removable(passable) : [];
  const { remove = [], insist = [] } = removal(passed);
  const next: Count = { of: lastTicket, from: 0, by: 1 };
  const shownTimeToLive = (item && optionalWholeIn(item, attributeNames.timeToLive)) ?? 0;
  return {
    key: leaseItemKey(queue.key, queue.sortKey),
    set: {
      [lastTicket]: next,
      [numberPrefix + id]: next,
      [ticketPrefix + id]: text,
      [waiting]: { of: waiting, from: 0, by: 1 - passed.length },
      [attributeNames.timeToLive]: Math.max(shownTimeToLive, timeToLive(until, retentionMs)),
    },
    remove,
    insist: [
      [numberPrefix + id, "missing"],
      {
        anyOf: [
          [waiting, "missing"],
          [waiting, "<", maxWaiters + passed.length],
        ],
      },
      ...insist,
    ],
    returnsItem: true,
  };
}

/** Renews tickets that are still there: all of them or none. */
export function renewTickets(
  queue: QueueKey,
  tickets: readonly (WrittenTicket & Pick<QueueTicket, "number">)[],
): Write {
  return {
    key: leaseItemKey(queue.key, queue.sortKey),
    set: Object.fromEntries(tickets.map(({ id, text }) => [ticketPrefix + id, text])),
    insist: tickets.map(({ id, number }) => [numberPrefix + id, "=", number]),
    returnsItem: true,
  };
}

/** Leaves the line. */
export function leave(queue: QueueKey, id: string): Write {
  return {
    key: leaseItemKey(queue.key, queue.sortKey),
    set: { [waiting]: countedDown(1) },
    remove: attributesOf({ id }),
    insist: [[numberPrefix + id, "exists"]],
  };
}

/** Removes tickets as they were judged, where an acquisition cannot take them along. */
export function removeTickets(queue: QueueKey, passed: readonly WrittenTicket[]): Write {
  const { remove = [], insist = [] } = removal(passed);
  const set = { [waiting]: countedDown(passed.length) };
  return { key: leaseItemKey(queue.key, queue.sortKey), set, remove, insist, returnsItem: true };
}

function removal(passed: readonly WrittenTicket[]): Amendment {
  return {
    remove: passed.flatMap(attributesOf),
    insist: passed.map(({ id, text }) => [ticketPrefix + id, "=", text]),
  };
}

function attributesOf({ id }: { readonly id: string }): string[] {
  return [numberPrefix + id, ticketPrefix + id];
}

function countedDown(by: number): Count {
  return { of: waiting, from: by, by: -by };
}
