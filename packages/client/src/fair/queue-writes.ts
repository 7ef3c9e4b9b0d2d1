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
 * A write that passes unresponsive waiters also insists on `asJudged`: nobody has had the lease since they were judged.
 */
import { attributeNames, leaseItemKey, timeToLive } from "../schema.ts";
import { optionalWholeIn } from "../store/item-values.ts";
import {
  type Amendment,
  amended,
  type Condition,
  type Count,
  type Test,
  type Write,
} from "../store/write.ts";
import { QueueFullError } from "./errors.ts";
import type { QueueSnapshot } from "./queue.ts";
import {
  type NewTicket,
  numberPrefix,
  type QueueTicket,
  queueAttributeNames,
  queueLimits,
  ticketPrefix,
  type WrittenTicket,
} from "./queue-ticket.ts";

const { lastTicket, waiting } = queueAttributeNames;

/** Which lease the line is for. */
export interface QueueKey {
  readonly key: string;
  readonly sortKey: string;
}

/**
 * An acquisition of a newcomer while nobody waits, or of a waiter, whose ticket it takes along. `passed` are tickets that may
 * be passed, as they were judged.
 */
export function inTurn(
  acquire: Write,
  own: Pick<QueueTicket, "id" | "number"> | undefined,
  passed: readonly WrittenTicket[],
  asJudged: readonly Test[] = [],
): Write {
  if (own === undefined) {
    const isAlone =
      passed.length > 0 ? ([waiting, "=", passed.length] as const) : missingOr([waiting, "=", 0]);
    return amended(acquire, without(passed, [isAlone, ...asJudged]));
  }
  // A waiter that was passed and has joined anew has another number: an earlier turn's write, arriving late, is refused.
  return amended(acquire, without(passed, [[numberPrefix + own.id, "=", own.number], ...asJudged], own));
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
  readonly asJudged?: readonly Test[];
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
  { maxWaiters, retentionMs, now, asJudged = [] }: JoinTerms,
): Write {
  const living = tickets.length - passable.length;
  if (living >= maxWaiters) throw new QueueFullError(queue.key, living, maxWaiters);
  const passed = tickets.length >= maxWaiters ? removable(passable) : [];
  const next: Count = { of: lastTicket, from: Math.floor(now), by: 1 };
  const shownTimeToLive = (item && optionalWholeIn(item, attributeNames.timeToLive)) ?? 0;
  const joining = writeOf(queue, {
    set: {
      [lastTicket]: next,
      [numberPrefix + id]: next,
      [ticketPrefix + id]: text,
      [attributeNames.timeToLive]: Math.max(shownTimeToLive, timeToLive(until, retentionMs)),
    },
    insist: [[numberPrefix + id, "missing"], missingOr([waiting, "<", maxWaiters + passed.length])],
  });
  const count: Count = { of: waiting, from: 0, by: 1 - passed.length };
  return amended(amended(joining, without(passed, passed.length > 0 ? asJudged : [])), {
    set: { [waiting]: count },
  });
}

/** Renews tickets that are still there: all of them or none. */
export function renewTickets(
  queue: QueueKey,
  tickets: readonly (WrittenTicket & Pick<QueueTicket, "number">)[],
): Write {
  return writeOf(queue, {
    set: Object.fromEntries(tickets.map(({ id, text }) => [ticketPrefix + id, text])),
    insist: tickets.map(({ id, number }) => [numberPrefix + id, "=", number]),
  });
}

/** Leaves the line. */
export function leave(queue: QueueKey, id: string): Write {
  return writeOf(queue, without([], [[numberPrefix + id, "exists"]], { id }));
}

/** Removes tickets as they were judged, where an acquisition cannot take them along. */
export function removeTickets(
  queue: QueueKey,
  passed: readonly WrittenTicket[],
  asJudged: readonly Test[] = [],
): Write {
  return writeOf(queue, without(passed, asJudged));
}

/** Removes tickets that are as they were judged, and one's own; the line has so many fewer. */
function without(
  passed: readonly WrittenTicket[],
  insist: readonly Condition[] = [],
  own?: { readonly id: string },
): Required<Amendment> {
  const gone = own === undefined ? passed : [...passed, own];
  return {
    set: gone.length > 0 ? { [waiting]: { of: waiting, from: gone.length, by: -gone.length } } : {},
    remove: gone.flatMap(({ id }) => [numberPrefix + id, ticketPrefix + id]),
    insist: [...passed.map(({ id, text }): Test => [ticketPrefix + id, "=", text]), ...insist],
  };
}

function missingOr(test: Test): Condition {
  return { anyOf: [[test[0], "missing"], test] };
}

function writeOf({ key, sortKey }: QueueKey, parts: Pick<Write, "set" | "remove" | "insist">): Write {
  return { ...parts, key: leaseItemKey(key, sortKey), returnsItem: true };
}
