import { type Check, check, listed, promise } from "../../check.ts";
import { overlaps, takenOver } from "../../lease-history.ts";
import { ranOut, type WasCutShort } from "../../lease-log.ts";
import { auditShop } from "./audit-shop.ts";
import { type Casualty, type Delivery, type Evidence, isOfTheLock, type RecordedEvent } from "./recording.ts";

/**
 * Checks what happened by the records and by the final tables.
 *
 * Trusts no instance: it compares the instances' reports with the plan, the lease events and the shop's own items.
 */
export function audit(recorded: Evidence): Check[] {
  const evidence = { ...recorded, events: recorded.events.filter(({ event }) => isOfTheLock(event)) };
  return [...auditRuns(evidence), ...auditLeases(evidence), ...auditShop(evidence)];
}

/** Says what came too late for the plan. */
export function lateIn({ plan, grants, events, casualties, deliveries }: Evidence): string[] {
  const timedOut = deliveries.flatMap(({ tick, instance, answer }) =>
    answer?.result === "failed" && answer.timedOut
      ? [`${instance} did not come to an end in tick ${tick}`]
      : [],
  );
  const barred = plan.flatMap((_, index) => {
    const own = deliveries.filter(({ tick }) => tick === index + 1);
    const isBarred = ({ answer }: Delivery): boolean =>
      answer?.result === "skipped" && casualties.some(({ instance }) => instance === answer.holder);
    return own.length > 0 && own.every(isBarred)
      ? [`a dead lease still stood in the way in tick ${index + 1}`]
      : [];
  });
  const wentOn = casualties.flatMap(({ kind, instance, tick, closed, closedAtGate }) =>
    closed > closedAtGate ? [`${instance} went on in tick ${tick} before it could be ${kind}`] : [],
  );
  const ofTheLock = events.filter(({ event }) => isOfTheLock(event));
  return [...timedOut, ...barred, ...wentOn, ...ranOut(grants, ofTheLock, wasCutShort(casualties))];
}

/** Counts what happened, for the last line. */
export function summarize({ deliveries, casualties, after }: Evidence): string {
  const ended = (result: string): number =>
    deliveries.filter(({ answer }) => answer?.result === result).length;
  const frozen = casualties.filter(({ kind }) => kind === "frozen").length;
  return (
    `${ended("ran")} runs, ${ended("skipped") + ended("doneBefore")} skips, ` +
    `${after.closed.length} orders closed exactly once, stock right to the unit, ` +
    `${frozen} stale ${frozen === 1 ? "write" : "writes"} fenced off`
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

function auditLeases({ plan, events, grants, casualties }: Evidence): Check[] {
  const takenFrom = takenOver(grants, wasCutShort(casualties));
  return [
    check("leases granted", `1 in each of ${plan.length} ticks`, describeGrants(plan.length, events)),
    promise("fencing tokens, from tick to tick", "growing", describeTokens(events)),
    promise("leases that overlapped in time", 0, overlaps(grants)),
    check("takeovers, from", listed(casualties.map((run) => run.instance)), listed(takenFrom)),
  ];
}

function wasCutShort(casualties: readonly Casualty[]): WasCutShort {
  return (owner, fencingToken) =>
    casualties.some((run) => run.instance === owner && run.fencingToken === fencingToken);
}

interface Granted {
  readonly tick: number;
  readonly instance: string;
  readonly fencingToken: number;
}

function granted(events: readonly RecordedEvent[]): Granted[] {
  return events.flatMap(({ tick, instance, event }) =>
    event.type === "acquired" ? [{ tick, instance, fencingToken: event.fencingToken }] : [],
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
