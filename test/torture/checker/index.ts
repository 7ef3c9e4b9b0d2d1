import type { History } from "../history.ts";
import { terms } from "../terms.ts";
import { endingViolations } from "./endings.ts";
import { cooldownViolations, exclusionViolations, overlongHolds, returningHolds } from "./exclusion.ts";
import { fencingViolations } from "./fencing.ts";
import { flightViolations } from "./flights.ts";
import { grantsOf } from "./grants.ts";
import { lineViolations } from "./line.ts";
import { livenessViolations } from "./liveness.ts";
import { onceViolations } from "./once.ts";
import { registerViolations } from "./register.ts";
import type { Violation } from "./violation.ts";

/** Judges a history by every rule; a history that is right has no violations. */
export function check(history: History): readonly Violation[] {
  const { operations, holds, events } = history;
  const grants = grantsOf(operations, holds);
  return [
    ...exclusionViolations(holds, operations, terms.permits),
    ...cooldownViolations(holds, grants, terms.earlyMs),
    ...returningHolds(holds),
    ...overlongHolds(holds),
    ...fencingViolations(grants),
    ...endingViolations(operations, grants),
    ...registerViolations(operations, grants),
    ...onceViolations(operations, holds, events),
    ...lineViolations(operations, holds, events, terms),
    ...flightViolations(operations),
    ...livenessViolations(history),
  ];
}
