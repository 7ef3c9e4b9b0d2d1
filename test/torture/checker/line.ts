import type { Operation, ProcessEvent } from "../history.ts";
import { grouped, tellOperation, type Violation } from "./violation.ts";

/** A caller that was told that it stands in line. */
type Waiter = Operation & { readonly joinedAt: number; readonly inLineUntil: number };

/** A time in which something may have kept a process from its requests. */
interface Disturbance {
  readonly from: number;
  readonly to: number;
}

/** Which event begins a disturbance, and which one ends it. */
const endOf: ReadonlyMap<string, string> = new Map([
  ["freeze", "thaw"],
  ["foul", "fair"],
]);

/**
 * Order and bound of the fair lock's line: no caller that begins after another one has joined gets the lock before it, and
 * no more callers than allowed stand in line.
 *
 * A waiter counts from the moment when it was told that it has joined until it was last told that it stands there, or got the
 * lock. One that does not answer may be passed: so an overtaking is wrong where nothing has kept its process from answering
 * since its call.
 */
export function lineViolations(
  operations: readonly Operation[],
  events: readonly ProcessEvent[],
  { maxWaiters }: { readonly maxWaiters: number },
): Violation[] {
  const violations: Violation[] = [];
  const inLine = operations.filter(({ subject, action }) => subject === "fair" && action === "acquire");
  for (const ofKey of grouped(inLine, ({ key }) => key).values()) {
    const waiters = ofKey.filter((operation): operation is Waiter => operation.joinedAt !== undefined);
    const granted = ofKey.filter(({ outcome }) => outcome === "ok");
    for (const waiter of waiters) {
      const { from: calledAt, joinedAt, outcome } = waiter;
      const until = (outcome === "ok" ? waiter.to : undefined) ?? waiter.inLineUntil;
      const disturbed = disturbances(waiter.process, events);
      const overtaking = granted.find(
        ({ from, to = Number.POSITIVE_INFINITY }) =>
          from > joinedAt && to < until && !disturbed.some((each) => each.from <= to && calledAt <= each.to),
      );
      if (overtaking === undefined) continue;
      const text = `${tellOperation(waiter)} was overtaken by ${tellOperation(overtaking)}`;
      violations.push({ rule: "order of the line", text });
    }
    for (const waiter of waiters) {
      const beside = waiters.filter((other) => {
        return other === waiter || (other.joinedAt <= waiter.joinedAt && waiter.joinedAt < other.inLineUntil);
      });
      if (beside.length <= maxWaiters) continue;
      const text = `${beside.length} callers stand in a line for ${maxWaiters}: ${beside.map(tellOperation).join("; ")}`;
      violations.push({ rule: "bound of the line", text });
    }
  }
  return violations;
}

/** When a process was frozen, or had a network that lost or delayed its requests. */
function disturbances(process: string, events: readonly ProcessEvent[]): Disturbance[] {
  const own = events.filter((each) => each.process === process);
  return own.flatMap(({ event, at }, index): Disturbance[] => {
    const end = endOf.get(event);
    if (end === undefined) return [];
    const ended = own.slice(index).find((later) => later.event === end);
    return [{ from: at, to: ended?.at ?? Number.POSITIVE_INFINITY }];
  });
}
