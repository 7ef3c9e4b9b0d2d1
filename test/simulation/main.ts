import { parseArgs, styleText } from "node:util";
import { simulations } from "./primitives/index.ts";
import { tellViolation } from "./report.ts";
import { type Simulation, simulate } from "./simulation.ts";
import type { Tally } from "./world.ts";

const names = simulations.map(({ name }) => name);
const usage = `npm run simulate -- [--primitive NAME] [--seed N] [--runs N]

  --primitive NAME   what is simulated, or \`all\`; default: lock
                     ${names.join("\n                     ")}
  --seed N           the first seed; alone: replay this one and tell its story; default: from the time of day
  --runs N           how many seeds, one after the other; default: 1000, or 1 with --seed`;

const { values } = parseArgs({
  options: {
    primitive: { type: "string", default: "lock" },
    seed: { type: "string" },
    runs: { type: "string" },
    help: { type: "boolean", short: "h" },
  },
});

async function main(): Promise<number> {
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const chosen = simulations.filter(({ name }) => values.primitive === "all" || name === values.primitive);
  if (chosen.length === 0)
    throw new Error(`--primitive is ${values.primitive}; allowed: all, ${names.join(", ")}`);
  const first = whole(values.seed ?? String(Date.now() % 1_000_000), "--seed");
  const runs = whole(values.runs ?? (values.seed === undefined ? "1000" : "1"), "--runs");
  for (const simulation of chosen) if (!(await run(simulation, first, runs))) return 1;
  console.log(styleText("green", "nothing went wrong", { stream: process.stdout }));
  return 0;
}

/** Tells whether nothing went wrong. */
async function run(simulation: Simulation, first: number, runs: number): Promise<boolean> {
  const tally: Tally = {};
  const since = performance.now();
  let virtualMs = 0;
  for (let seed = first; seed < first + runs; seed += 1) {
    const outcome = await simulate(simulation, seed);
    if (outcome.violation !== undefined || runs === 1) console.log(tellViolation(outcome));
    if (outcome.violation !== undefined) return false;
    virtualMs += outcome.virtualMs;
    for (const [what, times] of Object.entries(outcome.tally)) tally[what] = (tally[what] ?? 0) + times;
    const done = seed - first + 1;
    if (process.stdout.isTTY) process.stdout.write(`\r${done} of ${runs} seeds`);
  }
  if (process.stdout.isTTY) process.stdout.write("\r");
  const perSecond = (runs / (performance.now() - since)) * 1_000;
  const hours = (virtualMs / 3_600_000).toFixed(1);
  console.log(
    `${simulation.name}: ${runs} seeds from ${first}: ${hours} hours of virtual time, ${perSecond.toFixed(0)} worlds a second`,
  );
  const widest = Math.max(...Object.keys(tally).map((what) => what.length));
  for (const [what, times] of Object.entries(tally).sort()) {
    console.log(`  ${what.padEnd(widest)}  ${String(times).padStart(9)}`);
  }
  return true;
}

function whole(text: string, option: string): number {
  if (!/^\d{1,9}$/.test(text))
    throw new Error(`${option} is ${text}; allowed: a whole number of at most 9 digits`);
  return Number(text);
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
