import { parseArgs, styleText } from "node:util";
import type { Tally } from "./monitor.ts";
import { tellViolation } from "./report.ts";
import { simulate } from "./simulate.ts";

const usage = `npm run simulate -- [--seed N] [--runs N]

  --seed N   the first seed; alone: replay this one and tell its story   default: from the time of day
  --runs N   how many seeds, one after the other                         default: 1000, or 1 with --seed`;

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: { seed: { type: "string" }, runs: { type: "string" }, help: { type: "boolean", short: "h" } },
  });
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const first = whole(values.seed ?? String(Date.now() % 1_000_000), "--seed");
  const runs = whole(values.runs ?? (values.seed === undefined ? "1000" : "1"), "--runs");
  const tally: Tally = {};
  let virtualMs = 0;
  for (let seed = first; seed < first + runs; seed += 1) {
    const outcome = await simulate(seed);
    if (outcome.violation !== undefined || runs === 1) console.log(tellViolation(outcome));
    if (outcome.violation !== undefined) return 1;
    virtualMs += outcome.virtualMs;
    for (const [what, times] of Object.entries(outcome.tally)) tally[what] = (tally[what] ?? 0) + times;
    const done = seed - first + 1;
    if (process.stdout.isTTY) process.stdout.write(`\r${done} of ${runs} seeds`);
  }
  if (process.stdout.isTTY) process.stdout.write("\r");
  console.log(`${runs} seeds from ${first}: ${(virtualMs / 3_600_000).toFixed(1)} hours of virtual time`);
  const widest = Math.max(...Object.keys(tally).map((what) => what.length));
  for (const [what, times] of Object.entries(tally).sort()) {
    console.log(`  ${what.padEnd(widest)}  ${String(times).padStart(9)}`);
  }
  console.log(styleText("green", "nothing went wrong", { stream: process.stdout }));
  return 0;
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
