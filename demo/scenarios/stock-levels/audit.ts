import { isDeepStrictEqual } from "node:util";
import { type Check, check } from "../../check.ts";
import { listed, overlaps, takenOver } from "../../lease-log.ts";
import type { Reading, Round, StockEvidence } from "./evidence.ts";
import { callersAtOnce } from "./plan.ts";

/** Judges what the callers were given, and what it took. */
export function auditStock(evidence: StockEvidence): Check[] {
  const { readings, computations, log, killed } = evidence;
  const from = (round: Round, ...sources: Reading["source"][]): number =>
    readings.filter((reading) => reading.round === round && sources.includes(reading.source)).length;
  const takenFrom = takenOver(
    log,
    (instance, fencingToken) => instance === killed.instance && fencingToken === killed.fencingToken,
  );
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
    check("leases that overlapped in time", 0, overlaps(log)),
    check("takeovers, from", killed.instance, listed(takenFrom)),
    check("the dead one's write, when it arrived", "refused", killed.wasRefused ? "refused" : "landed"),
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

/** What is stale is the value from before; everything else is the value of its time. */
function wrong({ readings, before, after }: StockEvidence): Reading[] {
  return readings.filter(({ round, source, value }) => {
    if (source === "died") return round !== "killed";
    const right = round === "cold" || source === "stale" ? before : after;
    return !isDeepStrictEqual(value, right);
  });
}
