import type { Hold, Operation, ProcessEvent } from "../history.ts";
import { tellHold, tellOperation, type Violation } from "./violation.ts";

/**
 * Exactly once: a slot or a task succeeds once at most, no attempt at it begins after its success, no two attempts have one
 * number, and the auditor finds that each has succeeded in the end.
 *
 * A process that closes its client gives back the tasks that it has not ended: such an attempt is not counted, and the next
 * one has its number.
 */
export function onceViolations(
  operations: readonly Operation[],
  holds: readonly Hold[],
  events: readonly ProcessEvent[],
): Violation[] {
  const violations: Violation[] = [];
  const fail = (text: string): void => void violations.push({ rule: "exactly once", text });
  const attempts = Map.groupBy(
    holds.filter(({ attempt }) => attempt > 0),
    ({ key }) => key,
  );
  const endings = Map.groupBy(
    operations.filter(({ action, outcome }) => action === "succeed" && outcome !== "refused"),
    ({ key }) => key,
  );
  const isGivenBack = ({ primitive, process, key, attempt, from }: Hold, before: number): boolean =>
    primitive === "tasks" &&
    events.some(
      (one) => one.event === "close" && one.process === process && from < one.at && one.at < before,
    ) &&
    !operations.some(
      (one) =>
        one.process === process &&
        one.key === key &&
        one.details.attempt === attempt &&
        one.outcome === "ok" &&
        (one.action === "succeed" || one.action === "fail"),
    );
  for (const [key, ofKey] of attempts) {
    for (const same of Map.groupBy(ofKey, ({ attempt }) => String(attempt)).values()) {
      const isTwice = same.some((hold, index) => {
        const next = same[index + 1];
        return next !== undefined && !isGivenBack(hold, next.from);
      });
      if (isTwice) fail(`one attempt began twice: ${same.map(tellHold).join("; ")}`);
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
    const { key, action, details, to = Number.POSITIVE_INFINITY } = operation;
    const isCalledDone = action === "run" && details.code === "LEASE_SLOT_DONE";
    if (isCalledDone && !(endings.get(key) ?? []).some(({ from }) => from < to))
      fail(`nobody has done it: ${tellOperation(operation)}`);
    // What was added for certain has to be done in the end.
    const isWanted = action === "add" && operation.outcome === "ok";
    if (isWanted && !endings.has(key)) fail(`it was never done: ${tellOperation(operation)}`);
  }
  return violations;
}
