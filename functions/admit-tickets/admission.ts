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
}

/** Where a ticket stands. */
export type Standing =
  /** What is written in the department's name can be fenced by the token. */
  | { readonly state: "serving"; readonly ticket: string; readonly fencingToken: number }
  /** `position` is 1 for the one that comes next; `estimatedWaitMs` is the time until then, when that is known. */
  | {
      readonly state: "waiting";
      readonly ticket: string;
      readonly position: number;
      readonly estimatedWaitMs: number | undefined;
    }
  /** The queue is full; nothing was changed. */
  | { readonly state: "refused"; readonly waiting: number; readonly mostWaiting: number }
  /** It is neither in service nor waiting: it left, was done, or was silent for too long. */
  | { readonly state: "absent"; readonly ticket: string };

/** Who is in service now. */
export interface Served {
  readonly serving: string | undefined;
  readonly waiting: number;
}

/** A department as anybody may see it. */
export interface Queue extends Pick<Served, "serving"> {
  /** The tickets that wait, the next one first. */
  readonly waiting: readonly string[];
  readonly mostWaiting: number;
}

/** In bytes: as much as a queue shows of those who wait, so that the next one can be called. */
const longestTicket = 64;

/**
 * Does what an event asks for.
 *
 *     { "action": "enter", "department": "loans", "ticket": "L17" }      again keeps its place, whoever delivers it
 *     { "action": "heartbeat", "department": "loans", "ticket": "L17" }  as enter, but one that is gone stays gone
 *     { "action": "leave", "department": "loans", "ticket": "L17" }
 *     { "action": "next", "department": "loans", "ticket": "L16" }       ends L16's service, and calls the next
 *     { "action": "look", "department": "loans" }                        shows who is served and who waits; enters nobody
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
  const visit = (ticket: string, join: boolean): Promise<Standing> =>
    checkIn(desk, rules.silenceMs, ticket, join);

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

async function checkIn(desk: FairLock, silenceMs: number, ticket: string, join: boolean): Promise<Standing> {
  try {
    const visit = await desk.checkIn({ owner: ticket, leaseDurationMs: silenceMs, join });
    if (visit.state === "absent") return { state: "absent", ticket };
    if (visit.state === "held") return { state: "serving", ticket, fencingToken: visit.lease.fencingToken };
    return { state: "waiting", ticket, position: visit.position, estimatedWaitMs: visit.estimatedWaitMs };
  } catch (error) {
    if (!(error instanceof QueueFullError)) throw error;
    return { state: "refused", waiting: error.waiting, mostWaiting: desk.maxWaiters };
  }
}

/** Reads the queue: 1 consistent read. A ticket that has been silent for too long is not in service, though its desk is not cleaned yet. */
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
 * It says whose service ends: asked again after a lost answer it finds another in service, and changes nothing.
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
