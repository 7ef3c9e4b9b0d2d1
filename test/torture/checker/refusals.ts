import type { History, Hold, Operation } from "../history.ts";
import { isAcquisition } from "./grants.ts";
import { grouped, tellOperation, type Violation } from "./violation.ts";

/** What the refusals are judged by. */
export interface RefusalTerms {
  readonly leaseDurationMs: number;
  /** After what may have been a grant, the lock can be taken again by then, if nobody renews the lease. */
  readonly takeOverMs: number;
  /** A copy of a request arrives so late at most. */
  readonly latestCopyMs: number;
  /** How long a line of dead waiters may keep a free lock shut. */
  readonly deadLineMs: number;
}

/** A time in which a lock may have been held. */
interface Use {
  readonly key: string;
  readonly operation: Operation | undefined;
  readonly from: number;
  readonly until: number;
}

/** The code of a call that was told that the lock is not free; a call that was cut off has perhaps been told nothing. */
const refusedCode = "LEASE_UNAVAILABLE";

/**
 * A free lock is granted: after the faults nobody is told that a lock is held which has surely been free since the call
 * began. In a line, the dead may keep it shut for a while.
 *
 * Free is what no caller can have held: by a grant that is known, by a call without an answer, or by a late copy of a call
 * that began before the faults ended.
 */
export function refusalViolations(history: History, terms: RefusalTerms): Violation[] {
  const calmAt = history.events.find(({ event }) => event === "calm")?.at;
  if (calmAt === undefined) return [];
  const violations: Violation[] = [];
  const uses = grouped(usesIn(history, calmAt, terms), ({ key }) => key);
  for (const operation of history.operations) {
    const { subject, key, outcome, from, to, details } = operation;
    if (!isAcquisition(operation) || outcome !== "refused" || to === undefined) continue;
    const { code = refusedCode } = details;
    if (code !== refusedCode) continue;
    const since = subject === "fair" ? Math.min(from, to - terms.deadLineMs * 1_000) : from;
    if (since < calmAt) continue;
    const isFree = keysIn(key).every((each) =>
      (uses.get(each) ?? []).every(
        (use) => use.operation === operation || use.from > to || use.until < since,
      ),
    );
    if (isFree) violations.push({ rule: "a free lock is granted", text: tellOperation(operation) });
  }
  return violations;
}

/** A group names its locks together. */
function keysIn(key: string): readonly string[] {
  return key.split("+");
}

function usesIn({ operations, holds, events }: History, calmAt: number, terms: RefusalTerms): Use[] {
  const endOf = (process: string): number =>
    events.find((each) => each.process === process && each.event === "kill")?.at ?? Number.POSITIVE_INFINITY;
  const releases = grouped(
    operations.filter(({ action, outcome }) => action === "release" && outcome === "ok"),
    ({ process }) => process,
  );
  const ofLeases = grouped(holds, ({ process, key }) => JSON.stringify([process, key]));
  const byHold = holds.map((hold) => {
    const until =
      releasedAt(hold, releases.get(hold.process) ?? []) ??
      leftUntil(hold, endOf(hold.process), calmAt, terms);
    return { key: hold.key, operation: undefined, from: hold.since, until: until + cooldownIn(hold) };
  });
  const byCall = operations.filter(mayHold).flatMap((operation) => {
    const { key, process, outcome, from, to = endOf(process), details } = operation;
    const copied = from < calmAt ? Math.min(to, calmAt) + terms.latestCopyMs * 1_000 : from;
    const answered = outcome === "refused" ? from : to;
    const until = Math.max(copied, answered) + (terms.takeOverMs + Number(details.cooldownMs ?? 0)) * 1_000;
    // A refused call in the calm has held nothing, and its answered one shows as a hold.
    const isOver = from >= calmAt && (outcome === "refused" || isHeld(operation, ofLeases));
    return isOver ? [] : keysIn(key).map((each) => ({ key: each, operation, from, until }));
  });
  return [...byHold, ...byCall];
}

/** What may hold a lock without showing as a hold: calls for it, an audit, an operator that closes it. */
function mayHold(operation: Operation): boolean {
  return isAcquisition(operation) || operation.action === "audit" || operation.action === "pause";
}

function isHeld(
  { process, key, details }: Operation,
  ofLeases: ReadonlyMap<string, readonly Hold[]>,
): boolean {
  return keysIn(key).every((each) =>
    ofLeases
      .get(JSON.stringify([process, each]))
      ?.some(({ fencingToken }) => fencingToken === details.fencingToken || each !== key),
  );
}

/** When its release was answered; undefined where that is not known. */
function releasedAt({ key, fencingToken, from }: Hold, releases: readonly Operation[]): number | undefined {
  return releases.find(
    (each) =>
      keysIn(each.key).includes(key) &&
      each.from >= from &&
      (each.details.fencingToken ?? fencingToken) === fencingToken,
  )?.to;
}

/** A holder that has not released it may do so later, with a timer; it renews it until then. */
function leftUntil(
  { from, until = from }: Hold,
  killedAt: number,
  calmAt: number,
  { leaseDurationMs, takeOverMs }: RefusalTerms,
): number {
  const released = Math.max(until, calmAt) + 2 * leaseDurationMs * 1_000;
  return Math.min(killedAt, released) + takeOverMs * 1_000;
}

/** A lock that was held for less than its cooldown stays closed. */
function cooldownIn({ cooldownMs = 0 }: Hold): number {
  return cooldownMs * 1_000;
}
