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
    const byToken = new Map(granted.map((operation) => [Number(operation.details.fencingToken), operation]));
    for (const waiter of waiters) {
      const until = surelyInLineUntil(waiter, undisturbedMs * 1_000);
      const overtaking = granted.find(
        ({ from, to = Number.POSITIVE_INFINITY, details }) =>
          from > waiter.joinedAt &&
          to < until &&
          !mayHaveHadIt(waiter, Number(details.fencingToken), byToken),
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

/** A waiter whose call failed early has left the line at some time since it was last told that it stands there. */
function surelyInLineUntil({ joinedAt, inLineUntil, outcome, to }: Waiter, undisturbed: number): number {
  const undisturbedUntil = joinedAt + undisturbed;
  if (to === undefined) return undisturbedUntil;
  if (outcome === "ok") return Math.min(to, undisturbedUntil);
  return to > undisturbedUntil + undisturbed ? undisturbedUntil : inLineUntil;
}

/** Whether a grant between the waiter's joining and the one with this fencing token is unknown. */
function mayHaveHadIt(waiter: Waiter, before: number, byToken: ReadonlyMap<number, Operation>): boolean {
  for (let token = before - 1; ; token -= 1) {
    const grant = byToken.get(token);
    if (grant === undefined) return true;
    if ((grant.to ?? Number.POSITIVE_INFINITY) < waiter.joinedAt) return false;
  }
}
