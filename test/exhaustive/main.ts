import { parseArgs, styleText } from "node:util";
import { measuredCommit, writeEvidence } from "../../tools/bench/stamp.ts";
import { bundleThread, share } from "../worlds/threads.ts";
import { type Exploration, retell } from "./explore.ts";
import type { Task } from "./explorer-thread.ts";
import { scenarios } from "./scenarios/index.ts";

const names = scenarios.map(({ name }) => name);
const usage = `npm run evidence -- explore [--scenario NAME] [--mistakes] [--write]

Plays every course of small cases: every order of what is under way, and every fault at every moment.

  --scenario NAME   one of them, or all whose names begin so; default: all
                    ${names.join("\n                    ")}
  --mistakes        plants each mistake, and looks for a course that shows it
  --write           writes the figures of docs/evidence.md; of all cases alone`;

const { values } = parseArgs({
  options: {
    scenario: { type: "string", default: "" },
    mistakes: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    help: { type: "boolean", short: "h" },
  },
});

const widths = [26, 6, 10, 10, 6, 8] as const;

async function main(): Promise<number> {
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const chosen = scenarios.filter(({ name }) => name.startsWith(values.scenario));
  if (chosen.length === 0) throw new Error(`--scenario is ${values.scenario}; allowed: ${names.join(", ")}`);
  if (values.write && chosen.length < scenarios.length)
    throw new Error("--write is of all cases: the page would lose the others; leave --scenario out");
  const tasks: Task[] = chosen.flatMap(({ name: scenario, mistakes }) =>
    values.mistakes ? Object.keys(mistakes).map((mistake) => ({ scenario, mistake })) : [{ scenario }],
  );
  const since = performance.now();
  console.log(row(["scenario", "faults", "states", "courses", "depth", "time"]));
  const all: Done[] = [];
  let left = tasks.length;
  const script = await bundleThread(new URL("explorer-thread.ts", import.meta.url));
  await share<Task, Exploration>(script, tasks, (task, result) => {
    left -= 1;
    if (process.stdout.isTTY) process.stdout.write("\r\u001b[K");
    console.log(tell(task, result));
    if (process.stdout.isTTY && left > 0) process.stdout.write(`${left} to go`);
    all.push({ task, result });
  });
  const wrong = all.filter(({ task, result }) => !isGood(task, result));
  for (const { task, result } of wrong) await tellWrong(task, result);
  const seconds = ((performance.now() - since) / 1_000).toFixed(0);
  const what = values.mistakes ? "mistakes were found" : "cases hold in every course";
  const good = `${tasks.length - wrong.length} of ${tasks.length} ${what}, in ${seconds} s`;
  if (values.write) await writeFigures(all);
  console.log(styleText(wrong.length > 0 ? "red" : "green", good, { stream: process.stdout }));
  return wrong.length > 0 ? 1 : 0;
}

/** A task, and what came of it. */
interface Done {
  readonly task: Task;
  readonly result: Exploration;
}

/** Writes what was seen into its page: the sums and the cases of each group, or how many mistakes were found. */
async function writeFigures(all: readonly Done[]): Promise<void> {
  const program = values.mistakes ? "explore --mistakes" : "explore";
  const figures = values.mistakes ? mistakesFound(all) : coursesPlayed(all);
  await writeEvidence(program, figures, await measuredCommit("test/exhaustive"));
}

function mistakesFound(all: readonly Done[]): string {
  const found = all.filter(({ task, result }) => isGood(task, result));
  return `Planted mistakes that were found: ${found.length} of ${all.length}.`;
}

function coursesPlayed(all: readonly Done[]): string {
  const counted = (of: (result: Exploration) => number): string =>
    all.reduce((total, { result }) => total + of(result), 0).toLocaleString("en");
  const [states, courses] = [counted((one) => one.states), counted((one) => one.courses)];
  const groups = Map.groupBy(names, (name) => name.replace(/:.*/, ""));
  const byGroup = [...groups].map(([name, some]) => `${name} ${some.length}`);
  return `${all.length} cases, ${states} states, ${courses} courses. Cases of ${byGroup.join(", ")}.`;
}

/** What has to be seen, where a mistake is planted. */
function expectedOf({ scenario, mistake = "" }: Task): RegExp | undefined {
  return scenarios.find(({ name }) => name === scenario)?.mistakes[mistake]?.[1];
}

function isGood(task: Task, { violation }: Exploration): boolean {
  const expected = expectedOf(task);
  return expected === undefined ? violation === undefined : expected.test(violation?.text ?? "");
}

function tell(task: Task, result: Exploration): string {
  const { scenario, faults, states, courses, depth, milliseconds, violation } = result;
  const verdict =
    task.mistake === undefined
      ? (violation?.text ?? "complete")
      : `${isGood(task, result) ? "found" : "NOT FOUND"}: ${task.mistake}`;
  const seconds = `${(milliseconds / 1_000).toFixed(1)} s`;
  return `${row([scenario, faults, states, courses, depth, seconds])}  ${verdict}`;
}

function row(cells: readonly (string | number)[]): string {
  return cells
    .map((cell, index) => {
      const text = typeof cell === "number" ? cell.toLocaleString("en") : cell;
      return index === 0 ? text.padEnd(widths[0]) : text.padStart(widths[index] ?? 0);
    })
    .join(" ");
}

/** The story of a course that must not be; of a mistake that was not found, what came instead. */
async function tellWrong(task: Task, { faults, violation }: Exploration): Promise<void> {
  const expected = expectedOf(task);
  if (expected !== undefined) {
    const instead = violation?.text ?? "nothing went wrong";
    console.log(`\n${task.scenario}, with ${task.mistake}: ${instead}; expected: ${expected}`);
    return;
  }
  const scenario = scenarios.find(({ name }) => name === task.scenario);
  if (scenario === undefined || violation === undefined) return;
  console.log(`\n${task.scenario}:`);
  for (const { at, who, text } of await retell(scenario, violation.path, { faults })) {
    console.log(`${String(Math.round(at)).padStart(8)} ms  ${who}  ${text}`);
  }
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}
