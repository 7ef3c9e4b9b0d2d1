import { isDeepStrictEqual } from "node:util";
import { InvalidOptionsError, type LeaseClient, LeaseLostError } from "@leasehold/client";
import { choiceIn, type Fields, fieldsOf, nameIn } from "../support/input.ts";
import { waitWithin } from "../support/working-time.ts";
import {
  type AdmissionRules,
  clean,
  type Desk,
  enter,
  leave,
  next,
  type Served,
  type Standing,
  standing,
  type Transition,
} from "./desk.ts";
import type { DeskBook } from "./desk-book.ts";
import { departmentKeyPrefix } from "./schema.ts";

/** What the admission works with. */
export interface Admission {
  readonly leases: LeaseClient;
  readonly desks: Pick<DeskBook, "departments" | "read" | "write" | "heartbeat">;
  readonly rules: AdmissionRules;
  /** Epoch milliseconds. */
  readonly now: () => number;
  /** Milliseconds until the invocation ends. */
  readonly remainingMs: () => number;
}

/** What the cleaner did. */
export interface CleaningReport {
  readonly departments: number;
  readonly removed: number;
}

/** A department's name becomes part of a lock's key. */
const longestName = 200;
/** A change takes some milliseconds; whoever dies over one keeps the department closed for this long. */
const leaseDurationMs = 10_000;
const longestWaitMs = 15_000;
/** Heartbeats come in between, and rarely twice in a row. */
const mostRewrites = 20;

/**
 * Does what an event asks for.
 *
 *     { "action": "enter", "department": "loans", "ticket": "L17", "owner": "…" }  the owner's default is the ticket
 *     { "action": "heartbeat", "department": "loans", "ticket": "L17" }
 *     { "action": "leave", "department": "loans", "ticket": "L17" }
 *     { "action": "next", "department": "loans", "ticket": "L16" }  ends L16's service; without a ticket nobody's
 *     { "action": "clean" }                                         all departments, or the one that is named
 *
 * Rejects with InvalidOptionsError before anything is sent, and with LeaseUnavailableError when the department is busy
 * for longer than half of the invocation's time.
 */
export async function admit(
  admission: Admission,
  event: unknown,
): Promise<Standing | Served | CleaningReport> {
  const fields = fieldsOf(event, ["action", "department", "ticket", "owner"]);
  const action = choiceIn(fields, "action", ["enter", "heartbeat", "leave", "next", "clean"]);
  if (action !== "enter" && fields.owner !== undefined) {
    throw new InvalidOptionsError("event.owner", fields.owner, `nothing with the action ${action}`);
  }
  if (action === "clean") return await cleanUp(admission, fields);

  const department = nameIn(fields, "department", longestName);
  if (action === "next") {
    const done = fields.ticket === undefined ? undefined : nameIn(fields, "ticket", longestName);
    return await change(admission, department, (desk, now) => next(desk, admission.rules, done, now));
  }
  const ticket = nameIn(fields, "ticket", longestName);
  switch (action) {
    case "enter": {
      const owner = fields.owner === undefined ? ticket : nameIn(fields, "owner", longestName);
      return await change(admission, department, (desk, now) =>
        enter(desk, admission.rules, { ticket, owner }, now),
      );
    }
    case "leave":
      return await change(admission, department, (desk, now) => leave(desk, admission.rules, ticket, now));
    case "heartbeat": {
      const desk = await admission.desks.heartbeat(department, ticket, admission.now());
      return desk === undefined ? { state: "absent", ticket } : standing(desk, ticket);
    }
  }
}

async function cleanUp(admission: Admission, fields: Fields): Promise<CleaningReport> {
  if (fields.ticket !== undefined) {
    throw new InvalidOptionsError("event.ticket", fields.ticket, "nothing with the action clean");
  }
  const named = fields.department === undefined ? undefined : [nameIn(fields, "department", longestName)];
  let departments = 0;
  let removed = 0;
  for await (const department of named ?? admission.desks.departments()) {
    const report = await change(admission, department, (desk, now) => clean(desk, admission.rules, now));
    departments += 1;
    removed += report.removed;
  }
  return { departments, removed };
}

/**
 * Changes a department's desk under its lease, in one write that is fenced and knows the version it was decided on; in
 * none where nothing changes.
 *
 * The lease keeps changes of one department apart, so that they do not thwart one another; that none is lost, and that a
 * late one changes nothing, the write itself sees to.
 */
async function change<T>(
  { leases, desks, now, remainingMs }: Admission,
  department: string,
  decide: (desk: Desk, now: number) => Transition<T>,
): Promise<T> {
  await using lease = await leases.acquire(departmentKeyPrefix + department, {
    leaseDurationMs,
    waitMs: waitWithin(longestWaitMs, remainingMs()),
    retry: { strategy: "fullJitter", delayMs: 50, maxDelayMs: 1_000 },
  });
  for (let attempt = 1; attempt <= mostRewrites; attempt++) {
    const { desk, version } = await desks.read(department);
    const { desk: after, answer } = decide(desk, now());
    if (isDeepStrictEqual(after, desk)) return answer;
    if ((await desks.write(department, { desk: after, version }, lease)) === "written") return answer;
    // A heartbeat came in between, or this lease is not the last one any more.
    if (!lease.held) break;
  }
  throw new LeaseLostError(lease.key, lease.held ? "taken" : "expired", "the desk was changed all the time");
}
