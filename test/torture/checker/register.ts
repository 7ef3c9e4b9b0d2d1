import type { Operation } from "../history.ts";
import { type Grant, tokenOf } from "./grants.ts";
import { linearize, type Step } from "./linearizability.ts";
import { grouped, tellOperation, type Violation } from "./violation.ts";

/** A register, and what has become of the lock that protects it. */
interface RegisterState {
  readonly value: string;
  /** The fencing token of the last grant that is known; 0 before the first. */
  readonly granted: number;
  /** The largest fencing token of a holder that is known to have released the lock. */
  readonly released: number;
  /** The largest fencing token that the register itself has seen. */
  readonly stamped: number;
}

/** An operation on a register or on its lock. */
interface RegisterStep extends Step<RegisterState> {
  readonly text: string;
}

const initial: RegisterState = { value: "", granted: 0, released: 0, stamped: 0 };

/**
 * Linearizability of the fenced registers, together with the grants and releases of their locks.
 *
 * A holder of a lock reads the register, and then writes a new value in place of the one that it has read; callers without
 * the lock only read. The lock and the fence are to make this pair one step: so a write takes effect only on the value that
 * was read before it. A write that destroys another one's value (a lost update, a stale write) fits into no order.
 *
 * A write with the lease's condition check fits before the next grant and before its own release, even if nobody has
 * written since. One with a fence fits before any use of the register by a later holder, a reading included.
 */
export function registerViolations(operations: readonly Operation[], grants: readonly Grant[]): Violation[] {
  const ofRegisters = operations.filter(({ subject }) => subject === "register");
  const violations: Violation[] = [];
  for (const [key, ofKey] of grouped(ofRegisters, ({ key }) => key)) {
    const [, lock = "", defence = ""] = /^register\/(.+)\/(fence|check)$/.exec(key) ?? [];
    const ofLock = grants.filter((grant) => grant.key === lock);
    const releases = operations.filter((each) => each.key === lock && each.action === "release");
    const steps = [
      ...ofKey.flatMap((operation) => stepsOf(operation, tokenOf(operation, lock, ofLock), defence)),
      ...(defence === "check" ? [...grantSteps(ofLock), ...releaseSteps(releases, ofLock)] : []),
    ];
    const found = linearize(steps, initial, (state) => JSON.stringify(state));
    if (found.isLinearizable) continue;
    const stuck = found.stuck.map(({ text }) => text).join("; ");
    const { value, granted } = found.state;
    const by = granted === 0 ? "" : ` and its lock was granted with fencing token ${granted}`;
    const text = `after ${found.placed} steps ${key} has the value "${value}"${by}, and none of these can come next: ${stuck}`;
    violations.push({ rule: "linearizability of the fenced register", text });
  }
  return violations;
}

/** A refused operation has no effect, and a read without an answer says nothing. */
function stepsOf(operation: Operation, token: number | undefined, defence: string): RegisterStep[] {
  const { action, outcome, from, to, details } = operation;
  if (outcome === "refused" || (action === "read" && outcome !== "ok")) return [];
  const value = String(details.value);
  const read = action === "read" ? value : String(details.previous);
  // A read without a lease carries no token and no fence.
  const fence = action === "write" || "fencingToken" in details ? token : undefined;
  const apply = (state: RegisterState): RegisterState | undefined => {
    if (state.value !== read) return undefined;
    const isOver = state.granted > (fence ?? state.granted) || state.released >= (fence ?? Infinity);
    if (defence === "check" && action === "write" && isOver) return undefined;
    if (defence !== "fence" || fence === undefined) return { ...state, value };
    return state.stamped > fence ? undefined : { ...state, value, stamped: fence };
  };
  return [{ text: tellOperation(operation), from, to: outcome === "ok" ? to : undefined, apply }];
}

/** One step for each fencing token: they come in the order of the tokens. */
function grantSteps(grants: readonly Grant[]): RegisterStep[] {
  const tokens = [...grouped(grants, ({ fencingToken }) => String(fencingToken)).values()]
    .map((same) => ({
      token: same[0]?.fencingToken ?? 0,
      from: Math.min(...same.map(({ since }) => since)),
      to: Math.min(...same.map(({ at }) => at)),
      text: same.map(({ text }) => text).join("; "),
    }))
    .sort((one, other) => one.token - other.token);
  return tokens.map(({ token, from, to, text }, index) => {
    const before = tokens[index - 1]?.token ?? 0;
    const apply = (state: RegisterState): RegisterState | undefined =>
      state.granted === before ? { ...state, granted: token } : undefined;
    return { from, to, text, apply };
  });
}

function releaseSteps(releases: readonly Operation[], grants: readonly Grant[]): RegisterStep[] {
  return releases.flatMap((operation) => {
    const { key, outcome, from, to, details } = operation;
    const token = tokenOf(operation, key, grants);
    if (token === undefined || outcome !== "ok" || details.result === "false") return [];
    const apply = (state: RegisterState): RegisterState | undefined =>
      state.granted < token ? undefined : { ...state, released: Math.max(state.released, token) };
    return [{ from, to, text: tellOperation(operation), apply }];
  });
}
