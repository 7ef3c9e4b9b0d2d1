import type { Hold, HoldKind, Operation } from "../history.ts";
import { tellHold, tellOperation } from "./violation.ts";

/** A grant that its caller has heard of: by the answer of its call, or because it then held something. */
export interface Grant {
  readonly process: string;
  readonly key: string;
  readonly kind: HoldKind;
  readonly fencingToken: number;
  readonly isShared: true | undefined;
  /** When it was asked for. */
  readonly since: number;
  /** By when its caller knew of it. */
  readonly at: number;
  readonly text: string;
}

/** What each action asks for that gives a lease. */
const kindOf: ReadonlyMap<string, HoldKind> = new Map([
  ["acquire", "exclusive"],
  ["acquireAll", "exclusive"],
  ["permit", "permit"],
  ["read", "read"],
  ["write", "write"],
]);

/** The calls that ask for a lease, of callers and not of registers. */
function isAcquisition({ subject, action }: Operation): boolean {
  return subject !== "register" && subject !== "singleFlight" && kindOf.has(action);
}

/**
 * All grants: one for each hold, and one for each answer that no hold has followed, because its process was killed between
 * the two.
 */
export function grantsOf(operations: readonly Operation[], holds: readonly Hold[]): readonly Grant[] {
  const grants: Grant[] = holds.map((hold) => {
    const { process, key, kind, fencingToken, isShared, since, from } = hold;
    return { process, key, kind, fencingToken, isShared, since, at: from, text: tellHold(hold) };
  });
  const ofLease = Map.groupBy(holds, leaseOf);
  for (const operation of operations) {
    const { process, key, action, outcome, from, to, details } = operation;
    const { fencingToken } = details;
    if (!isAcquisition(operation) || outcome !== "ok" || to === undefined) continue;
    if (typeof fencingToken !== "number") continue;
    const same = ofLease.get(leaseOf({ process, key, fencingToken })) ?? [];
    const its = same.findIndex((hold) => hold.since <= from && to <= hold.from);
    if (its >= 0) {
      same.splice(its, 1);
      continue;
    }
    const kind = kindOf.get(action) ?? "exclusive";
    const text = tellOperation(operation);
    const isShared = operation.subject === "shared" || undefined;
    grants.push({ process, key, kind, fencingToken, isShared, since: from, at: to, text });
  }
  return grants;
}

/** Whether two are handles of one lease. */
export function isOneLease(one: Lease, other: Lease): boolean {
  const isShared = one.isShared === true && other.isShared === true;
  return isShared && one.fencingToken === other.fencingToken && one.process === other.process;
}

type Lease = Pick<Hold, "process" | "fencingToken"> & { readonly isShared?: true | undefined };

function leaseOf({ process, key, fencingToken }: Pick<Hold, "process" | "key" | "fencingToken">): string {
  return JSON.stringify([process, key, fencingToken]);
}

/** Whether two holders of one key cannot hold it at the same moment, whatever else is there. */
export function exclude(one: HoldKind, other: HoldKind): boolean {
  return one !== other || one === "exclusive" || one === "write";
}

/**
 * The fencing token that an operation acts by: its own word, or else the largest that its process had been granted for
 * `key` when it began. Undefined where neither is known.
 */
export function tokenOf(
  { process, from, details }: Operation,
  key: string,
  grants: readonly Grant[],
): number | undefined {
  if (typeof details.fencingToken === "number") return details.fencingToken;
  const own = grants.filter((grant) => grant.process === process && grant.key === key && grant.at <= from);
  return own.length === 0 ? undefined : Math.max(...own.map(({ fencingToken }) => fencingToken));
}
