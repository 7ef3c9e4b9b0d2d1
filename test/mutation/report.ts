/** What came of all mutants: on the screen, and as the table of docs/evidence.md. */
import { writeEvidence } from "../../tools/bench/stamp.ts";
import { explained } from "./explained.ts";
import type { Mutant } from "./mutants.ts";
import { shareOfCode } from "./scope.ts";

/** What became of a mutant; `open` while some tests have not judged it. */
export interface Result {
  readonly status: "killed" | "timedOut" | "survived" | "unreached" | "open";
  /** The test that has seen it. */
  readonly by?: string;
  readonly file?: string;
}

/** How many of 100 mutants the tests have to see. */
const threshold = 90;

interface Row {
  readonly all: number;
  readonly killed: number;
  readonly timedOut: number;
  readonly survived: number;
  readonly unreached: number;
  /** Not seen by the tests so far; others have still to judge it. */
  readonly open: number;
}

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
  for (const line of emptyReasons(mutants, results)) console.log(line);
  console.log(`score ${scoreOf(total)} of 100; ${left.length} not seen, ${open} of them not explained`);
  return Number(scoreOf(total)) < threshold ? 1 : 0;
}

/** Writes the table of the page: of all mutants, on this commit. */
export async function writePage(mutants: readonly Mutant[], results: Results, commit: string): Promise<void> {
  const packages = rowsOf(mutants, results, ({ file }) => file.replace(/^packages\/(\w+)\/.*$/, "$1"));
  const total = rowOf(mutants, results);
  const left = survivors(mutants, results);
  const reasons = reasonsByKey();
  const lines = [
    shareLine(),
    `${total.killed} mutants were killed, ${total.timedOut} endless, ${total.survived} survived, and ${total.unreached} were not reached.`,
    `Of the ${left.length} that no test sees, \`explained.ts\` explains ${left.filter(({ key }) => reasons.has(key)).length}.`,
    ...(total.open > 0 ? [`${total.open} more are not judged yet: the score is a lower bound.`] : []),
    "",
    "| package | mutants | not seen | % seen |",
    "|---|--:|--:|--:|",
    ...[...packages, ["all", total] as const].map(([name, row]) => tableLine(name, row)),
  ];
  await writeEvidence("mutation", lines.join("\n"), commit);
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

/** What `explained.ts` explains in vain: a mutant that tests see, or, of these files, one that there is none of. */
function emptyReasons(mutants: readonly Mutant[], results: Results): string[] {
  const keys = new Set(mutants.map(({ key }) => key));
  const files = new Set(mutants.map(({ file }) => file));
  return [...reasonsByKey().keys()].flatMap((key) => {
    const isSeen = ["killed", "timedOut"].includes(results[key]?.status ?? "");
    if (keys.has(key)) return isSeen ? [`seen, though explained: ${key}`] : [];
    return files.has(key.slice(0, key.indexOf(": "))) ? [`explained, and no mutant: ${key}`] : [];
  });
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
  return `| ${name} | ${row.all} | ${row.survived + row.unreached} | ${scoreOf(row)} |`;
}
