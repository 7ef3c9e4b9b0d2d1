import type { Hold, Operation } from "../history.ts";
import { type Grant, isOneLease } from "./grants.ts";
import { tellHold, type Violation } from "./violation.ts";

/** Something that was held for certain, for a time. */
type CertainHold = Hold & { readonly until: number };

/**
 * Mutual exclusion, and the bounds of what may be held together: at no moment are two exclusive holds of a key certain, nor
 * a writer beside another holder, nor more permits than there are.
 *
 * Handles of one lease are one hold. An operator who breaks a lease lets a new holder in beside the old one, on
 * purpose. Whatever is most crowded began with a grant, so it is enough to look at the moment of each grant.
 */
export function exclusionViolations(
  holds: readonly Hold[],
  operations: readonly Operation[],
  permits: number,
): Violation[] {
  const breaks = operations.filter(({ action, outcome }) => action === "break" && outcome !== "refused");
  const certain = holds.filter((hold): hold is CertainHold => hold.until !== undefined);
  const violations: Violation[] = [];
  for (const ofKey of Map.groupBy(certain, ({ key }) => key).values()) {
    ofKey.sort((one, other) => one.from - other.from);
    let active: CertainHold[] = [];
    for (const hold of ofKey) {
      active = active.filter(({ until }) => until > hold.from);
      // The break came before its holder had learnt of the grant.
      if (isBroken(hold, hold.from, breaks)) continue;
      const others = active.filter(
        (other) => !isOneLease(hold, other) && !isBroken(other, hold.from, breaks),
      );
      const beside = tooMany(hold, others, permits);
      if (beside.length > 0)
        violations.push({ rule: ruleOf(hold), text: [hold, ...beside].map(tellHold).join("; ") });
      active.push(hold);
    }
  }
  return violations;
}

/** Whether an operator may have broken its lease before `at`: its holder believes in it for a while all the same. */
function isBroken({ key, fencingToken, since }: Hold, at: number, breaks: readonly Operation[]): boolean {
  return breaks.some(
    ({ key: ofKey, details, from, to = Number.POSITIVE_INFINITY }) =>
      ofKey === key && details.fencingToken === fencingToken && from < at && to > since,
  );
}

/** The holds that a grant should not have been given beside; empty where it is right. */
function tooMany(hold: CertainHold, active: readonly CertainHold[], permits: number): readonly CertainHold[] {
  switch (hold.kind) {
    case "exclusive":
    case "write":
      return active;
    case "read":
      return active.filter(({ kind }) => kind !== "read");
    case "permit": {
      const taken = active.reduce((sum, each) => sum + each.permits, hold.permits);
      return taken > permits ? active : [];
    }
  }
}

function ruleOf({ kind }: Hold): string {
  if (kind === "permit") return "the bound of the permits";
  return kind === "exclusive" ? "mutual exclusion" : "readers or one writer";
}

/** A lease that was lost does not come back: without that, what is certain of a hold would not be. */
export function returningHolds(holds: readonly Hold[]): Violation[] {
  return holds
    .filter(({ until, lostAt }) => until !== undefined && lostAt !== undefined && until > lostAt)
    .map((hold) => ({
      rule: "a lost lease stays lost",
      text: `${tellHold(hold)}, though it was lost in between`,
    }));
}

/** No lease is held for longer than it lasts: its time counts from before its request, so no later than from its grant. */
export function overlongHolds(holds: readonly Hold[]): Violation[] {
  return holds
    .filter(({ from, until = from, leaseMs = Number.POSITIVE_INFINITY }) => until - from > leaseMs * 1_000)
    .map((hold) => ({
      rule: "a lease ends by itself",
      text: `${tellHold(hold)}, a lease of ${hold.leaseMs} ms that nothing has renewed`,
    }));
}

/** A lock that is to stay closed for a time after a grant has no later grant before. */
export function cooldownViolations(
  holds: readonly Hold[],
  grants: readonly Grant[],
  earlyMs: number,
): Violation[] {
  const ofKeys = Map.groupBy(grants, ({ key }) => key);
  return holds.flatMap((hold): Violation[] => {
    const { key, fencingToken, since, cooldownMs } = hold;
    if (cooldownMs === undefined) return [];
    const opensAt = since + (cooldownMs - earlyMs) * 1_000;
    const early = ofKeys.get(key)?.find((grant) => grant.fencingToken > fencingToken && grant.at < opensAt);
    if (early === undefined) return [];
    return [
      { rule: "a lock stays closed for its time", text: `${early.text}, too soon after ${tellHold(hold)}` },
    ];
  });
}
