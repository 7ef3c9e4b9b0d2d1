/**
 * The tables of a run, for the terminal and for docs/benchmarks.md. The page also names where another contender is better than
 * Leasehold, by what was measured.
 */
import { dollars, table, writeGenerated } from "../costs/markdown.ts";
import { costOf } from "../costs/prices.ts";
import { stamp } from "../stamp.ts";
import { contenders, handingOver, takingOver } from "./contenders/index.ts";
import { type PeerResults, readResults } from "./results.ts";

/** What writes it, as its marks in the page say. */
export const command = "npm run bench -- --write";

/** Writes the page anew. */
export async function writePage(): Promise<void> {
  await writeGenerated("benchmarks.md", generatedPart(await readResults()), command);
}

/** What stands between the marks of the page. */
export function generatedPart(results: PeerResults): string {
  const losses = lossesOf(results);
  return [
    conditionsText(results),
    "## What Leasehold loses at",
    "All that others do with less, by more than the noise: Leasehold's figure, and then theirs.",
    losses.length === 0 ? "Nothing in this run." : losses.map((line) => `- ${line}`).join("\n"),
    ...tablesOf(results).flatMap(({ title, text, head, rows }) => [
      `## ${title}`,
      text,
      table([head, ...rows]),
    ]),
    "## Not in the tables",
    contenders
      .filter(({ id }) => id !== again)
      .flatMap(({ name, cannot }) => [...new Set(Object.values(cannot))].map((why) => `- ${name}: ${why}.`))
      .join("\n"),
  ].join("\n\n");
}

function conditionsText(results: PeerResults): string {
  const { commit, date, engine, node, processor, cores, load, isQuick, minutes } = results.conditions;
  const { lowest = Number.NaN, highest = Number.NaN } = results.cycles.find(({ id }) => id === again) ?? {};
  const { time, cpu, p99 } = noiseOf(results);
  const percent = (share: number): string => `${(100 * share).toFixed(1)} %`;
  return [
    "## The run, and its noise",
    ...(isQuick ? ["**A quick run, on a busy machine. Its figures show only that everything runs.**"] : []),
    stamp(commit),
    `${date}, ${engine}, Node ${node}, ${cores} cores (${processor}), a load of ${load.toFixed(2)} at the beginning, ${minutes.toFixed(1)} minutes.`,
    `The bare writes ran twice. Their two runs differ by ${percent(time)} in the median time, ${percent(p99)} in p99 and ` +
      `${percent(cpu)} in CPU; in single rounds the ratio of their medians went from ${lowest.toFixed(2)} to ` +
      `${highest.toFixed(2)}. A smaller difference says nothing.`,
  ].join("\n\n");
}

/** The second run of the floor, which shows the noise of times. */
const again = "floor-again";

/** By how much the floor differs from itself in this run: as a share, of the median time, of p99 and of the CPU. */
function noiseOf({ cycles }: PeerResults): { time: number; cpu: number; p99: number } {
  const second = cycles.find(({ id }) => id === again);
  const off = (ratio = Number.NaN): number => Math.abs(ratio - 1);
  return { time: off(second?.ratio), cpu: off(second?.cpuRatio), p99: off(second?.ratioOfP99) };
}

/** Two runs of the same differ by as much on the best of machines. */
const leastNoise = 0.02;

/** A line for each figure that others do with less, by more than this run's noise. */
function lossesOf(results: PeerResults): string[] {
  const noises = noiseOf(results);
  return columnsOf(results).flatMap(({ columns }) =>
    columns.flatMap(({ values, show, loss }) => {
      const ours = values.get("leasehold");
      if (loss === undefined || ours === undefined) return [];
      const { what, unit = "", noise } = loss;
      const margin = noise === undefined ? 0 : Math.max(noises[noise], leastNoise);
      const better = [...values]
        .filter(([id, value]) => !/^(floor-again|leasehold)/.test(id) && value < ours * (1 - margin))
        .toSorted(([, one], [, other]) => one - other)
        .map(([id, value]) => `; ${nameOf(id)} ${show(value)}${unit}`);
      return better.length === 0 ? [] : [`**${what}**: ${show(ours)}${unit}${better.join("")}.`];
    }),
  );
}

