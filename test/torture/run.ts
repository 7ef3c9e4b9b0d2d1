import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Target } from "../support/proxy.ts";
import { makeTable } from "../support/table.ts";
import { check } from "./checker/index.ts";
import type { Violation } from "./checker/violation.ts";
import type { Tally } from "./faults.ts";
import { type History, historyOf, microseconds, type Primitive } from "./history.ts";
import { type Bend, straight } from "./plants.ts";
import { Supervisor, type SupervisorTerms } from "./supervisor.ts";
import { Journal } from "./worker/journal.ts";

/** What is to be tortured, how, and for how long. */
export interface TortureOptions {
  readonly engine: Target;
  /** The program of a process, installed beside the packages; several where processes have several releases. */
  readonly workers: readonly [string, ...string[]];
  /** Where the journals are kept. */
  readonly folder: string;
  readonly seed: number;
  readonly durationMs: number;
  readonly processes: number;
  readonly primitives: readonly Primitive[];
  /** The planted mistake. @default - none */
  readonly bend?: Bend;
  /** Hears what the run is at, now and then. @default - nobody */
  readonly onProgress?: (what: string) => void;
}

/** What a run has shown. */
export interface TortureResult {
  readonly history: History;
  readonly violations: readonly Violation[];
  /** Requests, faults by kind, kills and freezes. */
  readonly tally: Tally;
}

/**
 * The last part of a run is without faults, so that it shows whether all goes on: in a long run for so long that the last
 * copies have arrived, and what they have taken is over.
 */
const calmMs = (durationMs: number): number => Math.max(5_000, Math.min(15_000, durationMs / 5));
/** All processes together begin so many turns a second: more would measure the machine. */
const turnsPerSecond = 40;

/** Tortures the packages for a while, and judges the history. 10 s at least. */
export async function torture(options: TortureOptions): Promise<TortureResult> {
  const { engine, workers, folder, seed, durationMs, processes, primitives, bend = straight } = options;
  const { onProgress = () => undefined } = options;
  await mkdir(folder, { recursive: true });
  const leases = await makeTable(engine);
  const items = await makeTable(engine);
  const journal = new Journal(join(folder, "supervisor.jsonl"));
  const tally: Tally = new Map();
  const startedAt = microseconds();
  const terms: SupervisorTerms = {
    ...{ engine, workers, folder, journal, tally, bend },
    common: {
      tableName: leases.tableName,
      itemsTable: items.tableName,
      startedAt,
      firstSlot: Math.floor(Date.now() / 1_000) * 1_000 - 86_400_000,
      primitives,
      paceMs: (processes * 1_000) / turnsPerSecond,
    },
  };
  const places: Supervisor[] = [];
  const endAll = (): void => {
    for (const each of places) each.end();
  };
  process.once("exit", endAll);
  try {
    // The first one is the auditor's.
    for (let place = 0; place <= processes; place += 1)
      places.push(await Supervisor.create(terms, place, seed * 1_000 + place * 10));
    const [auditor, ...workers] = places as [Supervisor, ...Supervisor[]];
    const torments = workers.map((each) => each.torment());
    const endsAt = performance.now() + durationMs - calmMs(durationMs);
    for (let left = durationMs; left > 0; left = endsAt - performance.now()) {
      onProgress(`${Math.ceil(left / 1_000)} s of faults left, ${tally.get("requests") ?? 0} requests`);
      await sleep(Math.min(1_000, Math.max(0, endsAt - performance.now())));
    }
    onProgress("calm");
    for (const each of workers) each.calm();
    await Promise.all(torments);
    journal.event("calm");
    await sleep(calmMs(durationMs));
    onProgress("finishing");
    journal.event("finish");
    await Promise.all(workers.map((each) => each.finish()));
    onProgress("auditing");
    await auditor.audit();
  } finally {
    process.off("exit", endAll);
    await Promise.all(places.map((each) => each.close()));
    leases.close();
    items.close();
    journal.close();
  }
  onProgress("judging");
  const history = await readHistory(folder);
  return { history, violations: check(history), tally };
}

/** Reads the journals of a run. */
async function readHistory(folder: string): Promise<History> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".jsonl"));
  const journals = await Promise.all(
    names.map(
      async (name) => [name.replace(".jsonl", ""), await readFile(join(folder, name), "utf8")] as const,
    ),
  );
  return historyOf(new Map(journals));
}
