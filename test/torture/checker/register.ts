import type { Operation } from "../history.ts";
import { type Grant, tokenOf } from "./grants.ts";
import { tellOperation, type Violation } from "./violation.ts";

/** Something that took effect at one moment of an interval. */
class Step {
  readonly to: number;
  readonly text: string;
  /** When it took effect at the earliest, and what it had to wait for then. */
  earliest: number;
  #cause: Step | undefined;
  readonly #next: Step[] = [];
  #before = 0;

  constructor(from: number, to: number | undefined, text: string) {
    this.earliest = from;
    this.to = to ?? Number.POSITIVE_INFINITY;
    this.text = text;
  }

  /** These take effect later. */
  precedes(...others: readonly Step[]): void {
    this.#next.push(...others);
    for (const other of others) other.#before += 1;
  }

  /** Says what is wrong where no moments agree with the intervals and the order of these steps. */
  static problemOf(steps: readonly Step[]): string | undefined {
    const ready = steps.filter((step) => step.#before === 0);
    for (const step of ready) {
      if (step.earliest > step.to) return `${step.text} has to come after ${step.#cause?.text}`;
      for (const next of step.#next) {
        next.#before -= 1;
        if (next.#before === 0) ready.push(next);
        if (next.earliest >= step.earliest) continue;
        next.earliest = step.earliest;
        next.#cause = step;
      }
    }
    const circle = steps.filter((step) => step.#before > 0).map(({ text }) => text);
    return circle.length === 0 ? undefined : `each of these has to come after another: ${circle.join("; ")}`;
  }
}

/**
 * Linearizability of the fenced registers, together with the grants and releases of their locks.
 *
 * A holder of a lock reads the register, and then writes a new value in place of the one that it has read; callers without
 * the lock only read. The lock and the fence are to make this pair one step: so a write takes effect only on the value that
 * was read before it. A write that destroys another one's value (a lost update, a stale write) fits into no order.
 *
 * A write with the lease's condition check fits before the next grant and before its own release, even if nobody has
 * written since. One with a fence fits before any use of the register by a later holder, a reading included.
 *
 * No two writes have one value. So the values say which steps come before which, and there is nothing to search: only
 * whether each step has a moment in its interval.
 */
export function registerViolations(operations: readonly Operation[], grants: readonly Grant[]): Violation[] {
  const ofRegisters = operations.filter(({ subject }) => subject === "register");
  return [...Map.groupBy(ofRegisters, ({ key }) => key)].flatMap(([key, ofKey]) => {
    const [, lock = "", defence = ""] = /^register\/(.+)\/(fence|check)$/.exec(key) ?? [];
    const ofLock = grants.filter((grant) => grant.key === lock);
    const releases = operations.filter((each) => each.key === lock && each.action === "release");
    const lockSteps = defence === "check" ? stepsOfLock(ofLock, releases) : [];
    const uses = effectiveOf(ofKey).map((operation) => ({
      operation,
      step: new Step(
        operation.from,
        operation.outcome === "ok" ? operation.to : undefined,
        tellOperation(operation),
      ),
      isWrite: operation.action === "write",
      value: valueReadBy(operation),
      token: tokenOf(operation, lock, ofLock),
    }));
    const problem = orderByValues(uses) ?? orderByTokens(uses, defence === "fence", lockSteps);
    const rule = "linearizability of the fenced register";
    return problem === undefined ? [] : [{ rule, text: `${key}: ${problem}` }];
  });
}

/** A read or a write of a register. */
interface Use {
  readonly operation: Operation;
  readonly step: Step;
  readonly isWrite: boolean;
  /** What it has read, or what its caller had read before. */
  readonly value: string;
  readonly token: number | undefined;
}

/** After the write of a value come the reads of it, and then the write in place of it. */
function orderByValues(uses: readonly Use[]): string | undefined {
  const writers = new Map(
    uses.filter(({ isWrite }) => isWrite).map((use) => [String(use.operation.details.value), use.step]),
  );
  for (const [value, users] of Map.groupBy(uses, (use) => use.value)) {
    const told = (some: readonly Use[]): string => some.map(({ step }) => step.text).join("; ");
    if (value !== "" && !writers.has(value)) return `nobody has written what these have read: ${told(users)}`;
    const [writes, reads] = [users.filter(({ isWrite }) => isWrite), users.filter(({ isWrite }) => !isWrite)];
    if (writes.length > 1) return `more than one is in place of "${value}": ${told(writes)}`;
    writers.get(value)?.precedes(...users.map(({ step }) => step));
    for (const { step } of reads) step.precedes(...writes.map((write) => write.step));
  }
  return undefined;
}

/** What has a smaller fencing token comes before what has a larger one, as far as the register or the lock sees to it. */
function orderByTokens(
  uses: readonly Use[],
  isFenced: boolean,
  lockSteps: readonly LockStep[],
): string | undefined {
  // A read without a lease carries no token and no fence.
  const byToken = Map.groupBy(
    uses.filter(({ isWrite, operation }) => isWrite || "fencingToken" in operation.details),
    ({ token }) => token ?? 0,
  );
  byToken.delete(0);
  const inOrder = [...byToken].sort(([one], [other]) => one - other);
  for (const [index, [token, own]] of inOrder.entries()) {
    const [, later = []] = isFenced ? (inOrder[index + 1] ?? []) : [];
    for (const { step } of own) step.precedes(...later.map((use) => use.step));
    const next = lockSteps.find((each) => !each.isRelease && each.token > token);
    const ends = lockSteps.filter((each) => each.isRelease && each.token === token);
    for (const { step, isWrite } of own)
      if (isWrite) step.precedes(...[next, ...ends].flatMap((each) => each?.step ?? []));
  }
  return Step.problemOf([...uses, ...lockSteps].map(({ step }) => step));
}

/** Those that took effect: what was answered, and each write without an answer whose value was seen. */
function effectiveOf(ofRegister: readonly Operation[]): readonly Operation[] {
  const open = new Map(
    ofRegister
      .filter(({ action, outcome }) => action === "write" && outcome === "unknown")
      .map((write) => [String(write.details.value), write]),
  );
  const effective = ofRegister.filter(({ outcome }) => outcome === "ok");
  for (const operation of effective) {
    const value = valueReadBy(operation);
    const seen = open.get(value);
    if (open.delete(value) && seen !== undefined) effective.push(seen);
  }
  return effective;
}

function valueReadBy({ action, details }: Operation): string {
  return String(action === "read" ? details.value : details.previous);
}

interface LockStep {
  readonly step: Step;
  readonly token: number;
  readonly isRelease: boolean;
}

/** Grants, one for each fencing token and in the order of the tokens, and the releases after them. */
function stepsOfLock(grants: readonly Grant[], releases: readonly Operation[]): readonly LockStep[] {
  const granted = [...Map.groupBy(grants, ({ fencingToken }) => fencingToken)]
    .sort(([one], [other]) => one - other)
    .map(([token, same]) => {
      const [since, at] = [same.map((one) => one.since), same.map((one) => one.at)];
      const step = new Step(Math.min(...since), Math.min(...at), same.map(({ text }) => text).join("; "));
      return { step, token, isRelease: false };
    });
  for (const [index, { step }] of granted.entries())
    step.precedes(...granted.slice(index + 1, index + 2).map((next) => next.step));
  const released = releases.flatMap((operation) => {
    const { key, outcome, from, to, details } = operation;
    const token = tokenOf(operation, key, grants);
    if (token === undefined || outcome !== "ok" || details.result === "false") return [];
    const step = new Step(from, to, tellOperation(operation));
    // Without a grant that is known, it has no place.
    (granted.find((grant) => grant.token >= token)?.step ?? step).precedes(step);
    return [{ step, token, isRelease: true }];
  });
  return [...granted, ...released];
}
