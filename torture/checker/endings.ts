import type { Operation } from "../history.ts";
import { exclude, type Grant, tokenOf } from "./grants.ts";
import { grouped, tellOperation, type Violation } from "./violation.ts";

/**
 * What is over stays over: no release and no renewal that begins after a later grant of the key was there is told that the
 * lease was still its own.
 */
export function endingViolations(operations: readonly Operation[], grants: readonly Grant[]): Violation[] {
  const violations: Violation[] = [];
  const byKey = grouped(grants, ({ key }) => key);
  for (const operation of operations) {
    const { process, key, action, outcome, details, from } = operation;
    if (action !== "release" && action !== "renew") continue;
    if (outcome !== "ok" || details.result === "false") continue;
    const ofKey = byKey.get(key) ?? [];
    const token = tokenOf(operation, key, ofKey);
    const own = ofKey.find((grant) => grant.process === process && grant.fencingToken === token);
    if (own === undefined) continue;
    const later = ofKey.find(
      ({ fencingToken, at, kind }) => fencingToken > own.fencingToken && at < from && exclude(own.kind, kind),
    );
    if (later === undefined) continue;
    const text = `${tellOperation(operation)}, of ${own.text}, came after ${later.text}`;
    violations.push({ rule: "a lease that is over stays over", text });
  }
  return violations;
}
