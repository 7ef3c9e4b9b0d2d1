import { type Answering, answering } from "../support/answers.ts";
import { documents } from "../support/documents.ts";
import { required, wholeNumber } from "../support/environment.ts";
import { leaseClient } from "../support/leases.ts";
import { once } from "../support/once.ts";
import { admit, type CleaningReport } from "./admission.ts";
import type { Served, Standing } from "./desk.ts";
import { DeskBook } from "./desk-book.ts";
import { mostWaitingVariable, silenceVariable, tableVariable } from "./schema.ts";

const parts = once(() => ({
  leases: leaseClient(documents()),
  desks: new DeskBook(documents(), required(tableVariable)),
  rules: {
    mostWaiting: wholeNumber(mostWaitingVariable, 10),
    silenceMs: wholeNumber(silenceVariable, 60_000),
  },
  now: Date.now,
}));

/**
 * Admits service tickets: in each department one in service, a bounded queue behind it, first come first served.
 *
 * Dies before its write: nothing has changed, and the department opens again when the lease ends, after 10 s. After its
 * write: the change stands, and asking again gives the same answer. Tickets that are not heard of are taken off by the
 * next change of their department, or by the cleaner. See {@link admit} for the events.
 */
export const handler: Answering<Standing | Served | CleaningReport> = answering((event, context) =>
  admit({ ...parts(), remainingMs: () => context.getRemainingTimeInMillis() }, event),
);
