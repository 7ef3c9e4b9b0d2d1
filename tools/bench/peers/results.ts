/** What one run measured, as it is kept: every table and sentence with a figure comes from it. */
import { readFile, writeFile } from "node:fs/promises";
import type { CycleTimes } from "../turns.ts";

/** What a cycle sends, counted between client and engine. */
export interface WireCost {
  readonly id: string;
  readonly requests: number;
  readonly writeUnits: number;
  readonly readUnits: number;
}

/** How a dead holder's lock is taken over. */
export interface TakeOverTimes {
  readonly id: string;
  /** From the death to the takeover by a peer that comes at the moment of the death. */
  readonly fromDeathMs: number;
  /** From the call to the takeover by a peer that comes a whole lease after the dead holder's lease has ended. */
  readonly laterMs: number;
  /** What such a takeover sends. */
  readonly laterRequests: number;
}

/** How a lock comes from one holder to the next. */
export interface HandOverTimes {
  readonly id: string;
  readonly waiters: number;
  /** All requests of all holders and waiters, for each hand-over. */
  readonly requests: number;
  /** From a release to the next grant: the median. */
  readonly idleMs: number;
}

/** With fewer locks a heap changes more by other things than by them. */
export const fewestForMemory = 1_000;

/** Holding so many locks in one process, for one heartbeat period. */
export interface HoldingCost {
  readonly id: string;
  readonly locks: number;
  readonly requests: number;
  readonly cpuMs: number;
  /** What one lock keeps of the heap; null where there are fewer than `fewestForMemory`. */
  readonly bytes: number | null;
}

/** What a function that takes a lock brings, and what its start takes. */
export interface BundleCost {
  readonly id: string;
  readonly gzipBytes: number;
  readonly importCpuMs: number;
  readonly startMs: number;
}

/** The machine and the moment. */
interface RunConditions {
  /** Whose code was measured. */
  readonly commit: string;
  /** Such as `2026-11-22`. */
  readonly date: string;
  readonly engine: string;
  readonly node: string;
  readonly processor: string;
  readonly cores: number;
  /** The machine's load of a minute as the run began, this process's own included. */
  readonly load: number;
  /** A quick run shows that everything runs; its figures are not for publishing. */
  readonly isQuick: boolean;
  readonly minutes: number;
  readonly takeOverLeaseMs: number;
  readonly handOverLeaseMs: number;
  readonly holdMs: number;
  readonly heartbeatMs: number;
}

/** One run. */
export interface PeerResults {
  readonly conditions: RunConditions;
  readonly wire: readonly WireCost[];
  readonly cycles: readonly (CycleTimes & { readonly id: string })[];
  readonly takeOvers: readonly TakeOverTimes[];
  readonly handOvers: readonly HandOverTimes[];
  readonly holding: readonly HoldingCost[];
  readonly bundles: readonly BundleCost[];
}

const file = new URL("./results.json", import.meta.url);

/** The results that were kept. */
export async function readResults(): Promise<PeerResults> {
  return JSON.parse(await readFile(file, "utf8")) as PeerResults;
}

/** Keeps results, with as many digits as tell something. */
export async function keepResults(results: PeerResults): Promise<void> {
  const rounded = (_: string, value: unknown): unknown =>
    typeof value === "number" && !Number.isInteger(value) ? Number(value.toPrecision(5)) : value;
  await writeFile(file, `${JSON.stringify(results, rounded, 2)}\n`);
}
