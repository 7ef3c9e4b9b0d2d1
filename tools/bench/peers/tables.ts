/** The tables of a run, for the terminal and for the page: the same cells. What is missing has its reason below. */
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
  /** Why contenders are missing, or cells are empty. */
  readonly reasons: readonly string[];
}

const none = "–";

/** The second run of the floor, which shows the noise of times. */
const again = "floor-again";

/** All tables, in the order of the page. */
export function tablesOf(results: PeerResults): ResultTable[] {
  return [cycles(results), takeOvers(results), handOvers(results), bundles(results), holding(results)].map(
    (table) => withNotMeasured(table, results),
  );
}

/** Says why contenders could not run. */
function withNotMeasured(table: ResultTable, { conditions }: PeerResults): ResultTable {
  const missing = Object.entries(conditions.notMeasured);
  const reasons = missing.map(([id, why]) => `${nameOf(id)}: not measured: ${why}.`);
  return { ...table, reasons: [...table.reasons, ...reasons] };
}

/** What a million cycles cost, in US dollars. */
export function dollarsOfAMillion({ writeUnits, readUnits }: WireCost): number {
  return 1e6 * costOf({ writeUnit: writeUnits, readUnit: readUnits });
}

function cycles({ cycles: measured, wire }: PeerResults): ResultTable {
  return {
    title: "A cycle, against two bare writes",
    text:
      "A free lock is taken and given back. Items are smaller than 1 KB; prices are those of us-east-1, on demand. " +
      `Times are of ${thousands(measured[0]?.cycles ?? 0)} cycles each. Ratios are to the first line.`,
    head: [
      ...["", "requests", "write units", "read units", "$ a million"],
      ...["p50 ms", "ratio", "in single rounds", "p99 ms", "ratio of p99", "CPU µs", "ratio of CPU"],
    ],
    rows: measured.map((times) => {
      const cost = wire.find(({ id }) => id === times.id);
      return [
        nameOf(times.id),
        ...(cost === undefined
          ? [none, none, none, none]
          : [
              `${cost.requests}`,
              `${cost.writeUnits}`,
              `${cost.readUnits}`,
              dollars(dollarsOfAMillion(cost)),
            ]),
        times.p50.toFixed(2),
        times.ratio.toFixed(2),
        `${times.lowest.toFixed(2)}–${times.highest.toFixed(2)}`,
        times.p99.toFixed(2),
        times.ratioOfP99.toFixed(2),
        times.cpuUs.toFixed(0),
        times.cpuRatio.toFixed(2),
      ];
    }),
    reasons: [],
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
  };
}

function handOvers({ handOvers: measured, conditions }: PeerResults): ResultTable {
  const counts = [...new Set(measured.map(({ waiters }) => waiters))];
  return {
    title: "A hand-over",
    text:
      "The time from a release to the next grant (p50), and the requests, while so many callers wait, with the defaults. " +
      `Holders keep the lock for ${conditions.holdMs} ms. The lease is ${conditions.handOverLeaseMs / 1000} s.`,
    head: [
      "waiters",
      ...counts.map((count) => `${thousands(count)}: ms`),
      ...counts.map((count) => `${thousands(count)}: requests`),
    ],
    rows: rowsOf(handingOver, ({ id }) => {
      const cells = (show: (times: HandOverTimes) => string): string[] =>
        counts.map((count) => {
          const times = measured.find((one) => one.id === id && one.waiters === count);
          return times === undefined ? none : show(times);
        });
      return [...cells(({ idleMs }) => idleMs.toFixed(0)), ...cells(({ requests }) => requests.toFixed(1))];
    }),
    reasons: reasonsFor("handOver"),
  };
}

function bundles({ bundles: measured }: PeerResults): ResultTable {
  return {
    title: "Bundle and start of a function that takes a lock",
    text: "Minified by esbuild, gzipped. The start is that of a Node process that sends no request.",
    head: ["", "KB gzipped", "CPU of the import, ms", "start, ms"],
    rows: rowsOf(contenders, ({ id }) => {
      const cost = measured.find((one) => one.id === id);
      if (cost === undefined) return [none, none, none];
      return [kilobytes(cost.gzipBytes), cost.importCpuMs.toFixed(0), cost.startMs.toFixed(0)];
    }),
    reasons: reasonsFor("bundle"),
  };
}

function holding({ holding: measured, conditions }: PeerResults): ResultTable {
  const counts = [...new Set(measured.map(({ locks }) => locks))];
  const most = Math.max(...counts);
  return {
    title: "Locks that are held",
    text:
      "Requests and CPU of a heartbeat period: one process holds so many locks, and renews them each " +
      `${conditions.heartbeatMs / 1000} s, Leasehold with \`renewals: together()\`. Last, what each of ` +
      `${thousands(most)} locks keeps of the heap, after a collection of garbage.`,
    head: [
      "locks",
      ...counts.map((count) => `${thousands(count)}: requests`),
      ...counts.map((count) => `${thousands(count)}: CPU ms`),
      "bytes a lock",
    ],
    rows: rowsOf(contenders, ({ id }) => {
      const cells = (show: (cost: HoldingCost) => string): string[] =>
        counts.map((count) => {
          const cost = measured.find((one) => one.id === id && one.locks === count);
          return cost === undefined ? none : show(cost);
        });
      const bytes = measured.find((one) => one.id === id && one.locks === most)?.bytes;
      return [
        ...cells(({ requests }) => thousands(requests)),
        ...cells(({ cpuMs }) => thousands(cpuMs)),
        typeof bytes === "number" ? thousands(bytes) : none,
      ];
    }),
    reasons: [
      ...reasonsFor("hold"),
      ...(most < fewestForMemory ? [`all: fewer than ${thousands(fewestForMemory)} locks do not tell.`] : []),
    ],
  };
}

/** A row for each that has something to show. */
function rowsOf(
  listed: readonly Contender[],
  cells: (contender: Contender) => readonly string[],
): readonly (readonly string[])[] {
  return listed
    .filter(({ id }) => id !== again)
    .map((contender) => [contender.name, ...cells(contender)])
    .filter(([, ...row]) => row.some((cell) => cell !== none));
}

function reasonsFor(ability: Ability): string[] {
  return contenders
    .filter(({ id }) => id !== again)
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
