import type { Operation } from "../history.ts";
import { exclude, type Grant, tokenOf } from "./grants.ts";
import { tellOperation, type Violation } from "./violation.ts";

/**
 * What is over stays over: no release and no renewal is told that the lease was still its own, if it begins after a later
 * grant of the key was there, or after an operator was told that the lease is broken.
 */
export function endingViolations(operations: readonly Operation[], grants: readonly Grant[]): Violation[] {
  const violations: Violation[] = [];
  const breaks = operations.filter(({ action, outcome }) => action === "break" && outcome === "ok");
  const byKey = Map.groupBy(grants, ({ key }) => key);
  for (const operation of operations) {
    const { key, action, outcome, details, from } = operation;
    if (action !== "release" && action !== "renew") continue;
    if (outcome !== "ok" || details.result === "false") continue;
    const ofKey = byKey.get(key) ?? [];
    const token = tokenOf(operation, key, ofKey);
    const own = ofKey.find((grant) => grant.fencingToken === token);
    if (own === undefined) continue;
    const broken = breaks.find(
      ({ key: of, to = Number.POSITIVE_INFINITY, details: { fencingToken } }) =>
        of === key && fencingToken === token && to < from,
    );
    if (broken !== undefined)
      violations.push({
        rule: "a lease that is over stays over",
        text: `${tellOperation(operation)} came after ${tellOperation(broken)}`,
      });
    const later = ofKey.find(
      ({ fencingToken, at, kind }) => fencingToken > own.fencingToken && at < from && exclude(own.kind, kind),
    );
    if (later === undefined) continue;
    const text = `${tellOperation(operation)}, of ${own.text}, came after ${later.text}`;
    violations.push({ rule: "a lease that is over stays over", text });
  }
  return violations;
}
