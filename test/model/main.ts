import { parseArgs, styleText } from "node:util";
import { table } from "../../tools/bench/costs/markdown.ts";
import { measuredCommit, writeEvidence } from "../../tools/bench/stamp.ts";
import { cases, conditions, type Mistake, mistakes, spare } from "./cases.ts";
import { walk } from "./walk.ts";

const usage = `npm run evidence -- model [--mistakes | --write]

  Walks through every state of the model's cases, and does every write with the real expressions too.
  --mistakes   plants each mistake in turn, and drops each condition; one of the cases must show it
  --write      writes the table of docs/evidence.md`;

const { values } = parseArgs({
  options: {
    mistakes: { type: "boolean" },
    write: { type: "boolean" },
    help: { type: "boolean", short: "h" },
  },
});

/** Tells whether nothing is wrong in any case. */
async function walkAll(): Promise<boolean> {
  const total = { cases: 0, states: 0, steps: 0, "greatest depth": 0, "writes compared": 0 };
  for (const [name, setting] of Object.entries(cases)) {
    const since = performance.now();
    const { states, steps, depth, writes, wrong } = walk(setting);
    const seconds = ((performance.now() - since) / 1_000).toFixed(1);
    const counts = [states, steps, writes].map((count) => count.toLocaleString("en"));
    console.log(`${name}: ${counts[0]} states, ${counts[1]} steps, depth ${depth}, ${seconds} s`);
    console.log(`  ${counts[2]} different writes did the same with the real expressions`);
    total.cases += 1;
    total.states += states;
    total.steps += steps;
    total["greatest depth"] = Math.max(total["greatest depth"], depth);
    total["writes compared"] += writes;
    if (wrong === undefined) continue;
    console.log(styleText("red", [...wrong.way, wrong.what].join("\n"), { stream: process.stdout }));
    return false;
  }
  if (values.write) {
    const figures = table([
      Object.keys(total),
      Object.values(total).map((each) => each.toLocaleString("en")),
    ]);
    await writeEvidence("model", figures, await measuredCommit("test/model"));
  }
  return true;
}

/** Tells whether each mistake is shown by a case, and that what follows from other conditions is not missed. */
function plantAll(): boolean {
  const missed = [...conditions, ...mistakes].filter((mistake) => !isShown(mistake, "red"));
  const needed = spare.filter((condition) => isShown(condition, "dim"));
  return missed.length + needed.length === 0;
}

function isShown(mistake: Mistake, otherwise: "red" | "dim"): boolean {
  for (const [name, setting] of Object.entries(cases)) {
    const { states, wrong } = walk(setting, mistake);
    if (wrong === undefined) continue;
    const after = `${wrong.way.length} steps, ${states.toLocaleString("en")} states`;
    console.log(`without "${mistake.what}": ${wrong.what} (${name}, ${after})`);
    return true;
  }
  const text = `without "${mistake.what}": nothing goes wrong`;
  console.log(styleText(otherwise, text, { stream: process.stdout }));
  return false;
}

if (values.help) console.log(usage);
else process.exitCode = (values.mistakes ? plantAll() : await walkAll()) ? 0 : 1;
