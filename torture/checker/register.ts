import type { Operation } from "../history.ts";
import { linearize, type Step } from "./linearizability.ts";
import { grouped, tellOperation, type Violation } from "./violation.ts";

/** An operation on a register that holds the text `""` at first. */
interface RegisterStep extends Step<string> {
  readonly operation: Operation;
}

/**
 * Linearizability of the fenced registers.
 *
 * A holder of a lock reads the register, and then writes a new value in place of the one that it has read; callers without
 * the lock only read. The lock and the fence are to make this pair one step: so a write takes effect only on the value that
 * was read before it. A write that destroys another one's value (a lost update, a stale write) fits into no order.
 */
export function registerViolations(operations: readonly Operation[]): Violation[] {
  const ofRegisters = operations.filter(({ subject }) => subject === "register");
  const violations: Violation[] = [];
  for (const [key, ofKey] of grouped(ofRegisters, ({ key }) => key)) {
    const found = linearize(ofKey.flatMap(stepsOf), "", (value) => value);
    if (found.isLinearizable) continue;
    const stuck = found.stuck.map(({ operation }) => tellOperation(operation)).join("; ");
    const text = `after ${found.placed} operations ${key} has the value "${found.state}", and none of these can come next: ${stuck}`;
    violations.push({ rule: "linearizability of the fenced register", text });
  }
  return violations;
}

/** A refused operation has no effect, and a read without an answer says nothing. */
function stepsOf(operation: Operation): RegisterStep[] {
  const { action, outcome, from, to, details } = operation;
  if (outcome === "refused" || (action === "read" && outcome !== "ok")) return [];
  const value = String(details.value);
  const read = action === "read" ? value : String(details.previous);
  const apply = (state: string): string | undefined => (state === read ? value : undefined);
  return [{ operation, from, to: outcome === "ok" ? to : undefined, apply }];
}
