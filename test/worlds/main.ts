import { parseArgs, styleText } from "node:util";
import { table } from "../../tools/bench/costs/markdown.ts";
import { measuredCommit, writeEvidence } from "../../tools/bench/stamp.ts";
import { wholeIn } from "../support/arguments.ts";
import type { ReleaseBundle } from "../support/last-release.ts";
import { bundleLastRelease } from "../support/last-release.ts";
import type { Played, Seeds } from "./player.ts";
import { simulations, upgrades } from "./primitives/index.ts";
import { besideRelease } from "./release.ts";
import { tellViolation } from "./report.ts";
import { type Simulation, simulate } from "./simulation.ts";
import { bundleThread, share } from "./threads.ts";
import { addTo } from "./world.ts";

/** Numbers of at most nine digits. */
const most = 999_999_999;
/** So many seeds go to a thread at once: enough to keep it busy, few enough to see soon that something is wrong. */
const seedsTogether = 50;
const names = simulations.map(({ name }) => name);
const usage = `npm run evidence -- worlds [--primitive NAME] [--seed N] [--runs N]

  --primitive NAME   what is simulated, or \`all\`; default: lock
                     ${names.join("\n                     ")}
  --seed N           the first seed; alone: replay this one and tell its story; default: from the time of day
  --runs N           how many seeds; default: 1000, or 1 with --seed
  --last-release     some hosts have the last release, and those that start in their place another one
  --write            writes the table of docs/evidence.md; of --primitive all and several seeds alone`;

const { values } = parseArgs({
  options: {
    primitive: { type: "string", default: "lock" },
    seed: { type: "string" },
    runs: { type: "string" },
    "last-release": { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    help: { type: "boolean", short: "h" },
  },
});

async function main(): Promise<number> {
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const allowed = values["last-release"] ? upgrades : simulations;
  const chosen = allowed.filter(({ name }) => values.primitive === "all" || name === values.primitive);
  if (chosen.length === 0)
    throw new Error(
      `--primitive is ${values.primitive}; allowed: all, ${allowed.map(({ name }) => name).join(", ")}`,
    );
  if (values.write && values.primitive !== "all")
    throw new Error("--write is of all situations: add --primitive all");
  const first = wholeIn(values.seed ?? String(Date.now() % 1_000_000), "--seed", 0, most);
  const count = wholeIn(values.runs ?? (values.seed === undefined ? "1000" : "1"), "--runs", 1, most);
  if (values.write && count === 1) throw new Error("--write is of several seeds: add --runs 1000");
  const player = count === 1 ? "" : await bundleThread(new URL("player.ts", import.meta.url));
  const release = values["last-release"] ? await bundleLastRelease() : undefined;
  if (release !== undefined) console.log(`hosts have ${release.version}, or the packages of now`);
  let virtualMs = 0;
  for (const simulation of chosen) {
    if (count === 1) {
      if (!(await replay(simulation, first, release))) return 1;
      continue;
    }
    const played = await playAll(simulation, { first, count, player, release });
    if (played === undefined) return 1;
    virtualMs += played.virtualMs;
  }
  if (values.write) {
    const head = ["situations", "worlds of each", "first seed", "hours of virtual time", "violations"];
    const hours = Math.round(virtualMs / 3_600_000).toLocaleString("en");
    const row = [String(chosen.length), count.toLocaleString("en"), String(first), hours, "0"];
    const figures = table([head, row]);
    const program = release === undefined ? "worlds" : "worlds --last-release";
    await writeEvidence(program, figures, await measuredCommit("test/worlds"));
  }
  console.log(styleText("green", "nothing went wrong", { stream: process.stdout }));
  return 0;
}

/** Tells the story of one seed, and whether nothing went wrong. */
async function replay(
  simulation: Simulation,
  seed: number,
  release: ReleaseBundle | undefined,
): Promise<boolean> {
  const outcome = await simulate(simulation, seed, undefined, release && besideRelease(release));
  console.log(tellViolation(outcome, release && " --last-release"));
  return outcome.violation === undefined;
}

interface Batch {
  readonly first: number;
  readonly count: number;
  readonly player: string;
  readonly release: ReleaseBundle | undefined;
}

/** Tells what happened in many worlds; where something was wrong, the story of the first such seed, and gives nothing. */
async function playAll(
  simulation: Simulation,
  { first, count, player, release }: Batch,
): Promise<Played | undefined> {
  const { isTTY } = process.stdout;
  const since = performance.now();
  const played = { worlds: 0, virtualMs: 0, tally: {}, wrong: undefined as number | undefined };
  const add = (_: Seeds, { worlds, virtualMs, tally, wrong }: Played): void => {
    played.worlds += worlds;
    played.virtualMs += virtualMs;
    addTo(played.tally, tally);
    played.wrong ??= wrong;
    if (isTTY) process.stdout.write(`\r${played.worlds} of ${count} worlds`);
  };
  const seeds = function* (): Generator<Seeds> {
    for (let seed = first; seed < first + count && played.wrong === undefined; seed += seedsTogether)
      yield { first: seed, count: Math.min(seedsTogether, first + count - seed) };
  };
  await share(player, seeds(), add, { name: simulation.name, release });
  if (isTTY) process.stdout.write("\r");
  if (played.wrong === undefined) {
    const seconds = ((performance.now() - since) / 1_000).toFixed(1);
    const hours = (played.virtualMs / 3_600_000).toFixed(1);
    const text = `${simulation.name}: seeds ${first} to ${first + count - 1}`;
    console.log(`${text}: ${hours} hours of virtual time in ${seconds} s`);
    tellTally(played);
    return played;
  }
  const isSound = await replay(simulation, played.wrong, release);
  if (isSound) throw new Error(`seed ${played.wrong} went wrong in a thread, and does not go wrong again`);
  return undefined;
}

function tellTally({ tally }: Played): void {
  const widest = Math.max(...Object.keys(tally).map((what) => what.length));
  for (const [what, times] of Object.entries(tally).sort()) {
    console.log(`  ${what.padEnd(widest)}  ${String(times).padStart(9)}`);
  }
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: Error) => {
    console.error(error.message);
    process.exitCode = 2;
  },
);
