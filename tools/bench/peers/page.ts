/** Writes the generated part of docs/benchmarks.md and its charts, from the results that were kept. */
import { mkdir, writeFile } from "node:fs/promises";
import { table, writeGenerated } from "../costs/markdown.ts";
import { stamp } from "../stamp.ts";
import { type ChartData, chartsOf, svgOf, type Theme } from "./charts.ts";
import { lossesOf, noiseOf } from "./losses.ts";
import { type PeerResults, readResults } from "./results.ts";
import { nameOf, type ResultTable, tablesOf } from "./tables.ts";

/** What writes it, as its marks in the page say. */
export const command = "npm run bench -- --write";

const docs = new URL("../../../docs/", import.meta.url);
const folder = "pictures/benchmarks";

/** Writes the page and the pictures anew. */
export async function writePage(): Promise<void> {
  const results = await readResults();
  await writeGenerated("benchmarks.md", generatedPart(results), command);
  await mkdir(new URL(`${folder}/`, docs), { recursive: true });
  for (const [file, svg] of pictures(results)) await writeFile(new URL(file, docs), svg);
}

/** Each picture, by its path below docs/. */
export function pictures(results: PeerResults): [file: string, svg: string][] {
  return chartsOf(results).flatMap((chart) =>
    (["light", "dark"] as const).map((theme): [string, string] => [
      fileOf(chart, theme),
      svgOf(chart, theme),
    ]),
  );
}

/** What stands between the marks of the page. */
export function generatedPart(results: PeerResults): string {
  const charts = new Map(chartsOf(results).map((chart) => [chart.name, chart]));
  const tables = tablesOf(results);
  const sections = tables.map((one) => section(one, charts));
  return [conditionsText(results), losses(results), ...sections, emptyCells(tables)].join("\n\n");
}

function conditionsText(results: PeerResults): string {
  const { commit, date, engine, node, processor, cores, load, isQuick, minutes } = results.conditions;
  const again = results.cycles.find(({ id }) => id === "floor-again");
  const { time, cpu, p99 } = noiseOf(results);
  const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
  return [
    "## The run, and its noise",
    "",
    ...(isQuick
      ? ["**A quick run, on a busy machine. Its figures show only that everything runs.**", ""]
      : []),
    stamp(commit),
    "",
    `${date}, ${engine}, Node ${node}, ${cores} cores (${processor}), a load of ${load.toFixed(2)} at the beginning, ${minutes.toFixed(1)} minutes.`,
    "",
    `The floor ran twice. Its two runs differ by ${percent(time)} in the median time, ${percent(p99)} in p99 and ` +
      `${percent(cpu)} in CPU; in single rounds the ratio of their medians went from ${again?.lowest.toFixed(2)} to ` +
      `${again?.highest.toFixed(2)}. A smaller difference says nothing.`,
  ].join("\n");
}

function losses(results: PeerResults): string {
  const lines = lossesOf(results);
  return [
    "## What Leasehold loses at",
    "",
    `All that others do with less, by more than the noise. The first figure is ${nameOf("leasehold")}.`,
    "",
    ...(lines.length === 0 ? ["Nothing in this run."] : lines.map((line) => `- ${line}`)),
  ].join("\n");
}

function section(
  { title, text, head, rows, charts = [] }: ResultTable,
  known: ReadonlyMap<string, ChartData>,
): string {
  const shown = charts.flatMap((name) => known.get(name) ?? []);
  return [
    `## ${title}`,
    "",
    text,
    ...shown.flatMap((chart) => ["", picture(chart)]),
    "",
    table([head, ...rows]),
  ].join("\n");
}

/** Each reason once, for all tables. */
function emptyCells(tables: readonly ResultTable[]): string {
  const reasons = new Set(tables.flatMap((one) => one.reasons));
  return ["## Not in the tables", "", ...[...reasons].map((reason) => `- ${reason}`)].join("\n");
}

/** GitHub and the site show the one for the reader's theme. */
function picture(chart: ChartData): string {
  return [
    "<picture>",
    `  <source media="(prefers-color-scheme: dark)" srcset="./${fileOf(chart, "dark")}">`,
    `  <img src="./${fileOf(chart, "light")}" alt="The figures of the table below" width="520">`,
    "</picture>",
  ].join("\n");
}

function fileOf({ name }: ChartData, theme: Theme): string {
  return `${folder}/${name}-${theme}.svg`;
}
