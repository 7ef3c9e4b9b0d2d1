/** Where another contender is better than Leasehold, by what was measured: the page names it. */
import type { PeerResults } from "./results.ts";
import { nameOf } from "./tables.ts";

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
