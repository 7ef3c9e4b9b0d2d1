/** What came of all mutants: on the screen, and as the tables of docs/mutation.md. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withMeasured } from "../../tools/bench/stamp.ts";
import { explained } from "./explained.ts";
import type { Mutant } from "./mutants.ts";
import { root, shareOfCode } from "./scope.ts";

/** What became of a mutant; `open` while some tests have not judged it. */
export interface Result {
  readonly status: "killed" | "timedOut" | "survived" | "unreached" | "open";
  /** The test that has seen it. */
  readonly by?: string;
  readonly file?: string;
}

/** How many of 100 mutants the tests have to see. */
const threshold = 90;
const page = join(root, "docs/mutation.md");

interface Row {
  readonly all: number;
  readonly killed: number;
  readonly timedOut: number;
  readonly survived: number;
  readonly unreached: number;
  /** Not seen by the tests so far; others have still to judge it. */
  readonly open: number;
}

const columns = ["all", "killed", "timedOut", "survived", "unreached", "open"] as const;

type Results = Readonly<Record<string, Result>>;

/** Tells what is known of these mutants; gives the exit code. */
export function tell(mutants: readonly Mutant[], results: Results): number {
  const left = survivors(mutants, results);
  const reasons = reasonsByKey();
  for (const { key, file, line, change, mutator } of left)
    if (!reasons.has(key)) console.log(`${results[key]?.status} ${file}:${line} ${mutator}\n    ${change}`);
  const rows = rowsOf(mutants, results, ({ file }) => file);
  console.table(Object.fromEntries([...rows].map(([file, row]) => [file, { ...row, score: scoreOf(row) }])));
  const total = rowOf(mutants, results);
  const open = left.filter(({ key }) => !reasons.has(key)).length;
  console.log(`score ${scoreOf(total)} of 100; ${left.length} not seen, ${open} of them not explained`);
  return Number(scoreOf(total)) < threshold ? 1 : 0;
}

/** Writes the tables of the page: of all mutants, on this commit. */
export function writePage(mutants: readonly Mutant[], results: Results, commit: string): void {
  const folders = rowsOf(mutants, results, ({ file }) =>
    file.replace(/^packages\/(\w+)\/src\/([^/]+).*$/, "$1: $2"),
  );
  const lines = [
    shareLine(),
    "",
    "| | mutants | killed | endless | survived | not reached | open | score |",
    "|---|--:|--:|--:|--:|--:|--:|--:|",
    ...[...folders].map(([name, row]) => tableLine(name, row)),
    tableLine("all", rowOf(mutants, results)),
    "",
    ...explanations(mutants, results),
  ];
  const text = readFileSync(page, "utf8");
  writeFileSync(page, withMeasured(text, lines.join("\n").trim(), "npm run evidence -- mutation", commit));
}

/** What part of the code the figures are about. */
export function shareLine(): string {
  const { mutated, all } = shareOfCode();
  const [lines, of] = [mutated, all].map((count) => count.toLocaleString("en"));
  const percent = ((100 * mutated) / all).toFixed(0);
  return (
    `The figures are about ${lines} of the ${of} lines of \`packages\`, \`functions\` and \`infra\`, ${percent} %: the protocol and ` +
    "what is made of it. About the rest they say nothing."
  );
}

/** Each mutant that no test has seen, under the reason why that is right. */
function* explanations(mutants: readonly Mutant[], results: Results): Iterable<string> {
  const left = new Map(survivors(mutants, results).map((mutant) => [mutant.key, mutant]));
  yield "## Explained\n";
  for (const { why, mutants: keys } of explained) {
    const meant = keys.flatMap((key) => left.get(key) ?? []);
    if (meant.length === 0) continue;
    yield `${why}\n`;
    for (const mutant of meant) yield placeOf(mutant);
    yield "";
  }
  const reasons = reasonsByKey();
  const open = [...left.values()].filter(({ key }) => !reasons.has(key));
  if (open.length === 0) return;
  yield "## Not explained yet\n";
  for (const mutant of open) yield placeOf(mutant);
}

function placeOf({ file, line, change }: Mutant): string {
  return `- ${file.replace(/^packages\//, "")}:${line} \`\` ${change} \`\``;
}

function survivors(mutants: readonly Mutant[], results: Results): Mutant[] {
  return mutants.filter(({ key }) => ["survived", "unreached"].includes(results[key]?.status ?? ""));
}

function reasonsByKey(): Map<string, string> {
  return new Map(explained.flatMap(({ why, mutants }) => mutants.map((key) => [key, why] as const)));
}

function rowsOf(
  mutants: readonly Mutant[],
  results: Results,
  name: (mutant: Mutant) => string,
): Map<string, Row> {
  const groups = Map.groupBy(mutants, name);
  return new Map([...groups].map(([group, members]) => [group, rowOf(members, results)]));
}

function rowOf(mutants: readonly Mutant[], results: Results): Row {
  const count = (status: Result["status"]): number =>
    mutants.filter(({ key }) => results[key]?.status === status).length;
  const [killed, timedOut] = [count("killed"), count("timedOut")];
  const [survived, unreached] = [count("survived"), count("unreached")];
  const open = mutants.length - killed - timedOut - survived - unreached;
  return { all: mutants.length, killed, timedOut, survived, unreached, open };
}

function scoreOf({ all, killed, timedOut }: Row): string {
  return ((100 * (killed + timedOut)) / Math.max(1, all)).toFixed(1);
}

function tableLine(name: string, row: Row): string {
  return `| ${name} | ${columns.map((column) => row[column]).join(" | ")} | ${scoreOf(row)} % |`;
}