/** One table, as it is shown. */
interface ShownTable extends Pick<Table, "title" | "text"> {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** All tables, in the order of the page: a row for each contender that has something to show. */
export function tablesOf(results: PeerResults): ShownTable[] {
  return columnsOf(results).map(({ title, text, columns }) => {
    const ids = new Set(columns.flatMap(({ values }) => [...values.keys()]));
    const rows = [...ids].map((id) => [
      nameOf(id),
      ...columns.map(({ values, show }) => {
        const value = values.get(id);
        return value === undefined ? "–" : show(value);
      }),
    ]);
    return { title, text, head: ["", ...columns.map(({ head }) => head)], rows };
  });
}

function nameOf(id: string): string {
  return [...takingOver, ...handingOver].find((contender) => contender.id === id)?.name ?? id;
}

interface Table {
  readonly title: string;
  /** What was measured, and how. */
  readonly text: string;
  readonly columns: readonly Column[];
}

interface Column {
  readonly head: string;
  /** By the ids of those who have one. */
  readonly values: ReadonlyMap<string, number>;
  readonly show: (value: number) => string;
  readonly loss: Loss | undefined;
}

/** A figure that is better where it is less. */
interface Loss {
  readonly what: string;
  readonly unit?: string;
  /** Which of the machine's noise is in it. @default - none */
  readonly noise?: "time" | "cpu";
}

function column<One extends { readonly id: string }>(
  head: string,
  measured: readonly One[],
  figure: (one: One) => number | null,
  show: (value: number) => string,
  loss?: Loss,
): Column {
  const values = new Map<string, number>();
  for (const one of measured) {
    const value = figure(one);
    if (value !== null) values.set(one.id, value);
  }
  return { head, values, show, loss };
}

const digits =
  (count: number) =>
  (value: number): string =>
    value.toFixed(count);

function thousands(count: number): string {
  return count.toLocaleString("en-US", { maximumFractionDigits: 0 });
}

function columnsOf(results: PeerResults): Table[] {
  const { conditions, wire, cycles, takeOvers, handOvers, holding, bundles } = results;
  const lease = conditions.takeOverLeaseMs / 1000;
  const waiters = Map.groupBy(handOvers, (times) => times.waiters);
  const held = Map.groupBy(holding, ({ locks }) => locks);
  const most = Math.max(...held.keys());
  const ofMost = (what: string): string => `${what}, ${thousands(most)} locks`;
  return [
    {
      title: "A cycle, against two bare writes",
      text:
        "A free lock is taken and given back. Items are smaller than 1 KB; prices are those of us-east-1, on demand. " +
        `Times are of ${thousands(cycles[0]?.cycles ?? 0)} cycles each. Ratios are to the first line; the lowest and the highest are those of single rounds.`,
      columns: [
        column("requests", wire, ({ requests }) => requests, String, { what: "Requests of a cycle" }),
        column("write units", wire, ({ writeUnits }) => writeUnits, String),
        column("read units", wire, ({ readUnits }) => readUnits, String),
        column(
          "$ a million",
          wire,
          ({ writeUnits, readUnits }) => 1e6 * costOf({ writeUnit: writeUnits, readUnit: readUnits }),
          dollars,
        ),
        column("p50 ms", cycles, ({ p50 }) => p50, digits(2)),
        column("ratio", cycles, ({ ratio }) => ratio, digits(2), {
          what: "Time of a cycle, p50",
          unit: "×",
          noise: "time",
        }),
        column("lowest", cycles, ({ lowest }) => lowest, digits(2)),
        column("highest", cycles, ({ highest }) => highest, digits(2)),
        column("p99 ms", cycles, ({ p99 }) => p99, digits(2)),
        column("ratio of p99", cycles, ({ ratioOfP99 }) => ratioOfP99, digits(2)),
        column("CPU µs", cycles, ({ cpuUs }) => cpuUs, digits(0)),
        column("ratio of CPU", cycles, ({ cpuRatio }) => cpuRatio, digits(2), {
          what: "CPU of a cycle",
          unit: "×",
          noise: "cpu",
        }),
      ],
    },
    {
      title: "Taking over from a dead holder, seconds",
      text: `The holder dies with a lease of ${lease} s. One peer calls at that moment, the other one ${2 * lease} s later.`,
      columns: [
        column("called at the death", takeOvers, ({ fromDeathMs }) => fromDeathMs / 1000, digits(2), {
          what: "Taking over, called at the death",
          unit: " s",
          noise: "time",
        }),
        column(`called ${2 * lease} s later`, takeOvers, ({ laterMs }) => laterMs / 1000, digits(2)),
        column("requests of the later call", takeOvers, ({ laterRequests }) => laterRequests, digits(0), {
          what: "Requests of a takeover, called later",
        }),
      ],
    },
    {
      title: "A hand-over",
      text:
        "The time from a release to the next grant (p50), and the requests, while so many callers wait, with the defaults. " +
        `Holders keep the lock for ${conditions.holdMs} ms. The lease is ${conditions.handOverLeaseMs / 1000} s.`,
      columns: [
        ...[...waiters].map(([count, times]) =>
          column(`${count} waiting: ms`, times, ({ idleMs }) => idleMs, digits(0), {
            what: `Idle time of a hand-over, ${count} waiting`,
            unit: " ms",
            noise: "time",
          }),
        ),
        ...[...waiters].map(([count, times]) =>
          column(`${count}: requests`, times, ({ requests }) => requests, digits(1), {
            what: `Requests of a hand-over, ${count} waiting`,
          }),
        ),
      ],
    },
    {
      title: "Bundle and start of a function that takes a lock",
      text: "Minified by esbuild, gzipped. The start is that of a Node process that sends no request.",
      columns: [
        column("KB gzipped", bundles, ({ gzipBytes }) => gzipBytes / 1000, digits(1), {
          what: "Bundle, gzipped",
          unit: " KB",
        }),
        column("CPU of the import, ms", bundles, ({ importCpuMs }) => importCpuMs, digits(0), {
          what: "CPU of the import",
          unit: " ms",
          noise: "cpu",
        }),
        column("start, ms", bundles, ({ startMs }) => startMs, digits(0)),
      ],
    },
    {
      title: "Locks that are held",
      text:
        "Requests and CPU of a heartbeat period: one process holds so many locks, and renews them each " +
        `${conditions.heartbeatMs / 1000} s, Leasehold with \`renewals: together()\`. Last, what each of ` +
        `${thousands(most)} locks keeps of the heap, after a collection of garbage.`,
      columns: [
        ...[...held].map(([count, costs]) =>
          column(
            `${thousands(count)}: requests`,
            costs,
            ({ requests }) => requests,
            thousands,
            count === most ? { what: ofMost("Requests of a heartbeat period") } : undefined,
          ),
        ),
        ...[...held].map(([count, costs]) =>
          column(
            `${thousands(count)}: CPU ms`,
            costs,
            ({ cpuMs }) => cpuMs,
            thousands,
            count === most
              ? { what: ofMost("CPU of a heartbeat period"), unit: " ms", noise: "cpu" }
              : undefined,
          ),
        ),
        column("bytes a lock", held.get(most) ?? [], ({ bytes }) => bytes, thousands, {
          what: "Memory of a lock that is held",
          unit: " bytes",
        }),
      ],
    },
  ];
}
