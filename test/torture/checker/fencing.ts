import { type Grant, isOneLease } from "./grants.ts";
import type { Violation } from "./violation.ts";

/**
 * Fencing order: no two grants of a key have one fencing token, and a grant that was asked for after another one was there
 * has the larger token.
 */
export function fencingViolations(grants: readonly Grant[]): Violation[] {
  const violations: Violation[] = [];
  for (const ofKey of Map.groupBy(grants, ({ key }) => key).values()) {
    for (const same of Map.groupBy(ofKey, ({ fencingToken }) => String(fencingToken)).values()) {
      const isTwice = same.some((one) => same.some((other) => one !== other && !isOneLease(one, other)));
      if (isTwice) violations.push(violation("share a fencing token", same));
    }
    const byGrant = [...ofKey].sort((one, other) => one.at - other.at);
    const byCall = [...ofKey].sort((one, other) => one.since - other.since);
    let largest: Grant | undefined;
    let seen = 0;
    for (const grant of byCall) {
      for (let next = byGrant[seen]; next !== undefined && next.at < grant.since; next = byGrant[seen]) {
        if (largest === undefined || next.fencingToken > largest.fencingToken) largest = next;
        seen += 1;
      }
      const isSmaller =
        largest !== undefined && largest !== grant && grant.fencingToken < largest.fencingToken;
      if (isSmaller && largest !== undefined)
        violations.push(violation("are in the wrong order", [largest, grant]));
    }
  }
  return violations;
}

function violation(what: string, grants: readonly Grant[]): Violation {
  return { rule: "fencing order", text: `these ${what}: ${grants.map(({ text }) => text).join("; ")}` };
}
