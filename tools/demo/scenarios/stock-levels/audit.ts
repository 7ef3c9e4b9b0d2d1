import { isDeepStrictEqual } from "node:util";
import { type Check, check, listed, promise } from "../../check.ts";
import { overlaps, takenOver } from "../../lease-history.ts";
import { ranOut, type WasCutShort } from "../../lease-log.ts";
import type { Reading, Round, StockEvidence } from "./evidence.ts";
import { callersAtOnce } from "./plan.ts";

/** Judges what the callers were given, and what it took. */
export function auditStock(evidence: StockEvidence): Check[] {
  const { readings, computations, grants, killed } = evidence;
  const from = (round: Round, ...sources: Reading["source"][]): number =>
    readings.filter((reading) => reading.round === round && sources.includes(reading.source)).length;
  const takenFrom = takenOver(grants, wasKilled(evidence));
  return [
    check("callers that computed a value that nobody had", 1, from("cold", "computed")),
    check("callers that got it from that one", callersAtOnce.cold - 1, from("cold", "otherCall", "cache")),
    check("callers killed while they computed it anew", 1, from("killed", "died")),
    check(
      "callers that got the old value meanwhile",
      callersAtOnce.killed - 1 + callersAtOnce.bereaved,
      from("killed", "stale") + from("bereaved", "stale"),
    ),
    check("callers that computed it after the dead one's lease", 1, from("recovered", "computed")),
    check("computations, by their reads of the movements", 3, computations),
    promise("leases that overlapped in time", 0, overlaps(grants)),
    check("takeovers, from", killed.instance, listed(takenFrom)),
    promise("the dead one's write, when it arrived", "refused", killed.wasRefused ? "refused" : "landed"),
    check(
      "callers afterwards, with the newer value",
      callersAtOnce.afterwards,
      readings.filter(
        ({ round, value }) => round === "afterwards" && isDeepStrictEqual(value, evidence.after),
      ).length,
    ),
    check("answers with a wrong value, or none", 0, wrong(evidence).length),
  ];
}

/** Counts what happened, for the last line. */
export function summarizeStock({ readings, computations }: StockEvidence): string {
  const stale = readings.filter(({ source }) => source === "stale").length;
  return `${readings.length} calls, ${computations} computations, the old value ${stale} times, 1 late write refused`;
}

/** Says what came too late for the plan. */
export function lateAnswers(evidence: StockEvidence): string[] {
  const { readings, grants, log, tardy } = evidence;
  const timedOut = readings.flatMap(({ round, instance, source }) =>
    source === "timedOut" ? [`${instance} gave no answer in its time (${round})`] : [],
  );
  return [...tardy, ...timedOut, ...ranOut(grants, log, wasKilled(evidence))];
}

function wasKilled({ killed }: StockEvidence): WasCutShort {
  return (owner, fencingToken) => owner === killed.instance && fencingToken === killed.fencingToken;
}

/** What is stale is the value from before; everything else is the value of its time. */
function wrong({ readings, before, after }: StockEvidence): Reading[] {
  return readings.filter(({ round, source, value }) => {
    if (source === "died") return round !== "killed";
    const right = round === "cold" || source === "stale" ? before : after;
    return !isDeepStrictEqual(value, right);
  });
}
