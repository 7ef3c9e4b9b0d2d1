import type { History } from "../history.ts";
import { terms } from "../terms.ts";
import { exclusionViolations, returningHolds } from "./exclusion.ts";
import { fencingViolations } from "./fencing.ts";
import { flightViolations } from "./flights.ts";
import { lineViolations } from "./line.ts";
import { livenessViolations } from "./liveness.ts";
import { onceViolations } from "./once.ts";
import { registerViolations } from "./register.ts";
import type { Violation } from "./violation.ts";

/** Judges a history by every rule; a history that is right has no violations. */
export function check(history: History): readonly Violation[] {
  const { operations, holds, events } = history;
  return [
    ...exclusionViolations(holds, terms.permits),
    ...returningHolds(holds),
    ...fencingViolations(holds),
    ...registerViolations(operations),
    ...onceViolations(operations, holds, events),
    ...lineViolations(operations, terms),
    ...flightViolations(operations),
    ...livenessViolations(history),
  ];
}
