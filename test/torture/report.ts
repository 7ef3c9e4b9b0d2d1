/** The figures of runs, as tables: on a terminal, and on the page that reports the long runs. */
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { withGenerated } from "../../tools/bench/costs/markdown.ts";
import { type Operation, primitives } from "./history.ts";
import type { TortureResult } from "./run.ts";

const root = join(import.meta.dirname, "../..");
/** The figures of the runs that are reported, one a line. */
export const recordedRuns: string = join(root, "test/torture/runs.jsonl");
export const reportPage: string = join(root, "docs/torture.md");

/** What one run has shown, in numbers. */
export interface RunFigures {
  readonly date: string;
  /** Of the code that was tortured. */
  readonly commit: string;
  readonly engine: string;
  readonly seed: number;
  readonly minutes: number;
  readonly processes: number;
  readonly starts: number;
  readonly kills: number;
  readonly freezes: number;
  readonly requests: number;
  /** By kind. */
  readonly faults: Readonly<Record<string, number>>;
  /** Of each primitive, and of the registers, by outcome. */
  readonly operations: Readonly<Record<string, readonly [ok: number, refused: number, unknown: number]>>;
  readonly holds: number;
  readonly violations: number;
}

export function figuresOf(
  { history, violations, tally }: TortureResult,
  about: Pick<RunFigures, "seed" | "commit" | "minutes" | "processes" | "engine">,
): RunFigures {
  const { requests = 0, kills = 0, freezes = 0, ...faults } = Object.fromEntries(tally);
  const outcomes = (all: readonly Operation[]): [number, number, number] => {
    const counted = (outcome: Operation["outcome"]): number =>
      all.filter((operation) => operation.outcome === outcome).length;
    return [counted("ok"), counted("refused"), counted("unknown")];
  };
  const bySubject = [...primitives, "register"].map(
    (name) => [name, outcomes(history.operations.filter(({ subject }) => subject === name))] as const,
  );
  return {
    date: new Date().toISOString().slice(0, 10),
    ...about,
    starts: history.events.filter(({ event }) => event === "start").length,
    ...{ kills, freezes, requests, faults },
    operations: Object.fromEntries(bySubject),
    holds: history.holds.length,
    violations: violations.length,
  };
}

/** The tables of some runs: the operations, the faults, and what each run was. */
export function runTables(runs: readonly RunFigures[]): string {
  const operations = new Map<string, [number, number, number]>();
  const faults = new Map<string, number>();
  for (const run of runs) {
    for (const [name, counts] of Object.entries(run.operations)) {
      const [ok, refused, unknown] = operations.get(name) ?? [0, 0, 0];
      operations.set(name, [ok + counts[0], refused + counts[1], unknown + counts[2]]);
    }
    for (const [name, times] of Object.entries(run.faults)) faults.set(name, (faults.get(name) ?? 0) + times);
  }
  const sum = (of: (run: RunFigures) => number): number => runs.reduce((total, run) => total + of(run), 0);
  const counts = [...operations].filter(([, each]) => each.some((times) => times > 0));
  const all = counts.reduce((total, [, each]) => total + each[0] + each[1] + each[2], 0);
  return [
    table(
      ["operations", "ok", "refused", "unknown"],
      counts.map(([name, each]) => [name, ...each.map(shown)]),
    ),
    table(
      ["faults", "times"],
      [
        ...faults,
        ["processes killed", sum(({ kills }) => kills)] as const,
        ["processes frozen", sum(({ freezes }) => freezes)] as const,
      ]
        .sort(([, one], [, other]) => other - one)
        .map(([name, times]) => [name, shown(times)]),
    ),
    table(
      [
        "seed",
        "commit",
        "minutes",
        "processes",
        "requests",
        "operations",
        "holds",
        "killed",
        "frozen",
        "violations",
      ],
      [
        ...runs.map((run) => [
          String(run.seed),
          run.commit,
          String(run.minutes),
          String(run.processes),
          shown(run.requests),
          shown(
            Object.values(run.operations).reduce((total, each) => total + each[0] + each[1] + each[2], 0),
          ),
          ...[run.holds, run.kills, run.freezes, run.violations].map(shown),
        ]),
        ...(runs.length === 1
          ? []
          : [
              [
                "all",
                "",
                String(sum(({ minutes }) => minutes)),
                "",
                shown(sum(({ requests }) => requests)),
                shown(all),
                ...[
                  sum(({ holds }) => holds),
                  sum(({ kills }) => kills),
                  sum(({ freezes }) => freezes),
                  sum(({ violations }) => violations),
                ].map(shown),
              ],
            ]),
      ],
    ),
  ].join("\n");
}

function shown(number: number): string {
  return number.toLocaleString("en-US");
}

/** A table in Markdown, which a terminal shows as well. Numbers stand at the right. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]): string => {
    const padded = cells.map((cell, column) => {
      const width = widths[column] ?? 0;
      return column === 0 ? cell.padEnd(width) : cell.padStart(width);
    });
    return `| ${padded.join(" | ")} |`;
  };
  const rule = widths.map((width, column) =>
    column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`,
  );
  return `${[line(head), `| ${rule.join(" | ")} |`, ...rows.map(line)].join("\n")}\n`;
}

/** Reads the figures of the runs that are reported. */
export async function readRuns(): Promise<readonly RunFigures[]> {
  const lines = (await readFile(recordedRuns, "utf8")).split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as RunFigures);
}

/** The page with the tables of these runs. */
export function pageWith(page: string, runs: readonly RunFigures[]): string {
  const unique = (of: (run: RunFigures) => string): string => [...new Set(runs.map(of))].join(", ");
  const about = `Runs of ${unique(({ date }) => date)}, on ${unique(({ engine }) => engine)}:`;
  return withGenerated(page, `${about}\n\n${runTables(runs).trim()}`, "npm run evidence -- torture");
}

/** Adds a run to those that are reported, and writes the page anew. */
export async function record(figures: RunFigures): Promise<void> {
  await appendFile(recordedRuns, `${JSON.stringify(figures)}\n`);
  await writeFile(reportPage, pageWith(await readFile(reportPage, "utf8"), await readRuns()));
}
