import { type Answering, answering } from "../support/answers.ts";
import { dynamodb } from "../support/dynamodb.ts";
import { optional, wholeNumber } from "../support/environment.ts";
import { leaseClient } from "../support/leases.ts";
import { once } from "../support/once.ts";
import { admit, type Queue, type Served, type Standing } from "./admission.ts";
import {
  departmentLimits,
  limitsVariable,
  mostWaitingVariable,
  silenceVariable,
  usualServiceVariable,
} from "./schema.ts";

const parts = once(() => ({
  leases: leaseClient(dynamodb()),
  rules: {
    mostWaiting: wholeNumber(mostWaitingVariable, 10),
    limits: departmentLimits(optional(limitsVariable) ?? "{}"),
    silenceMs: wholeNumber(silenceVariable, 60_000),
    usualServiceMs:
      optional(usualServiceVariable) === undefined ? undefined : wholeNumber(usualServiceVariable, 1),
  },
}));

/**
 * Admits service tickets: each department has one in service and a bounded queue behind it. First come, first served.
 *
 * The whole desk is the item of one fair lock, and each change is one write. If the instance dies before the write,
 * nothing has changed. If it dies after the write, the repeated event gets the same answer. A silent ticket loses its
 * turn. See {@link admit} for the events.
 */
export const handler: Answering<Standing | Served | Queue> = answering((event) => admit(parts(), event));
