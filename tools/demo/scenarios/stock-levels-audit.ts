import { isDeepStrictEqual } from "node:util";
import type { CacheAnswer } from "../../../functions/resource-cache/cache.ts";
import type { StockLevels } from "../../../functions/resource-cache/stock-levels.ts";
import {
  type Grant,
  type LoggedLeaseEvent,
  overlaps,
  ranOut,
  takenOver,
  type WasCutShort,
} from "../leases.ts";
import { type Check, check, listed, type Outcome, promise } from "../scenario.ts";

/**
 * The requested values, in this order.
 *
 * - `cold`: the value was never computed, and all callers want it at once.
 * - `killed`: it is past its time, and its computing process dies.
 * - `bereaved`: the dead process's lease has not ended.
 * - `recovered`: it has.
 * - `afterwards`: the dead process's write has arrived.
 */
export type Round = "cold" | "killed" | "bereaved" | "recovered" | "afterwards";

/** How many ask at once in each round. */
export const callersAtOnce: Readonly<Record<Round, number>> = {
  cold: 12,
  killed: 4,
  bereaved: 4,
  // The next caller would find the new value, or the lock just released.
  recovered: 1,
  afterwards: 4,
};

/** One call, and what came of it. */
export interface Reading {
  readonly round: Round;
  readonly instance: string;
  readonly source: CacheAnswer<StockLevels>["source"] | "died" | "failed" | "timedOut";
  /** Absent where there was no answer. */
  readonly value?: StockLevels;
}

/** A call that was killed between its computation and the storing of it. */
export interface Killed {
  readonly instance: string;
  readonly fencingToken: number;
  /** Whether its write was refused when it arrived after all. */
  readonly wasRefused: boolean;
}

/** All that the audit looks at. */
export interface StockEvidence {
  readonly readings: readonly Reading[];
  /** What the warehouse had at first. */
  readonly before: StockLevels;
  /** What it had when the value was computed for the last time. */
  readonly after: StockLevels;
  /** The grants of the lease under which the value is computed, as the table made them; owners are names of instances. */
  readonly grants: readonly Grant[];
  /** What instances told of it. */
  readonly log: readonly LoggedLeaseEvent[];
  /** How often the movements were read: once for each computation. */
  readonly computations: number;
  readonly killed: Killed;
  /** Rounds that were answered only after what they were to show was over, and what that was. */
  readonly tardy: readonly string[];
}

/** Judges what the callers were given, and what it took. */
export function judgeStock(evidence: StockEvidence): Outcome {
  return { checks: auditStock(evidence), inShort: summarizeStock(evidence), late: lateAnswers(evidence) };
}

function auditStock(evidence: StockEvidence): Check[] {
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
function summarizeStock({ readings, computations }: StockEvidence): string {
  const stale = readings.filter(({ source }) => source === "stale").length;
  return `${readings.length} calls, ${computations} computations, the old value ${stale} times, 1 late write refused`;
}

/** Says what came too late for the plan. */
function lateAnswers(evidence: StockEvidence): string[] {
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
