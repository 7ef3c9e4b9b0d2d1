/** The figures of a run: on a terminal, and on docs/evidence.md. */
import type { History, Outcome } from "./history.ts";
import type { TortureResult } from "./run.ts";

/** How many operations of each primitive, and of the registers, ended with each outcome. */
export function outcomesIn({ operations }: History): Readonly<Record<string, Record<Outcome, number>>> {
  const counts: Record<string, Record<Outcome, number>> = {};
  for (const { subject, outcome } of operations) {
    counts[subject] ??= { ok: 0, refused: 0, unknown: 0 };
    counts[subject][outcome] += 1;
  }
  return counts;
}

/** What a run was, and how much has happened in it. */
export function summaryOf(
  { history, violations, tally }: TortureResult,
  run: {
    readonly seed: number;
    readonly minutes: number;
    readonly processes: number;
    readonly engine: string;
  },
): string {
  const { requests = 0, kills = 0, freezes = 0, ...faults } = Object.fromEntries(tally);
  const faultsOfTheNetwork = Object.values(faults).reduce((all, times) => all + times, 0);
  const { operations, holds } = history;
  const ended = (outcome: Outcome): string =>
    shown(operations.filter((operation) => operation.outcome === outcome).length);
  return [
    `${run.minutes} minutes of ${run.processes} processes at a time, by seed ${run.seed}, on ${run.engine}:`,
    `${shown(requests)} requests, ${shown(faultsOfTheNetwork)} faults of the network,`,
    `${shown(kills)} processes killed, ${shown(freezes)} frozen, ${shown(holds.length)} leases held,`,
    `${shown(operations.length)} operations, ${shown(violations.length)} violations.`,
    "",
    `Operations: ${ended("ok")} ok, ${ended("refused")} refused, ${ended("unknown")} unknown (the outcome never reached the caller).`,
  ].join("\n");
}

function shown(number: number): string {
  return number.toLocaleString("en-US");
}
