import { InvalidOptionsError, type LeaseClient } from "@leasehold/client";
import { FairLock, QueueFullError } from "@leasehold/client/fair";
import { choiceIn, type Fields, fieldsOf, nameIn } from "../support/input.ts";
import { departmentKeyPrefix, longestDepartment } from "./schema.ts";

/** What the admission works with. */
export interface Admission {
  readonly leases: LeaseClient;
  readonly rules: AdmissionRules;
  /** Epoch milliseconds. @default Date.now */
  readonly now?: () => number;
}

/** How a department admits tickets. */
export interface AdmissionRules {
  /** How many may wait, from 1 to 500. */
  readonly mostWaiting: number;
  /** ... at departments that have a limit of their own. */
  readonly limits: ReadonlyMap<string, number>;
  /** After this much silence, in milliseconds, a ticket counts as gone. */
  readonly silenceMs: number;
  /** How long a ticket is usually in service, in milliseconds. @default - not known: a refusal has no estimate */
  readonly usualServiceMs?: number | undefined;
}

/** The state of a ticket. */
export type Standing =
  /** The token fences writes in the department's name. */
  | { readonly state: "serving"; readonly ticket: string; readonly fencingToken: number }
  /** `position` is 1 for the one that comes next; `estimatedWaitMs` is the time until then, when that is known. */
  | {
      readonly state: "waiting";
      readonly ticket: string;
      readonly position: number;
      readonly estimatedWaitMs: number | undefined;
    }
  /** The queue is full; nothing was changed. `estimatedWaitMs` is the time until there is room, when services are as usual. */
  | {
      readonly state: "refused";
      readonly waiting: number;
      readonly mostWaiting: number;
      readonly estimatedWaitMs?: number | undefined;
    }
  /** It is neither in service nor waiting: it left, was done, or was silent for too long. */
  | { readonly state: "absent"; readonly ticket: string };

/** Which ticket is in service now. */
export interface Served {
  readonly serving: string | undefined;
  readonly waiting: number;
}

/** A department as any caller may see it. */
export interface Queue extends Pick<Served, "serving"> {
  /** The tickets that wait, the next one first. */
  readonly waiting: readonly string[];
  readonly mostWaiting: number;
}

/** In bytes: a queue shows this much of a waiting owner, and the desk needs it to call the next one. */
const longestTicket = 64;

/**
 * Handles an event.
 *
 *     { "action": "enter", "department": "loans", "ticket": "L17" }      again keeps its position
 *     { "action": "heartbeat", "department": "loans", "ticket": "L17" }  as enter, but a ticket that is gone stays gone
 *     { "action": "leave", "department": "loans", "ticket": "L17" }
 *     { "action": "next", "department": "loans", "ticket": "L16" }       ends L16's service, and calls the next
 *     { "action": "look", "department": "loans" }                        shows the department; changes nothing
 *
 * A ticket's turn comes with its next heartbeat, or when it is called. Rejects with InvalidOptionsError before anything
 * is sent.
 */
export async function admit(
  { leases, rules, now = Date.now }: Admission,
  event: unknown,
): Promise<Standing | Served | Queue> {
  const fields = fieldsOf(event, ["action", "department", "ticket"]);
  const action = choiceIn(fields, "action", ["enter", "heartbeat", "leave", "next", "look"]);
  const department = nameIn(fields, "department", longestDepartment);
  const maxWaiters = rules.limits.get(department) ?? rules.mostWaiting;
  const desk = new FairLock(leases, departmentKeyPrefix + department, { maxWaiters });
  const visit = (ticket: string, join: boolean): Promise<Standing> => checkIn(desk, rules, now, ticket, join);

  if (action === "look") {
    fieldsOf(event, ["action", "department"]);
    return await look(desk, now());
  }
  if (action === "next") {
    const done = fields.ticket === undefined ? undefined : ticketIn(fields);
    return await callNext(desk, done, (ticket) => visit(ticket, false));
  }
  const ticket = ticketIn(fields);
  if (action !== "leave") return await visit(ticket, action === "enter");
  await desk.checkOut({ owner: ticket });
  return { state: "absent", ticket };
}

function ticketIn(fields: Fields): string {
  const ticket = nameIn(fields, "ticket", longestTicket);
  if (Buffer.byteLength(ticket) <= longestTicket) return ticket;
  throw new InvalidOptionsError("event.ticket", ticket, `at most ${longestTicket} bytes in UTF-8`);
}

async function checkIn(
  desk: FairLock,
  rules: AdmissionRules,
  now: () => number,
  ticket: string,
  join: boolean,
): Promise<Standing> {
  try {
    const visit = await desk.checkIn({ owner: ticket, leaseDurationMs: rules.silenceMs, join });
    if (visit.state === "absent") return { state: "absent", ticket };
    if (visit.state === "held") return { state: "serving", ticket, fencingToken: visit.lease.fencingToken };
    return { state: "waiting", ticket, position: visit.position, estimatedWaitMs: visit.estimatedWaitMs };
  } catch (error) {
    if (!(error instanceof QueueFullError)) throw error;
    const { waiting } = error;
    const estimatedWaitMs = await roomInMs(desk, rules.usualServiceMs, now());
    return { state: "refused", waiting, mostWaiting: desk.maxWaiters, estimatedWaitMs };
  }
}

/** When the service that is under way ends, about: then the next ticket is served, and one more may wait. 1 read. */
async function roomInMs(
  desk: FairLock,
  usualServiceMs: number | undefined,
  now: number,
): Promise<number | undefined> {
  if (usualServiceMs === undefined) return undefined;
  const { holder } = await desk.inspect();
  return holder === undefined ? 0 : Math.max(0, holder.acquiredAt + usualServiceMs - now);
}

/**
 * Reads the queue: 1 consistent read. A ticket that has been silent for too long does not count as in service, even
 * before its desk is cleaned.
 */
async function look(desk: FairLock, now: number): Promise<Queue> {
  const { holder, waiting } = await desk.inspect();
  return {
    serving: holder !== undefined && holder.expiresAt > now ? holder.owner : undefined,
    waiting: waiting.map(({ owner }) => owner),
    mostWaiting: desk.maxWaiters,
  };
}

/**
 * Ends the service of one ticket, and calls the one that waits longest.
 *
 * The event names the ticket whose service ends. When the event is repeated after a lost reply, another ticket is in
 * service, and nothing changes.
 */
async function callNext(
  desk: FairLock,
  done: string | undefined,
  visit: (ticket: string) => Promise<Standing>,
): Promise<Served> {
  const before = await desk.inspect();
  if (done !== undefined && before.holder?.owner === done) await desk.checkOut({ owner: done });
  const [next] = before.waiting;
  const isFree = before.holder === undefined || before.holder.owner === done;
  if (isFree && next !== undefined) await visit(next.owner);
  const { holder, waiting } = await desk.inspect();
  return { serving: holder?.owner, waiting: waiting.length };
}
