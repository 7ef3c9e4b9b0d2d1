/**
 * Writes the generated part of docs/benchmarks.md and its charts, from the results that were kept. It names where another
 * contender is better than Leasehold, by what was measured.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { table, writeGenerated } from "../costs/markdown.ts";
import { stamp } from "../stamp.ts";
import { type ChartData, chartsOf, svgOf, type Theme } from "./charts.ts";
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

/** One thing that was measured, of Leasehold with the AWS SDK and of others. */
interface Comparison {
  readonly what: string;
  /** Less is better. */
  readonly measured: readonly { readonly id: string; readonly value: number }[];
  readonly show: (value: number) => string;
  /** Which of the machine's noise is in it. @default - none */
  readonly noise?: "time" | "cpu";
}

/** By how much the floor differs from itself in this run: as a share, of the median time and of the CPU. */
export function noiseOf({ cycles }: Pick<PeerResults, "cycles">): { time: number; cpu: number; p99: number } {
  const again = cycles.find(({ id }) => id === "floor-again");
  const off = (ratio = Number.NaN): number => Math.abs(ratio - 1);
  return { time: off(again?.ratio), cpu: off(again?.cpuRatio), p99: off(again?.ratioOfP99) };
}

/** Two runs of the same differ by as much on the best of machines. */
const leastNoise = 0.02;

/** A line for each thing that others do better, by more than this run's noise. */
export function lossesOf(results: PeerResults): string[] {
  const noises = noiseOf(results);
  return comparisons(results).flatMap(({ what, measured, show, noise }) => {
    const ours = measured.find(({ id }) => id === "leasehold");
    if (ours === undefined) return [];
    const margin = noise === undefined ? 0 : Math.max(noises[noise], leastNoise);
    const better = measured
      .filter(
        ({ id, value }) =>
          id !== "floor-again" && !id.startsWith("leasehold") && value < ours.value * (1 - margin),
      )
      .toSorted((a, b) => a.value - b.value);
    if (better.length === 0) return [];
    const others = better.map(({ id, value }) => `${nameOf(id)} ${show(value)}`).join("; ");
    return [`**${what}**: ${show(ours.value)}. Less: ${others}.`];
  });
}

function comparisons({ cycles, wire, takeOvers, handOvers, holding, bundles }: PeerResults): Comparison[] {
  const most = Math.max(...holding.map(({ locks }) => locks));
  const waiters = [...new Set(handOvers.map((one) => one.waiters))];
  return [
    {
      what: "Requests of a cycle",
      measured: wire.map(({ id, requests }) => ({ id, value: requests })),
      show: String,
    },
    {
      what: "Time of a cycle, p50",
      measured: cycles.map(({ id, ratio }) => ({ id, value: ratio })),
      show: timesFloor,
      noise: "time",
    },
    {
      what: "CPU of a cycle",
      measured: cycles.map(({ id, cpuRatio }) => ({ id, value: cpuRatio })),
      show: timesFloor,
      noise: "cpu",
    },
    {
      what: "Bundle, gzipped",
      measured: bundles.map(({ id, gzipBytes }) => ({ id, value: gzipBytes })),
      show: (bytes) => `${(bytes / 1000).toFixed(1)} KB`,
    },
    {
      what: "CPU of the import",
      measured: bundles.map(({ id, importCpuMs }) => ({ id, value: importCpuMs })),
      show: (ms) => `${ms.toFixed(0)} ms`,
      noise: "cpu",
    },
    {
      what: "Taking over, called at the death",
      measured: takeOvers.flatMap(({ id, fromDeathMs }) =>
        fromDeathMs === undefined ? [] : [{ id, value: fromDeathMs }],
      ),
      show: (ms) => `${(ms / 1000).toFixed(2)} s`,
      noise: "time",
    },
    {
      what: "Requests of a takeover, called later",
      measured: takeOvers.map(({ id, laterRequests }) => ({ id, value: laterRequests })),
      show: (count) => count.toFixed(0),
    },
    ...waiters.map(
      (count): Comparison => ({
        what: `Requests of a hand-over, ${count === 1 ? "1 caller waits" : `${count} callers wait`}`,
        measured: handOvers
          .filter((one) => one.waiters === count)
          .map(({ id, requests }) => ({ id, value: requests })),
        show: (requests) => requests.toFixed(1),
      }),
    ),
    ...waiters.map(
      (count): Comparison => ({
        what: `Idle time of a hand-over, ${count === 1 ? "1 caller waits" : `${count} callers wait`}`,
        measured: handOvers
          .filter((one) => one.waiters === count)
          .map(({ id, idleMs }) => ({ id, value: idleMs })),
        show: (ms) => `${ms.toFixed(0)} ms`,
        noise: "time",
      }),
    ),
    {
      what: `Requests of a heartbeat period, ${most.toLocaleString("en-US")} locks`,
      measured: holding
        .filter(({ locks }) => locks === most)
        .map(({ id, requests }) => ({ id, value: requests })),
      show: String,
    },
    {
      what: `CPU of a heartbeat period, ${most.toLocaleString("en-US")} locks`,
      measured: holding.filter(({ locks }) => locks === most).map(({ id, cpuMs }) => ({ id, value: cpuMs })),
      show: (ms) => `${ms.toFixed(0)} ms`,
      noise: "cpu",
    },
    {
      what: "Memory of a lock that is held",
      measured: holding.flatMap(({ id, locks, bytes }) =>
        locks === most && bytes !== null ? [{ id, value: bytes }] : [],
      ),
      show: (bytes) => `${(bytes / 1000).toFixed(1)} KB`,
    },
  ];
}

function timesFloor(ratio: number): string {
  return `${ratio.toFixed(2)}×`;
}
