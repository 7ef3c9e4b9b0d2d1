/**
 * Writes the generated part of docs/benchmarks.md from the results that were kept. It names where another contender is better
 * than Leasehold, by what was measured.
 */
import { table, writeGenerated } from "../costs/markdown.ts";
import { stamp } from "../stamp.ts";
import { type PeerResults, readResults } from "./results.ts";
import { nameOf, type ResultTable, tablesOf } from "./tables.ts";

/** What writes it, as its marks in the page say. */
export const command = "npm run bench -- --write";

/** Writes the page anew. */
export async function writePage(): Promise<void> {
  await writeGenerated("benchmarks.md", generatedPart(await readResults()), command);
}

/** What stands between the marks of the page. */
export function generatedPart(results: PeerResults): string {
  const tables = tablesOf(results);
  return [conditionsText(results), losses(results), ...tables.map(section), emptyCells(tables)].join("\n\n");
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
    `The bare writes ran twice. Their two runs differ by ${percent(time)} in the median time, ${percent(p99)} in p99 and ` +
      `${percent(cpu)} in CPU; in single rounds the ratio of their medians went from ${again?.lowest.toFixed(2)} to ` +
      `${again?.highest.toFixed(2)}. A smaller difference says nothing.`,
  ].join("\n");
}

function losses(results: PeerResults): string {
  const lines = lossesOf(results);
  return [
    "## What Leasehold loses at",
    "",
    "All that others do with less, by more than the noise: Leasehold's figure, and then theirs.",
    "",
    ...(lines.length === 0 ? ["Nothing in this run."] : lines.map((line) => `- ${line}`)),
  ].join("\n");
}

function section({ title, text, head, rows }: ResultTable): string {
  return [`## ${title}`, "", text, "", table([head, ...rows])].join("\n");
}

/** Each reason once, for all tables. */
function emptyCells(tables: readonly ResultTable[]): string {
  const reasons = new Set(tables.flatMap((one) => one.reasons));
  return ["## Not in the tables", "", ...[...reasons].map((reason) => `- ${reason}`)].join("\n");
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
    return [`**${what}**: ${show(ours.value)}; ${others}.`];
  });
}

/** Compares a figure of all that have one. */
function compared<One extends { readonly id: string }>(
  what: string,
  measured: readonly One[],
  figure: (one: One) => number | null | undefined,
  show: (value: number) => string,
  noise?: "time" | "cpu",
): Comparison {
  const values = measured.flatMap((one) => {
    const value = figure(one);
    return typeof value === "number" ? [{ id: one.id, value }] : [];
  });
  return { what, measured: values, show, ...(noise && { noise }) };
}

function comparisons({ cycles, wire, takeOvers, handOvers, holding, bundles }: PeerResults): Comparison[] {
  const most = Math.max(...holding.map(({ locks }) => locks));
  const holdingMost = holding.filter(({ locks }) => locks === most);
  const locks = `${most.toLocaleString("en-US")} locks`;
  const lines = [...Map.groupBy(handOvers, ({ waiters }) => waiters)].map(([count, times]) => ({
    times,
    while: count === 1 ? "1 caller waits" : `${count} callers wait`,
  }));
  return [
    compared("Requests of a cycle", wire, ({ requests }) => requests, String),
    compared("Time of a cycle, p50", cycles, ({ ratio }) => ratio, timesFloor, "time"),
    compared("CPU of a cycle", cycles, ({ cpuRatio }) => cpuRatio, timesFloor, "cpu"),
    compared("Bundle, gzipped", bundles, ({ gzipBytes }) => gzipBytes, kilobytes),
    compared("CPU of the import", bundles, ({ importCpuMs }) => importCpuMs, milliseconds, "cpu"),
    compared(
      "Taking over, called at the death",
      takeOvers,
      ({ fromDeathMs }) => fromDeathMs,
      seconds,
      "time",
    ),
    compared(
      "Requests of a takeover, called later",
      takeOvers,
      ({ laterRequests }) => laterRequests,
      (count) => count.toFixed(0),
    ),
    ...lines.map(({ times, while: waiting }) =>
      compared(
        `Requests of a hand-over, ${waiting}`,
        times,
        ({ requests }) => requests,
        (count) => count.toFixed(1),
      ),
    ),
    ...lines.map(({ times, while: waiting }) =>
      compared(`Idle time of a hand-over, ${waiting}`, times, ({ idleMs }) => idleMs, milliseconds, "time"),
    ),
    compared(`Requests of a heartbeat period, ${locks}`, holdingMost, ({ requests }) => requests, String),
    compared(`CPU of a heartbeat period, ${locks}`, holdingMost, ({ cpuMs }) => cpuMs, milliseconds, "cpu"),
    compared("Memory of a lock that is held", holdingMost, ({ bytes }) => bytes, kilobytes),
  ];
}

const kilobytes = (bytes: number): string => `${(bytes / 1000).toFixed(1)} KB`;
const milliseconds = (ms: number): string => `${ms.toFixed(0)} ms`;
const seconds = (ms: number): string => `${(ms / 1000).toFixed(2)} s`;
const timesFloor = (ratio: number): string => `${ratio.toFixed(2)}×`;
