import type { History, Operation } from "../history.ts";
import { tellOperation, type Violation } from "./violation.ts";

/**
 * Liveness after the faults have ended: every process comes to its end when it is asked to, every call is answered, and an
 * auditor gets each lock, and finds nothing left to be done.
 */
export function livenessViolations({ operations, events }: History): Violation[] {
  const violations: Violation[] = [];
  const fail = (rule: string, text: string): void => void violations.push({ rule, text });
  const calmAt = events.find(({ event }) => event === "calm")?.at ?? Number.POSITIVE_INFINITY;
  const killed = (process: string): boolean =>
    events.some((each) => each.process === process && each.event === "kill");
  for (const operation of operations) {
    const isHanging = operation.from > calmAt && operation.to === undefined && !killed(operation.process);
    if (isHanging) fail("every call is answered", tellOperation(operation));
    if (isFailedAudit(operation)) fail("no lock stays stuck", tellOperation(operation));
  }
  for (const { process, event, details } of events) {
    if (event === "mistake") fail("only named errors", `${process}: ${details.error}`);
    if (event === "exit" && details.code !== 0 && !killed(process))
      fail("every process ends when asked", `${process} ended with ${details.code}`);
  }
  return violations;
}

function isFailedAudit({ action, outcome }: Operation): boolean {
  return action === "audit" && outcome !== "ok";
}
