import { type Answering, answering } from "../support/answers.ts";
import { dynamodb } from "../support/dynamodb.ts";
import { optional, wholeNumber } from "../support/environment.ts";
import { leaseClient } from "../support/leases.ts";
import { once } from "../support/once.ts";
import { admit, type Queue, type Served, type Standing } from "./admission.ts";
import { departmentLimits, limitsVariable, mostWaitingVariable, silenceVariable } from "./schema.ts";

const parts = once(() => ({
  leases: leaseClient(dynamodb()),
  rules: {
    mostWaiting: wholeNumber(mostWaitingVariable, 10),
    limits: departmentLimits(optional(limitsVariable) ?? "{}"),
    silenceMs: wholeNumber(silenceVariable, 60_000),
  },
}));

/**
 * Admits service tickets: in each department one in service, a bounded queue behind it, first come first served.
 *
 * The whole desk is the item of one fair lock, and each change of it one write: dies before it, nothing has changed;
 * after it, asking again gives the same answer. A ticket that is not heard of is passed over. See {@link admit} for the
 * events.
 */
export const handler: Answering<Standing | Served | Queue> = answering((event) => admit(parts(), event));
