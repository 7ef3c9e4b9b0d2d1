import { environmentNames } from "@leasehold/client/environment";
import { type Answering, answering } from "../support/answers.ts";
import { dynamodb } from "../support/dynamodb.ts";
import { optional, required, wholeNumber } from "../support/environment.ts";
import { handingOnClient } from "../support/leases.ts";
import { once } from "../support/once.ts";
import { admit } from "./admission.ts";
import type { Queue, Served, Standing } from "./department.ts";
import {
  agentsVariable,
  departmentAgents,
  departmentLimits,
  limitsVariable,
  mostWaitingVariable,
  silenceVariable,
  usualServiceVariable,
} from "./schema.ts";

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
