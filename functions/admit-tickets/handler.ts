import { InvalidOptionsError } from "@leasehold/client";
import { environmentNames } from "@leasehold/client/environment";
import { type Answering, answering } from "../support/answers.ts";
import { dynamodb } from "../support/dynamodb.ts";
import { once, optional, required, wholeNumber } from "../support/environment.ts";
import { choiceIn, type Fields, fieldsOf, flagIn, nameIn } from "../support/input.ts";
import { handingOnClient } from "../support/leases.ts";
import { Department, type DepartmentParts, type Queue, type Served, type Standing } from "./department.ts";
import {
  agentsVariable,
  departmentAgents,
  departmentLimits,
  limitsVariable,
  longestDepartment,
  mostWaitingVariable,
  silenceVariable,
  usualServiceVariable,
} from "./schema.ts";

/** In bytes: a queue shows this much of a waiting owner, and an agent needs it to call the next one. */
const longestTicket = 64;

/** The fields that an event may have besides its action and its department. */
const fieldsBesides = {
  enter: ["ticket", "appointment"],
  heartbeat: ["ticket"],
  leave: ["ticket"],
  next: ["ticket", "agent"],
  look: [],
} as const;

/**
 * Handles an event.
 *
 *     { "action": "enter", "department": "loans", "ticket": "L17" }      again keeps its place
 *     { …, "appointment": true }                                         is called before tickets without one
 *     { "action": "heartbeat", "department": "loans", "ticket": "L17" }  as enter, but a ticket that is gone stays gone
 *     { "action": "leave", "department": "loans", "ticket": "L17" }
 *     { "action": "next", "department": "loans", "agent": 2, "ticket": "L16" }  ends L16's service at agent 2, and calls
 *                                                                        the next to it
 *     { "action": "look", "department": "loans" }                        shows the department; changes nothing
 *
 * A ticket's turn comes with its next heartbeat, or when an agent calls it. Rejects with InvalidOptionsError before
 * anything is sent.
 */
export async function admit(parts: DepartmentParts, event: unknown): Promise<Standing | Served | Queue> {
  const action = choiceIn(fieldsOf(event), "action", ["enter", "heartbeat", "leave", "next", "look"]);
  const fields = fieldsOf(event, ["action", "department", ...fieldsBesides[action]]);
  const department = new Department(parts, nameIn(fields, "department", longestDepartment));
  switch (action) {
    case "look":
      return await department.show();
    case "next": {
      const done = fields.ticket === undefined ? undefined : ticketIn(fields);
      return await department.callNext(agentIn(fields, department.agents), done);
    }
    case "enter":
      return await department.enter(ticketIn(fields), flagIn(fields, "appointment"));
    case "heartbeat":
      return await department.heartbeat(ticketIn(fields));
    case "leave": {
      const ticket = ticketIn(fields);
      await department.leave(ticket);
      return { state: "absent", ticket };
    }
  }
}

function ticketIn(fields: Fields): string {
  const ticket = nameIn(fields, "ticket", longestTicket);
  if (Buffer.byteLength(ticket) <= longestTicket) return ticket;
  throw new InvalidOptionsError("event.ticket", ticket, `at most ${longestTicket} bytes in UTF-8`);
}

/** May be left out where there is one agent. */
function agentIn({ agent }: Fields, agents: number): number {
  if (agent === undefined && agents === 1) return 1;
  if (typeof agent === "number" && Number.isSafeInteger(agent) && agent >= 1 && agent <= agents) return agent;
  throw new InvalidOptionsError("event.agent", agent, `a whole number from 1 to ${agents}`);
}

const parts = once(() => ({
  leases: handingOnClient(dynamodb()),
  tableName: required(environmentNames.tableName),
  rules: {
    mostWaiting: wholeNumber(mostWaitingVariable, 10),
    limits: departmentLimits(optional(limitsVariable) ?? "{}"),
    agents: departmentAgents(optional(agentsVariable) ?? "{}"),
    silenceMs: wholeNumber(silenceVariable, 60_000),
    usualServiceMs:
      optional(usualServiceVariable) === undefined ? undefined : wholeNumber(usualServiceVariable, 1),
  },
}));

/**
 * Admits service tickets: each department has one or more agents, and two bounded lines, of appointments and of others.
 *
 * Dies before a write: nothing has changed. After it: the repeated event finds what was written, and does the rest. A silent
 * ticket loses its turn. See {@link admit} for the events, and department.ts for the leases.
 */
export const handler: Answering<Standing | Served | Queue> = answering((event) => admit(parts(), event));
