import type { Hold, Operation } from "../history.ts";
import { grouped, tellHold, tellOperation, type Violation } from "./violation.ts";

/**
 * Exactly once: a slot or a task succeeds once at most, no attempt at it begins after its success, no two attempts have one
 * number, and the auditor finds that each has succeeded in the end.
 */
export function onceViolations(operations: readonly Operation[], holds: readonly Hold[]): Violation[] {
  const violations: Violation[] = [];
  const fail = (text: string): void => void violations.push({ rule: "exactly once", text });
  const attempts = grouped(
    holds.filter(({ attempt }) => attempt > 0),
    ({ key }) => key,
  );
  const endings = grouped(
    operations.filter(({ action, outcome }) => action === "succeed" && outcome !== "refused"),
    ({ key }) => key,
  );
  for (const [key, ofKey] of attempts) {
    for (const same of grouped(ofKey, ({ attempt }) => String(attempt)).values()) {
      if (same.length > 1) fail(`one attempt began twice: ${same.map(tellHold).join("; ")}`);
    }
    const [success, second] = (endings.get(key) ?? []).filter(({ outcome }) => outcome === "ok");
    if (success === undefined) continue;
    if (second !== undefined) fail(`it succeeded twice: ${tellOperation(success)}; ${tellOperation(second)}`);
    const { details, to = Number.POSITIVE_INFINITY } = success;
    for (const hold of ofKey) {
      const isLater = hold.attempt > Number(details.attempt) || hold.since > to;
      if (isLater) fail(`${tellHold(hold)} after its success: ${tellOperation(success)}`);
    }
  }
  for (const operation of operations) {
    // What was added for certain has to be done in the end.
    const isWanted = operation.action === "add" && operation.outcome === "ok";
    if (isWanted && !endings.has(operation.key)) fail(`it was never done: ${tellOperation(operation)}`);
  }
  return violations;
}
