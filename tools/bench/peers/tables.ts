/** The tables of a run, for the terminal and for the page: the same cells. A cell that stays empty has its reason below. */
import { dollars } from "../costs/markdown.ts";
import { costOf } from "../costs/prices.ts";
import type { Ability, Contender } from "./contender.ts";
import { contenders, handingOver, takingOver } from "./contenders/index.ts";
import {
  fewestForMemory,
  type HandOverTimes,
  type HoldingCost,
  type PeerResults,
  type WireCost,
} from "./results.ts";

/** One table. */
export interface ResultTable {
  readonly title: string;
  /** What was measured, and how. */
  readonly text: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Why cells are empty. */
  readonly reasons: readonly string[];
  /** The name of the chart that shows the same. */
  readonly chart?: string;
}

const none = "–";

/** All tables, in the order of the page. */
export function tablesOf(results: PeerResults): ResultTable[] {
  return [
    costs(results),
    cycles(results),
    takeOvers(results),
    { ...handOvers(results, ({ idleMs }) => idleMs.toFixed(0)), ...handOverTitles.idle },
    { ...handOvers(results, ({ requests }) => requests.toFixed(1)), ...handOverTitles.requests },
    bundles(results),
    { ...holding(results, ({ requests }) => thousands(requests)), ...heartbeatTitles.requests },
    { ...holding(results, ({ cpuMs }) => thousands(cpuMs)), ...heartbeatTitles.cpu },
    memory(results),
  ].map((table) => withNotMeasured(table, results));
}

/** Has a row for each contender that could not run, and says why. */
function withNotMeasured(table: ResultTable, { conditions }: PeerResults): ResultTable {
  const missing = Object.entries(conditions.notMeasured).map(([id, why]) => ({ name: nameOf(id), why }));
  const absent = missing.filter(({ name }) => !table.rows.some(([first]) => first === name));
  return {
    ...table,
    rows: [...table.rows, ...absent.map(({ name }) => [name, ...table.head.slice(1).map(() => none)])],
    reasons: [...table.reasons, ...missing.map(({ name, why }) => `${name}: not measured: ${why}.`)],
  };
}

const handOverTitles = {
  idle: { title: "Idle time of a hand-over, ms", chart: "hand-over-idle" },
  requests: {
    title: "Requests of a hand-over",
    chart: "hand-over-requests",
    text: "The hand-overs are those of the table above.",
  },
};
const heartbeatTitles = {
  requests: { title: "Requests of a heartbeat period", chart: "heartbeats" },
  cpu: { title: "CPU of a heartbeat period, ms", text: "The locks are those of the table above." },
};

/** What a million cycles cost, in US dollars. */
export function dollarsOfAMillion({ writeUnits, readUnits }: WireCost): number {
  return 1e6 * costOf({ writeUnit: writeUnits, readUnit: readUnits });
}

function costs({ wire }: PeerResults): ResultTable {
  return {
    title: "Requests and dollars of a cycle",
    text: "A free lock is taken and given back. Items are smaller than 1 KB. Prices of us-east-1, on demand.",
    head: ["", "requests", "of which", "write units", "read units", "$ for a million cycles"],
    rows: wire.map((cost) => [
      nameOf(cost.id),
      String(cost.requests),
      cost.sent,
      String(cost.writeUnits),
      String(cost.readUnits),
      dollars(dollarsOfAMillion(cost)),
    ]),
    reasons: [],
  };
}

function cycles({ cycles: measured }: PeerResults): ResultTable {
  return {
    title: "Time and CPU of a cycle, against two bare writes",
    text: `The same cycle, ${thousands(measured[0]?.cycles ?? 0)} times each. Ratios are to the first line.`,
    head: ["", "p50 ms", "ratio", "in single rounds", "p99 ms", "ratio of p99", "CPU µs", "ratio of CPU"],
    rows: measured.map((times) => [
      nameOf(times.id),
      times.p50.toFixed(2),
      times.ratio.toFixed(2),
      `${times.lowest.toFixed(2)} to ${times.highest.toFixed(2)}`,
      times.p99.toFixed(2),
      times.ratioOfP99.toFixed(2),
      times.cpuUs.toFixed(0),
      times.cpuRatio.toFixed(2),
    ]),
    reasons: [],
    chart: "cycle",
  };
}

