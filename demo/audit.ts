import { auditShop } from "./audit-shop.ts";
import { type Check, check } from "./check.ts";
import type { Casualty, Delivery, Evidence, RecordedEvent } from "./recording.ts";

/**
 * Judges what happened by what was recorded on the way and what the tables hold in the end.
 *
 * Believes nobody: what instances reported is held against the plan, the lease events and the shop's own items.
 */
export function audit(evidence: Evidence): Check[] {
  return [...auditRuns(evidence), ...auditLeases(evidence), ...auditShop(evidence)];
}

/** Says in one sentence what the audit came to. */
export function conclude(
  checks: readonly Check[],
  { deliveries, events, casualties, after }: Evidence,
): string {
  const wrong = checks.filter(({ ok }) => !ok).length;
  if (wrong > 0) return `${wrong} of ${checks.length} checks FAILED.`;
  const ended = (result: string): number =>
    deliveries.filter(({ answer }) => answer?.result === result).length;
  const takeovers = events.filter(({ event }) => event.type === "takeover").length;
  const frozen = casualties.filter(({ kind }) => kind === "frozen").length;
  return (
    `All ${checks.length} checks hold: ${ended("ran")} runs, ${ended("skipped") + ended("doneBefore")} skips, ${takeovers} takeovers, ` +
    `${after.closed.length} orders closed exactly once, stock right to the unit, ` +
    `${frozen} stale ${frozen === 1 ? "write" : "writes"} fenced off.`
  );
}

function auditRuns({ plan, deliveries, events, casualties }: Evidence): Check[] {
  const count = (test: (delivery: Delivery) => boolean): number => deliveries.filter(test).length;
  const ended = (result: string): number => count(({ answer }) => answer?.result === result);
  const planned = (mishap: string): number => plan.filter((step) => step.mishap === mishap).length;
  const suffered = (kind: Casualty["kind"]): number => casualties.filter((run) => run.kind === kind).length;
  const holders = new Map(granted(events).map(({ tick, instance }) => [tick, instance]));
  const ranToTheEnd = new Set(
    deliveries.flatMap(({ tick, answer }) => (answer?.result === "ran" ? [tick] : [])),
  );
  const isDone = ({ tick, answer }: Delivery): boolean =>
    answer?.result === "doneBefore" && ranToTheEnd.has(tick);
  const isHeld = ({ tick, answer }: Delivery): boolean =>
    answer?.result === "skipped" && answer.holder === holders.get(tick);
  const repeated = count((delivery) => delivery.repeated);
  const cutShort = planned("killed") + planned("frozen");

  return [
    check("ticks fired", plan.length, new Set(deliveries.map(({ tick }) => tick)).size),
    check("instances killed in mid-run", planned("killed"), suffered("killed")),
    check("instances frozen in mid-run", planned("frozen"), suffered("frozen")),
    check("runs to the end", plan.length - cutShort, ended("ran")),
    check("runs cut short by a kill", planned("killed"), ended("died")),
    check("runs that lost their lease", planned("frozen"), ended("lost")),
    check(
      "skips, with a true reason each",
      deliveries.length - plan.length,
      count((one) => isDone(one) || isHeld(one)),
    ),
    check(
      "second copies of a trigger, all skipped",
      planned("deliveredTwice") === 0 ? 0 : Math.max(1, repeated),
      count((delivery) => delivery.repeated && isDone(delivery)),
    ),
  ];
}

function auditLeases({ plan, events, casualties }: Evidence): Check[] {
  const takenFrom = events.flatMap(({ event }) => {
    if (event.type !== "takeover") return [];
    const { owner, fencingToken } = event.from;
    const wasCutShort = casualties.some((run) => run.instance === owner && run.fencingToken === fencingToken);
    return [wasCutShort ? owner : `${owner} (who was alive)`];
  });
  return [
    check("leases granted", `1 in each of ${plan.length} ticks`, describeGrants(plan.length, events)),
    check("fencing tokens, from tick to tick", "growing", describeTokens(events)),
    check("leases that overlapped in time", 0, overlaps(events)),
    check("takeovers, from", list(casualties.map((run) => run.instance)), list(takenFrom)),
  ];
}

function list(names: readonly string[]): string {
  return names.length === 0 ? "nobody" : names.join(", ");
}

interface Grant {
  readonly tick: number;
  readonly instance: string;
  readonly fencingToken: number;
  /** When the call for it was made: not after the lease began. */
  readonly since: number;
}

function granted(events: readonly RecordedEvent[]): Grant[] {
  return events.flatMap(({ tick, instance, at, event }) =>
    event.type === "acquired"
      ? [{ tick, instance, fencingToken: event.fencingToken, since: at - event.waitedMs }]
      : [],
  );
}

function describeGrants(ticks: number, events: readonly RecordedEvent[]): string {
  const grants = granted(events);
  const wrong = Array.from({ length: ticks }, (_, index) => index + 1).flatMap((tick) => {
    const amount = grants.filter((grant) => grant.tick === tick).length;
    return amount === 1 ? [] : [`${amount} in tick ${tick}`];
  });
  return wrong.length === 0 ? `1 in each of ${ticks} ticks` : wrong.join(", ");
}

function describeTokens(events: readonly RecordedEvent[]): string {
  const grants = granted(events);
  const wrong = grants.find(
    ({ fencingToken }, index) => fencingToken <= (grants[index - 1]?.fencingToken ?? 0),
  );
  return wrong === undefined ? "growing" : `not growing in tick ${wrong.tick}`;
}

/** Counts the leases that began before the one before had been released or had expired. */
function overlaps(events: readonly RecordedEvent[]): number {
  const grants = granted(events).sort((one, other) => one.fencingToken - other.fencingToken);
  return grants.filter(({ since }, index) => {
    const former = grants[index - 1];
    return former !== undefined && since < endOf(former.fencingToken, events);
  }).length;
}

/** A lease ends with its release, or else at the expiry that its successor found. */
function endOf(fencingToken: number, events: readonly RecordedEvent[]): number {
  const ends = events.flatMap(({ at, event }) => {
    if (event.type === "released" && event.confirmed && event.fencingToken === fencingToken) return [at];
    if (event.type === "takeover" && event.from.fencingToken === fencingToken) return [event.from.expiresAt];
    return [];
  });
  return Math.min(...ends);
}
