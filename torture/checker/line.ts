import type { Operation } from "../history.ts";
import { grouped, tellOperation, type Violation } from "./violation.ts";

/** A caller that was told that it stands in line. */
type Waiter = Operation & { readonly joinedAt: number; readonly inLineUntil: number };

/**
 * Order and bound of the fair lock's line: no caller that begins after another one has joined gets the lock before it, and
 * no more callers than allowed stand in line.
 *
 * A waiter counts from the moment when it was told that it has joined until its own call ends, but no longer than
 * `undisturbedMs`: until then no ticket expires, and no waiter is passed in silence. So neither a kill nor a freeze excuses
 * an overtaking.
 *
 * One thing excuses an overtaking: the waiter may have had the lock without hearing of it, and may have lost it since. The
 * fencing tokens count every grant, so such a grant shows as a number that no caller has heard of.
 */
export function lineViolations(
  operations: readonly Operation[],
  { maxWaiters, undisturbedMs }: { readonly maxWaiters: number; readonly undisturbedMs: number },
): Violation[] {
  const violations: Violation[] = [];
  const inLine = operations.filter(({ subject, action }) => subject === "fair" && action === "acquire");
  for (const ofKey of grouped(inLine, ({ key }) => key).values()) {
    const waiters = ofKey.filter((operation): operation is Waiter => operation.joinedAt !== undefined);
    const granted = ofKey.filter(({ outcome }) => outcome === "ok");
    const byToken = new Map(granted.map((operation) => [tokenOf(operation), operation]));
    for (const waiter of waiters) {
      const overtaking = granted.find((other) => isOvertaken(waiter, other, undisturbedMs));
      if (overtaking === undefined || mayHaveHadIt(waiter, overtaking, byToken)) continue;
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

function isOvertaken(
  { joinedAt, to: endedAt = Number.POSITIVE_INFINITY }: Waiter,
  { from, to = Number.POSITIVE_INFINITY }: Operation,
  undisturbedMs: number,
): boolean {
  return from > joinedAt && to < Math.min(endedAt, joinedAt + undisturbedMs * 1_000);
}

/** Whether a grant between the waiter's joining and the other's grant is unknown. */
function mayHaveHadIt(waiter: Waiter, other: Operation, byToken: ReadonlyMap<number, Operation>): boolean {
  for (let token = tokenOf(other) - 1; ; token -= 1) {
    const grant = byToken.get(token);
    if (grant === undefined) return true;
    if ((grant.to ?? Number.POSITIVE_INFINITY) < waiter.joinedAt) return false;
  }
}

function tokenOf({ details }: Operation): number {
  return Number(details.fencingToken);
}
