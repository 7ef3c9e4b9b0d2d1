/**
 * The expressions of a lock with a queue. Its lease is acquired, renewed and released by the expressions of every
 * lease; to some of them the queue adds a condition and an action of its own:
 *
 *     acquire, takeOver   a newcomer: nobody waits; the head: its place is still there, and leaves with the same write.
 *                         In both cases places whose time is over may be passed over, if nobody has prolonged them
 *     release             how long holders typically hold it is noted
 *     join                there is room; the ticket's number is the service's own count, so that it needs no clock
 *     keep                the places are still there
 *     leave               the place is still there
 *
 * A place is two attributes of the lock's item, named after the waiter. `waiting` counts the places: whoever removes
 * one insists that it is there, so that the count never drifts.
 */
import type { LeaseAddress } from "./expressions.ts";
import { attributeNames, leaseItemKey } from "./schema.ts";
import { fairAttributeNames, placePrefix, ticketPrefix } from "./schema-fair.ts";
import { amended, type Condition, type Write } from "./store/write.ts";
import type { GetRequest, Item, UpdateRequest } from "./store.ts";

const { lastTicket, waiting, typicalHoldMs } = fairAttributeNames;
const ttl = attributeNames.timeToLive;

/** A place as it was seen, or as it is to be. */
export interface WrittenPlace {
  readonly id: string;
  readonly text: string;
}

/** What a grant has to do with the queue. */
export interface Turn {
  /** The place of the one that acquires, with the ticket that it has; undefined for a newcomer. */
  readonly own: { readonly id: string; readonly ticket: number } | undefined;
  /** Places whose time is over, as they were judged. */
  readonly passed: readonly WrittenPlace[];
}

/** A grant to a newcomer while nobody waits, or to the head of the queue, whose place it takes along. */
export function inTurn(grant: Write, { own, passed }: Turn): Write {
  const removals = passed.length + (own === undefined ? 0 : 1);
  const gone = [...passed.map(({ id }) => id), ...(own === undefined ? [] : [own.id])];
  const isAlone: Condition =
    removals === 0
      ? {
          anyOf: [
            [waiting, "missing"],
            [waiting, "=", 0],
          ],
        }
      : [waiting, "=", removals];
  return amended(grant, {
    set: removals === 0 ? {} : { [waiting]: { of: waiting, from: removals, by: -removals } },
    remove: gone.flatMap((id) => [ticketPrefix + id, placePrefix + id]),
    insist: [
      ...passed.map(({ id, text }): Condition => [placePrefix + id, "=", text]),
      // Whoever was passed over and has joined anew has another ticket: an earlier turn's write, arriving late, is refused.
      own === undefined ? isAlone : [ticketPrefix + own.id, "=", own.ticket],
    ],
  });
}

const countDown = "#waiting = if_not_exists(#waiting, :removed) - :removed";

/** The end of a lease that notes how long holders typically hold the lock. */
export function noteHold(ending: Write, typicalMs: number): Write {
  return amended(ending, { set: { [typicalHoldMs]: typicalMs } });
}

/** The end of a lease that nobody has renewed since it was seen: its owner may have come again meanwhile. */
export function endIfUnrenewed(ending: Write, version: number): Write {
  return amended(ending, { insist: [[attributeNames.version, "=", version]] });
}

/** What a waiter that joins writes. */
export interface Joining extends WrittenPlace {
  readonly maxWaiters: number;
  readonly ttl: number;
  /** Places whose time is over: they make room. */
  readonly passed: readonly WrittenPlace[];
}

