import { parseArgs, styleText } from "node:util";
import { type Exploration, explore, retell } from "./explore.ts";
import { find } from "./find.ts";
import type { AnyScenario } from "./scenario.ts";
import { scenarios } from "./scenarios/index.ts";

const names = scenarios.map(({ name }) => name);
const usage = `npm run explore -- [--scenario NAME] [--faults N] [--mistakes] [--seconds N]

Plays every course of small cases: every order of what is under way, and every fault at every moment.

  --scenario NAME   one of them, or all whose names begin so; default: all
                    ${names.join("\n                    ")}
  --faults N        how many faults befall it at most; default: the scenario's own
  --mistakes        plants each mistake, and looks for a course that shows it
  --seconds N       how long each may take; default: until every course was played`;

const { values } = parseArgs({
  options: {
    scenario: { type: "string", default: "" },
    faults: { type: "string" },
    seconds: { type: "string" },
    mistakes: { type: "boolean", default: false },
    help: { type: "boolean", short: "h" },
  },
});

const widths = [30, 7, 11, 11, 7, 9] as const;

function row(cells: readonly (string | number)[]): string {
  return cells
    .map((cell, index) => {
      const width = widths[index] ?? 0;
      const text = typeof cell === "number" ? cell.toLocaleString("en") : cell;
      return index === 0 ? text.padEnd(width) : text.padStart(width);
    })
    .join(" ");
}

function told({ faults, states, courses, depth, milliseconds, isComplete, violation }: Exploration): string {
  const seconds = `${(milliseconds / 1000).toFixed(1)} s`;
  const verdict = violation === undefined ? (isComplete ? "complete" : "NOT complete") : "violation";
  return row(["", faults, states, courses, depth, seconds, ` ${verdict}`]).slice(widths[0]);
}

async function main(): Promise<number> {
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const chosen = scenarios.filter(({ name }) => name.startsWith(values.scenario));
  if (chosen.length === 0) throw new Error(`--scenario is ${values.scenario}; allowed: ${names.join(", ")}`);
  const milliseconds = 1_000 * whole(values.seconds ?? "1000000", "--seconds");
  const faults = values.faults === undefined ? {} : { faults: whole(values.faults, "--faults") };
  console.log(row(["scenario", "faults", "states", "courses", "depth", "time"]));
  let isGood = true;
  for (const scenario of chosen) {
    const bounds = { ...faults, milliseconds, onProgress: progressOf(scenario) };
    if (values.mistakes) isGood = (await findAll(scenario, bounds)) && isGood;
    else isGood = (await exploreAll(scenario, bounds)) && isGood;
  }
  return isGood ? 0 : 1;
}

async function exploreAll(scenario: AnyScenario, bounds: object): Promise<boolean> {
  const result = await explore(scenario, bounds);
  console.log(`${scenario.name.padEnd(widths[0])}${told(result)}`);
  if (result.violation === undefined) return true;
  const story = await retell(scenario, result.violation.path, bounds);
  for (const { at, who, text } of story)
    console.log(`${String(Math.round(at)).padStart(8)} ms  ${who}  ${text}`);
  console.log(styleText("red", result.violation.text, { stream: process.stdout }));
  return false;
}

async function findAll(scenario: AnyScenario, bounds: object): Promise<boolean> {
  let isGood = true;
  for (const mistake of scenario.mistakes) {
    const result = await find(scenario, mistake, bounds);
    const text = result.violation?.text ?? "";
    const isFound = mistake.violation.test(text);
    isGood = isGood && isFound;
    console.log(`${scenario.name.padEnd(widths[0])}${told(result)}: ${mistake.what}`);
    if (!isFound) console.log(styleText("red", `  it was not found: ${text}`, { stream: process.stdout }));
  }
  return isGood;
}

function progressOf({ name }: AnyScenario): (states: number, courses: number) => void {
  if (!process.stdout.isTTY) return () => undefined;
  return (states, courses) => {
    if (courses % 500 === 0) process.stdout.write(`\r${name}: ${states} states, ${courses} courses\r`);
  };
}

function whole(text: string, option: string): number {
  const value = Number(text);
  if (text !== "" && Number.isInteger(value) && value >= 0) return value;
  throw new Error(`${option} is ${text}; allowed: a whole number from 0`);
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}
