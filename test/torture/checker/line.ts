import type { Hold, Operation, ProcessEvent } from "../history.ts";
import { disturbances, meets } from "./disturbances.ts";
import { tellOperation, type Violation } from "./violation.ts";

/** A caller that was told that it stands in line. */
type Waiter = Operation & { readonly joinedAt: number; readonly inLineUntil: number };

/** What the line is judged by. */
export interface LineTerms {
  readonly maxWaiters: number;
  readonly undisturbedMs: number;
}

/**
 * Order and bound of the fair lock's line: no caller that begins after another one has joined gets the lock before it, and
 * no more callers than allowed stand in line.
 *
 * A waiter counts from the moment when it was told that it has joined until its own call ends, or until it was last told
 * that it stands there; a dead one for `undisturbedMs`. It may be passed only in silence: while the lock is free for longer
 * than every living waiter takes to answer. So an overtaking is wrong in either of two cases: since the waiter joined, the
 * lock has never been free for `undisturbedMs`; or nothing has kept the waiter's process from answering.
 *
 * One thing excuses an overtaking: the waiter may have had the lock without hearing of it, and may have lost it since. The
 * fencing tokens count every grant, so such a grant shows as a number that no caller has heard of.
 */
export function lineViolations(
  operations: readonly Operation[],
  holds: readonly Hold[],
  events: readonly ProcessEvent[],
  { maxWaiters, undisturbedMs }: LineTerms,
): Violation[] {
  const violations: Violation[] = [];
  const disturbed = disturbances(events);
  const inLine = operations.filter(({ subject, action }) => subject === "fair" && action === "acquire");
  for (const [key, ofKey] of Map.groupBy(inLine, (each) => each.key)) {
    const waiters = ofKey.filter((operation): operation is Waiter => operation.joinedAt !== undefined);
    const granted = ofKey.filter(({ outcome }) => outcome === "ok");
    const byToken = new Map(granted.map((operation) => [Number(operation.details.fencingToken), operation]));
    for (const waiter of waiters) {
      const { process, joinedAt } = waiter;
      const until = surelyInLineUntil(waiter, undisturbedMs * 1_000);
      const mayBePassed = (by: number): boolean =>
        longestVacancy(key, holds, joinedAt, by) >= undisturbedMs * 1_000 &&
        (!isAlive(waiter, by) || meets(disturbed.get(process), joinedAt, by));
      const overtaking = granted.find(
        ({ from, to = Number.POSITIVE_INFINITY, details }) =>
          from > joinedAt &&
          to < until &&
          !mayBePassed(to) &&
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

/**
 * Until when it surely stands in line. A dead one's ticket lasts for a while; a call that fails leaves the line at some time
 * since it was last told that it stands there.
 */
function surelyInLineUntil({ joinedAt, inLineUntil, outcome, to }: Waiter, undisturbed: number): number {
  if (to === undefined) return Math.max(joinedAt + undisturbed, inLineUntil);
  if (outcome === "ok") return to;
  return to > joinedAt + 2 * undisturbed ? Math.max(joinedAt + undisturbed, inLineUntil) : inLineUntil;
}

/** Whether it was there after `at`. */
function isAlive({ inLineUntil, outcome, to = 0 }: Waiter, at: number): boolean {
  return inLineUntil > at || (outcome === "ok" && to > at);
}

/** For how long at a time the lock may have been free between two moments, in microseconds. */
function longestVacancy(key: string, holds: readonly Hold[], from: number, to: number): number {
  let freeSince = from;
  let longest = 0;
  for (const hold of holds) {
    if (hold.key !== key || hold.from > to) continue;
    longest = Math.max(longest, hold.from - freeSince);
    freeSince = Math.max(freeSince, hold.until ?? hold.from);
  }
  return Math.max(longest, to - freeSince);
}

/** Whether a grant between the waiter's joining and the one with this fencing token is unknown. */
function mayHaveHadIt(waiter: Waiter, before: number, byToken: ReadonlyMap<number, Operation>): boolean {
  for (let token = before - 1; ; token -= 1) {
    const grant = byToken.get(token);
    if (grant === undefined) return true;
    if ((grant.to ?? Number.POSITIVE_INFINITY) < waiter.joinedAt) return false;
  }
}