/** Joins the queue at its end, if there is room. A second copy is refused, and finds its place taken by itself. */
export function join(
  lock: LeaseAddress,
  { id, text, maxWaiters, ttl: timeToLive, passed }: Joining,
): UpdateRequest {
  const going = removal(passed);
  const update =
    "SET #lastTicket = if_not_exists(#lastTicket, :zero) + :one, " +
    "#qMine = if_not_exists(#lastTicket, :zero) + :one, #wMine = :place, " +
    "#waiting = if_not_exists(#waiting, :zero) + :added, #ttl = :ttl" +
    (passed.length === 0 ? "" : ` REMOVE ${going.removed.join(", ")}`);
  const hasRoom = "(attribute_not_exists(#waiting) OR #waiting < :limit)";
  return {
    key: leaseItemKey(lock.key, lock.sortKey),
    update,
    condition: ["attribute_not_exists(#qMine)", hasRoom, ...going.conditions].join(" AND "),
    names: {
      "#lastTicket": lastTicket,
      "#waiting": waiting,
      "#ttl": ttl,
      "#qMine": ticketPrefix + id,
      "#wMine": placePrefix + id,
      ...going.names,
    },
    values: {
      ":zero": 0,
      ":one": 1,
      ":added": 1 - passed.length,
      ":limit": maxWaiters + passed.length,
      ":place": text,
      ":ttl": timeToLive,
      ...going.values,
    },
    returnsItem: true,
  };
}

/** Prolongs places that are still there: all of them or none. */
export function keep(
  lock: LeaseAddress,
  places: readonly (WrittenPlace & { readonly ticket: number })[],
): UpdateRequest {
  const names: Record<string, string> = {};
  const values: Record<string, string | number> = {};
  for (const [index, { id, text, ticket }] of places.entries()) {
    names[`#w${index}`] = placePrefix + id;
    values[`:w${index}`] = text;
    names[`#q${index}`] = ticketPrefix + id;
    values[`:q${index}`] = ticket;
  }
  const each = (write: (index: number) => string): string[] => places.map((_, index) => write(index));
  return {
    key: leaseItemKey(lock.key, lock.sortKey),
    update: `SET ${each((index) => `#w${index} = :w${index}`).join(", ")}`,
    condition: each((index) => `#q${index} = :q${index}`).join(" AND "),
    names,
    values,
    returnsItem: true,
  };
}

/** Leaves the queue. */
export function leave(lock: LeaseAddress, id: string): UpdateRequest {
  return {
    key: leaseItemKey(lock.key, lock.sortKey),
    update: `SET ${countDown} REMOVE #qMine, #wMine`,
    condition: "attribute_exists(#qMine)",
    names: { "#waiting": waiting, "#qMine": ticketPrefix + id, "#wMine": placePrefix + id },
    values: { ":removed": 1 },
    returnsItem: false,
  };
}

/** Removes places whose time is over, where there are more than one acquisition can take along. */
export function passOver(lock: LeaseAddress, passed: readonly WrittenPlace[]): UpdateRequest {
  const going = removal(passed);
  return {
    key: leaseItemKey(lock.key, lock.sortKey),
    update: `SET ${countDown} REMOVE ${going.removed.join(", ")}`,
    condition: going.conditions.join(" AND "),
    names: { "#waiting": waiting, ...going.names },
    values: { ":removed": passed.length, ...going.values },
    returnsItem: true,
  };
}

/** Reads the lock with its queue. */
export function lockWithQueue(lock: LeaseAddress, consistent: boolean): GetRequest {
  return { key: leaseItemKey(lock.key, lock.sortKey), consistent };
}

/** The removal of places that nobody has prolonged since they were judged. */
function removal(passed: readonly WrittenPlace[]): {
  readonly conditions: readonly string[];
  readonly removed: readonly string[];
  readonly names: Readonly<Record<string, string>>;
  readonly values: Item;
} {
  const names: Record<string, string> = {};
  const values: Record<string, string> = {};
  for (const [index, { id, text }] of passed.entries()) {
    names[`#q${index}`] = ticketPrefix + id;
    names[`#w${index}`] = placePrefix + id;
    values[`:w${index}`] = text;
  }
  return {
    conditions: passed.map((_, index) => `#w${index} = :w${index}`),
    removed: passed.flatMap((_, index) => [`#q${index}`, `#w${index}`]),
    names,
    values,
  };
}
