/**
 * Measures what a lock costs by Leasehold and by others, side by side in one run, and prints the tables.
 *
 *     npm run bench -- [--quick] [--write] [--engine=dynoxide]
 *     npm run bench -- --page
 *
 * `--quick` measures for a minute, which shows that everything runs. `--write` keeps the results, and writes the page from
 * them; `--page` only writes the page, from the results that were kept.
 */
import { availableParallelism, cpus, loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { type Engine, type LocalEngineName, startEngine } from "@leasehold/engine";
import { heading, note, table } from "../report.ts";
import { measuredCommit } from "../stamp.ts";
import { measureBundles } from "./bundles.ts";
import { type Contender, createTables } from "./contender.ts";
import { contenders, handingOver, takingOver } from "./contenders/index.ts";
import { javaClient, missingForJava } from "./contenders/java-client.ts";
import { countWire, measureCycles } from "./cycle.ts";
import {
  handOverLeaseMs,
  holdMs,
  measureHandOvers,
  measureTakeOvers,
  takeOverLeaseMs,
} from "./hand-overs.ts";
import { measureHolding } from "./holding.ts";
import { tablesOf, writePage } from "./page.ts";
import { keepResults, type PeerResults } from "./results.ts";

/** How much is measured. The whole takes about seven minutes on two idle cores, a quick run about one. */
const plans = {
  whole: {
    turns: { warmUpCycles: 300, rounds: 24, cyclesPerRound: 80 },
    deaths: 5,
    handOvers: { waiters: [1, 5, 20, 50], measureMs: 25_000 },
    holding: { locks: [1, 100, 1_000, 10_000], heartbeatMs: 60_000 },
    starts: 24,
  },
  quick: {
    turns: { warmUpCycles: 50, rounds: 8, cyclesPerRound: 25 },
    deaths: 2,
    handOvers: { waiters: [1, 5], measureMs: 8_000 },
    holding: { locks: [1, 100], heartbeatMs: 6_000 },
    starts: 5,
  },
} as const;

const { values } = parseArgs({
  options: {
    engine: { type: "string" },
    quick: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    page: { type: "boolean", default: false },
  },
});
if (values.page) await writePage();
else {
  const chosen = values.engine as LocalEngineName | undefined;
  await using engine = await startEngine(chosen === undefined ? {} : { engine: chosen });
  await compare(engine, values);
}

async function compare(
  engine: Engine,
  { quick, write }: { readonly quick: boolean; readonly write: boolean },
): Promise<void> {
  const startedAt = performance.now();
  const plan = quick ? plans.quick : plans.whole;
  const load = loadavg()[0] ?? Number.NaN;
  const progress = (what: string): void =>
    note(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(4)} s  ${what}`);
  note(`${engine.version}, Node ${process.version}, load ${load.toFixed(2)}`);

  const missing = await missingForJava();
  if (missing !== undefined) note(`${javaClient.name}: left out, since it ${missing}`);
  const running = (listed: readonly Contender[]): readonly Contender[] =>
    listed.filter((contender) => contender !== javaClient || missing === undefined);
  const site = await createTables(engine);
  progress("requests and capacity");
  const wire = await countWire(running(contenders), site);
  progress("bundles and starts");
  const bundles = await measureBundles(plan.starts);
  progress("cycles");
  const cycles = await measureCycles(running(contenders), site, plan.turns);
  progress("takeovers");
  const takeOvers = await measureTakeOvers(running(takingOver), site, plan.deaths);
  progress("hand-overs");
  const handOvers = await measureHandOvers(running(handingOver), site, plan.handOvers);
  await sleep(1_000);
  progress("many locks in one process");
  const holding = await measureHolding(running(contenders), site, plan.holding);
  progress("done");

  const results: PeerResults = {
    conditions: {
      commit: await measuredCommit("tools/bench"),
      date: new Date().toISOString().slice(0, 10),
      engine: engine.version,
      node: process.version,
      processor: cpus()[0]?.model ?? "unknown",
      cores: availableParallelism(),
      load,
      isQuick: quick,
      minutes: (performance.now() - startedAt) / 60_000,
      takeOverLeaseMs,
      handOverLeaseMs,
      holdMs,
      heartbeatMs: plan.holding.heartbeatMs,
    },
    wire,
    cycles,
    takeOvers,
    handOvers,
    holding,
    bundles,
  };
  for (const { title, head, rows } of tablesOf(results)) {
    heading(title);
    table(head, rows);
  }
  if (!write) return;
  await keepResults(results);
  await writePage();
}