function takeOvers({ takeOvers: measured, conditions }: PeerResults): ResultTable {
  const lease = conditions.takeOverLeaseMs / 1000;
  return {
    title: "Taking over from a dead holder, seconds",
    text: `The holder dies with a lease of ${lease} s. One peer calls at that moment, the other one ${2 * lease} s later.`,
    head: ["", "called at the death", `called ${2 * lease} s later`, "requests of the later call"],
    rows: rowsOf(takingOver, (contender) => {
      const times = measured.find(({ id }) => id === contender.id);
      if (times === undefined) return [none, none, none];
      const { fromDeathMs, laterMs, laterRequests } = times;
      return [
        fromDeathMs === undefined ? none : (fromDeathMs / 1000).toFixed(2),
        (laterMs / 1000).toFixed(2),
        laterRequests.toFixed(0),
      ];
    }),
    reasons: [
      ...reasonsFor("takeOver"),
      ...contenders
        .filter(({ id, cannot }) => cannot.handOver && measured.some((times) => times.id === id))
        .filter(({ id }) => measured.find((times) => times.id === id)?.fromDeathMs === undefined)
        .map(({ name, cannot }) => `${name}: ${cannot.handOver}.`),
    ],
    chart: "take-over",
  };
}

function handOvers(
  { handOvers: measured, conditions }: PeerResults,
  cell: (times: HandOverTimes) => string,
): Omit<ResultTable, "title"> {
  const counts = [...new Set(measured.map(({ waiters }) => waiters))];
  return {
    text:
      `From a release to the next grant (p50), while so many callers wait, with the defaults. Holders keep the lock for ${conditions.holdMs} ms. ` +
      `The lease is ${conditions.handOverLeaseMs / 1000} s.`,
    head: ["waiters", ...counts.map(thousands)],
    rows: rowsOf(handingOver, ({ id }) =>
      counts.map((count) => {
        const times = measured.find((one) => one.id === id && one.waiters === count);
        return times === undefined ? none : cell(times);
      }),
    ),
    reasons: reasonsFor("handOver"),
  };
}

function bundles({ bundles: measured }: PeerResults): ResultTable {
  const floor = measured[0]?.gzipBytes ?? 0;
  return {
    title: "Bundle and start of a function that takes a lock",
    text: "Minified by esbuild, gzipped. The start is that of a Node process that sends no request.",
    head: ["", "KB gzipped", "more than the floor", "CPU of the import, ms", "start, ms"],
    rows: rowsOf(contenders, ({ id }) => {
      const cost = measured.find((one) => one.id === id);
      if (cost === undefined) return [none, none, none, none];
      return [
        kilobytes(cost.gzipBytes),
        kilobytes(cost.gzipBytes - floor),
        cost.importCpuMs.toFixed(0),
        cost.startMs.toFixed(0),
      ];
    }),
    reasons: reasonsFor("bundle"),
    chart: "bundle",
  };
}

function holding(
  { holding: measured, conditions }: PeerResults,
  cell: (cost: HoldingCost) => string,
): Omit<ResultTable, "title"> {
  const counts = [...new Set(measured.map(({ locks }) => locks))];
  return {
    text: `So many locks are held in one process, and renewed each ${conditions.heartbeatMs / 1000} s, by Leasehold with \`renewals: together()\`.`,
    head: ["locks", ...counts.map(thousands)],
    rows: rowsOf(contenders, ({ id }) =>
      counts.map((count) => {
        const cost = measured.find((one) => one.id === id && one.locks === count);
        return cost === undefined ? none : cell(cost);
      }),
    ),
    reasons: reasonsFor("hold"),
  };
}

function memory({ holding: measured }: PeerResults): ResultTable {
  const most = Math.max(...measured.map(({ locks }) => locks));
  return {
    title: "Memory of a lock that is held",
    text: `What each of ${thousands(most)} locks keeps of the heap, after a collection of garbage.`,
    head: ["", "bytes"],
    rows: rowsOf(contenders, ({ id }) => {
      const cost = measured.find((one) => one.id === id && one.locks === most);
      return [typeof cost?.bytes === "number" ? thousands(cost.bytes) : none];
    }),
    reasons: [
      ...reasonsFor("hold"),
      ...(most < fewestForMemory ? [`all: fewer than ${thousands(fewestForMemory)} locks do not tell.`] : []),
    ],
  };
}

/** A row for each, without those that have nothing to show: the noise. */
function rowsOf(
  listed: readonly Contender[],
  cells: (contender: Contender) => readonly string[],
): readonly (readonly string[])[] {
  return listed
    .filter(({ id }) => id !== "floor-again")
    .map((contender) => [contender.name, ...cells(contender)]);
}

function reasonsFor(ability: Ability): string[] {
  return contenders
    .filter(({ id }) => id !== "floor-again")
    .flatMap(({ name, cannot }) => (cannot[ability] === undefined ? [] : [`${name}: ${cannot[ability]}.`]));
}

/** The name of a contender, or of a setting of one. */
export function nameOf(id: string): string {
  return [...takingOver, ...handingOver].find((contender) => contender.id === id)?.name ?? id;
}

function kilobytes(bytes: number): string {
  return (bytes / 1000).toFixed(1);
}

function thousands(count: number): string {
  return count.toLocaleString("en-US", { maximumFractionDigits: 0 });
}
