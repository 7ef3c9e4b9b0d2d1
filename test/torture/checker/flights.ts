import type { Operation, ProcessEvent } from "../history.ts";
import { grouped, tellOperation, type Violation } from "./violation.ts";

/** A freeze that begins so soon after a computation may have come before the clock was read for its entry. */
const freezeSlackMs = 500;
/** A process that has had fewer answers may not know the service's time: then its own wall clock is as wrong as it is. */
const answersForTime = 3;

/**
 * Single flight: each value is one that a computation gave, which began before the call's end; a refresh gives a value whose
 * computation began after the call; the cache never goes back to the value of an earlier holder, and gives no value long
 * after its time.
 *
 * A value's time counts from the end of its computation, by the service's time as its process knows it: that is why
 * `clocksDifferMs` comes on top. A process that is frozen at that moment counts it from its thaw.
 */
export function flightViolations(
  operations: readonly Operation[],
  events: readonly ProcessEvent[],
  { freshForMs, clocksDifferMs }: { readonly freshForMs: number; readonly clocksDifferMs: number },
): Violation[] {
  const violations: Violation[] = [];
  const fail = (text: string): void => void violations.push({ rule: "values of single flight", text });
  const ofFlights = operations.filter(({ subject }) => subject === "singleFlight");
  for (const ofKey of grouped(ofFlights, ({ key }) => key).values()) {
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
      if (computation?.to === undefined || call.details.source === "computation") continue;
      const freshUntil = storedBy(computation.process, computation.to, events) + freshForMs * 1_000;
      const isLate = call.from > freshUntil + clocksDifferMs * 1_000;
      if (isLate && knowsTime(call, operations, events) && knowsTime(computation, operations, events))
        fail(`${tellOperation(call)} has a value whose time was over: ${tellOperation(computation)}`);
    }
    const cached = answered.filter(({ details }) => details.source === "cache");
    const byAnswer = [...cached].sort((one, other) => (one.to ?? 0) - (other.to ?? 0));
    let newest: Operation | undefined;
    let seen = 0;
    for (const call of cached) {
      for (
        let next = byAnswer[seen];
        (next?.to ?? Number.POSITIVE_INFINITY) < call.from;
        next = byAnswer[seen]
      ) {
        if (next !== undefined && fenceOf(next) > fenceOf(newest)) newest = next;
        seen += 1;
      }
      if (newest !== undefined && fenceOf(call) < fenceOf(newest))
        fail(`the cache went back from ${tellOperation(newest)} to ${tellOperation(call)}`);
    }
  }
  return violations;
}

/** By when the process of a computation that ended at `at` has read the clock for its entry. */
function storedBy(process: string, at: number, events: readonly ProcessEvent[]): number {
  const own = events.filter((each) => each.process === process);
  const frozen = own.findLast(
    ({ event, at: from }) => event === "freeze" && from <= at + freezeSlackMs * 1_000,
  );
  const thawed = own.find(({ event, at: until }) => event === "thaw" && until > (frozen?.at ?? at));
  return Math.max(at, frozen === undefined ? at : (thawed?.at ?? at));
}

/** Whether its process has heard the service's time, or has a right clock of its own. */
function knowsTime(
  { process, from }: Operation,
  operations: readonly Operation[],
  events: readonly ProcessEvent[],
): boolean {
  const start = events.find((each) => each.process === process && each.event === "start");
  if (Number(start?.details.wallMs ?? 0) === 0) return true;
  const heard = operations.filter(
    (each) => each.process === process && each.outcome !== "unknown" && (each.to ?? from) < from,
  );
  return heard.length >= answersForTime;
}

/** The fencing token of the computation, which its value tells. */
function fenceOf(call: Operation | undefined): number {
  return Number(call?.details.fencingToken ?? 0);
}
