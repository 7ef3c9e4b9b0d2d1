/** The figures of a run, as tables on a terminal; the sums of the recorded runs, on docs/evidence.md. */
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { withGenerated } from "../../tools/bench/costs/markdown.ts";
import { evidencePage } from "../../tools/bench/stamp.ts";
import { type Operation, primitives } from "./history.ts";
import type { TortureResult } from "./run.ts";

const root = join(import.meta.dirname, "../..");
/** The figures of the runs that are reported, one a line. */
const recordedRuns = join(root, "test/torture/runs.jsonl");

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

/** The tables of a run: the operations, the faults, and what the run was. */
export function runTables(run: RunFigures): string {
  const { seed, commit, minutes, processes, requests, holds, kills, freezes, violations } = run;
  const faults = { ...run.faults, "processes killed": kills, "processes frozen": freezes };
  const about = { minutes, processes, requests, operations: operationsOf(run), holds, violations };
  return [
    table(
      ["operations", "ok", "refused", "unknown"],
      outcomesOf([run]).map(([subject, counts]) => [subject, ...counts.map(shown)]),
    ),
    table(
      ["faults", "times"],
      Object.entries(faults)
        .sort(([, one], [, other]) => other - one)
        .map(([name, times]) => [name, shown(times)]),
    ),
    table(
      ["seed", "commit", ...Object.keys(about)],
      [[String(seed), commit, ...Object.values(about).map(shown)]],
    ),
  ].join("\n");
}

/** How many operations of some runs ended with each outcome, by primitive. */
function outcomesOf(runs: readonly RunFigures[]): readonly (readonly [subject: string, counts: number[]])[] {
  return [...primitives, "register"]
    .map((subject): [string, number[]] => [
      subject,
      [0, 1, 2].map((outcome) => sum(runs, ({ operations }) => operations[subject]?.[outcome] ?? 0)),
    ])
    .filter(([, counts]) => counts.some((count) => count > 0));
}

function operationsOf({ operations }: RunFigures): number {
  return Object.values(operations)
    .flat()
    .reduce((total, count) => total + count, 0);
}

function sum(runs: readonly RunFigures[], of: (run: RunFigures) => number): number {
  return runs.reduce((total, run) => total + of(run), 0);
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

/** The page with the sums of these runs. */
export function pageWith(page: string, runs: readonly RunFigures[]): string {
  const unique = (of: (run: RunFigures) => string): string[] => [...new Set(runs.map(of))];
  const commits = unique(({ commit }) => `\`${commit}\``);
  const ofCommits =
    commits.length > 1
      ? `${commits.length} commits from ${commits[0]} to ${commits.at(-1)}`
      : `${commits[0]}`;
  const total = (of: (run: RunFigures) => number): string => shown(sum(runs, of));
  const faults = total((run) => Object.values(run.faults).reduce((all, times) => all + times, 0));
  const about = [
    `Measured in ${runs.length} runs on ${ofCommits}, on ${unique(({ engine }) => engine).join(", ")}:`,
    `${total(({ minutes }) => minutes)} minutes, ${total(({ requests }) => requests)} requests, ${faults} faults of the network,`,
    `${total(({ kills }) => kills)} processes killed, ${total(({ freezes }) => freezes)} frozen, ${total(({ holds }) => holds)} leases held,`,
    `${total(operationsOf)} operations, ${total(({ violations }) => violations)} violations.`,
  ].join("\n");
  const outcomes = outcomesOf(runs);
  const [ok, refused, unknown] = [0, 1, 2].map((outcome) =>
    shown(outcomes.reduce((all, [, counts]) => all + (counts[outcome] ?? 0), 0)),
  );
  const ended = `Operations: ${ok} ok, ${refused} refused, ${unknown} unknown (the outcome never reached the caller).`;
  return withGenerated(page, `${about}\n\n${ended}`, "npm run evidence -- torture");
}

/** Adds a run to those that are recorded, and writes the page anew. */
export async function record(figures: RunFigures): Promise<void> {
  await appendFile(recordedRuns, `${JSON.stringify(figures)}\n`);
  await writeFile(evidencePage, pageWith(await readFile(evidencePage, "utf8"), await readRuns()));
}
