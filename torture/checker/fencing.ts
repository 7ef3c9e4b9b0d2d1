import type { Hold } from "../history.ts";
import { grouped, tellHold, type Violation } from "./violation.ts";

/**
 * Fencing order: no two grants of a key have one fencing token, and a grant that was asked for after another one was there
 * has the larger token.
 */
export function fencingViolations(holds: readonly Hold[]): Violation[] {
  const violations: Violation[] = [];
  for (const ofKey of grouped(holds, ({ key }) => key).values()) {
    for (const same of grouped(ofKey, ({ fencingToken }) => String(fencingToken)).values()) {
      if (same.length > 1) violations.push(violation("share a fencing token", same));
    }
    const byGrant = [...ofKey].sort((one, other) => one.from - other.from);
    const byCall = [...ofKey].sort((one, other) => one.since - other.since);
    let largest: Hold | undefined;
    let seen = 0;
    for (const hold of byCall) {
      for (let next = byGrant[seen]; next !== undefined && next.from < hold.since; next = byGrant[seen]) {
        if (largest === undefined || next.fencingToken > largest.fencingToken) largest = next;
        seen += 1;
      }
      const isSmaller = largest !== undefined && largest !== hold && hold.fencingToken < largest.fencingToken;
      if (isSmaller && largest !== undefined)
        violations.push(violation("are in the wrong order", [largest, hold]));
    }
  }
  return violations;
}

function violation(what: string, holds: readonly Hold[]): Violation {
  return { rule: "fencing order", text: `these ${what}: ${holds.map(tellHold).join("; ")}` };
}
