import type { Operation } from "../history.ts";
import { tellOperation, type Violation } from "./violation.ts";

/**
 * Single flight: each value is one that a computation gave, which began before the call's end; a refresh gives a value whose
 * computation began after the call; the cache never goes back to the value of an earlier holder.
 */
export function flightViolations(operations: readonly Operation[]): Violation[] {
  const violations: Violation[] = [];
  const fail = (text: string): void => void violations.push({ rule: "values of single flight", text });
  const ofFlights = operations.filter(({ subject }) => subject === "singleFlight");
  for (const ofKey of Map.groupBy(ofFlights, ({ key }) => key).values()) {
    const computations = new Map(
      ofKey.filter(({ action }) => action === "compute").map((each) => [String(each.details.value), each]),
    );
    const answered = ofKey.filter(({ action, outcome }) => action === "get" && outcome === "ok");
    for (const call of answered) {
      const computation = computations.get(String(call.details.value));
      if (computation === undefined) fail(`nothing has computed the value of ${tellOperation(call)}`);
      else if (call.details.refresh === true && computation.from < call.from)
        fail(`${tellOperation(call)} has an older value than it asked for: ${tellOperation(computation)}`);
      else if (computation.from > (call.to ?? Number.POSITIVE_INFINITY))
        fail(`${tellOperation(call)} has a value of later: ${tellOperation(computation)}`);
    }
    const cached = answered.filter(({ details }) => details.source === "cache");
    for (const call of cached) {
      const newer = cached.find(
        (other) => (other.to ?? Number.POSITIVE_INFINITY) < call.from && fenceOf(other) > fenceOf(call),
      );
      if (newer !== undefined)
        fail(`the cache went back from ${tellOperation(newer)} to ${tellOperation(call)}`);
    }
  }
  return violations;
}

/** The fencing token of the computation, which its value tells. */
function fenceOf(call: Operation): number {
  return Number(call.details.fencingToken);
}
