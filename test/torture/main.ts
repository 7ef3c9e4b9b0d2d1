/** `npm run evidence -- torture`: tortures the packed packages for a while, and tells what happened. */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs, styleText } from "node:util";
import { startEngine } from "@leasehold/engine";
import { measuredCommit, writeEvidence } from "../../tools/bench/stamp.ts";
import { numberIn, wholeIn } from "../support/arguments.ts";
import { bundleWithLastRelease } from "../support/last-release.ts";
import { primitives } from "./history.ts";
import { installTortured, worker as source } from "./install.ts";
import { plants } from "./plants.ts";
import { hasGo, judgeByPorcupine } from "./porcupine.ts";
import { outcomesIn, summaryOf } from "./report.ts";
import { torture } from "./run.ts";

const usage = `npm run evidence -- torture [--minutes N] [--seed N] [--processes N] [--primitive NAME] [--plant NAME]

  --minutes N        how long the processes are tortured; at least 0.25, at most 60; default: 1
  --seed N           decides faults, kills, freezes and clocks; default: from the time of day
  --processes N      how many processes at a time, from 2 to 16; default: 5
  --primitive NAME   what they use, or \`all\`: ${primitives.join(", ")}; default: all
  --plant NAME       a mistake that the proxy plants, to see it found:
${plants.map(({ name, what }) => `                     ${name}: ${what}`).join("\n")}
  --last-release     half of the processes have the last release; those that start in their place draw again
  --folder DIR       where the histories are kept; default: a new folder for temporary files
  --porcupine        lets Porcupine judge the histories too, where Go is installed
  --write            writes the figures of docs/evidence.md; of one version alone`;

const { values } = parseArgs({
  options: {
    minutes: { type: "string", default: "1" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    processes: { type: "string", default: "5" },
    primitive: { type: "string", default: "all" },
    plant: { type: "string" },
    "last-release": { type: "boolean", default: false },
    folder: { type: "string" },
    porcupine: { type: "boolean", default: false },
    write: { type: "boolean", default: false },
    help: { type: "boolean", short: "h" },
  },
});

async function main(): Promise<number> {
  if (values.help) {
    console.log(usage);
    return 0;
  }
  const { minutes, seed, processes } = {
    minutes: numberIn(values.minutes, "--minutes", 0.25, 60),
    seed: wholeIn(values.seed, "--seed", 0, 999_999_999),
    processes: wholeIn(values.processes, "--processes", 2, 16),
  };
  const plant = values.plant === undefined ? undefined : named(plants, values.plant, "--plant");
  const chosen = plant?.primitive ?? values.primitive;
  const last = values["last-release"] ? await bundleWithLastRelease(source) : undefined;
  const tortured = primitives.filter((each) => chosen === "all" || each === chosen);
  if (tortured.length === 0)
    throw new Error(`--primitive is ${chosen}; allowed: all, ${primitives.join(", ")}`);

  if (values.write && last !== undefined) throw new Error("--write is of one version: leave --last-release");

  const onProgress = (what: string): void => {
    if (process.stdout.isTTY) process.stdout.write(`\r\u001b[K${what}`);
  };
  onProgress("packing and installing");
  const project = await installTortured();
  await using engine = await startEngine();
  const folder = values.folder ?? (await mkdtemp(join(tmpdir(), `leasehold-torture-${seed}-`)));
  try {
    const { clientConfig, version } = engine;
    const workers = last === undefined ? ([project.worker] as const) : ([project.worker, last.file] as const);
    const { bend } = plant ?? {};
    const options = {
      engine: { clientConfig },
      workers,
      folder,
      seed,
      processes,
      primitives: tortured,
      onProgress,
    };
    const result = await torture({ ...options, durationMs: minutes * 60_000, ...(bend && { bend }) });
    onProgress("");
    const figures = summaryOf(result, { seed, minutes, processes, engine: version });
    console.table(outcomesIn(result.history));
    console.table(Object.fromEntries(result.tally));
    console.log(`${figures}\n\nThe histories are in ${folder}`);
    const { violations } = result;
    for (const { rule, text } of violations) console.log(`${red(rule)}: ${text}`);
    if (values.write) await writeEvidence("torture", figures, await measuredCommit("test/torture"));
    const isRight = !values.porcupine || (await secondOpinion(folder));
    if (violations.length === 0 && isRight) return 0;
    const given = Object.entries({
      minutes,
      seed,
      processes,
      primitive: values.primitive,
      plant: values.plant,
    });
    const again = given.flatMap(([name, value]) => (value === undefined ? [] : [`--${name} ${value}`]));
    if (last !== undefined) again.push("--last-release");
    console.log(`again: npm run evidence -- torture ${again.join(" ")}`);
    return 1;
  } finally {
    await project.remove();
  }
}

/** Tells what Porcupine says; tells whether it has found nothing wrong. */
async function secondOpinion(folder: string): Promise<boolean> {
  if (!(await hasGo())) {
    console.log("Porcupine: skipped, for Go is not installed");
    return true;
  }
  const { isRight, text } = await judgeByPorcupine(folder);
  console.log(`Porcupine: ${isRight ? text : red(text)}`);
  return isRight;
}

const red = (text: string): string => styleText("red", text, { stream: process.stdout });

function named<Each extends { readonly name: string }>(
  all: readonly Each[],
  name: string,
  option: string,
): Each {
  const found = all.find((each) => each.name === name);
  if (found === undefined)
    throw new Error(`${option} is ${name}; allowed: ${all.map((each) => each.name).join(", ")}`);
  return found;
}

// The processes end with this one, the frozen ones too.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));
main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: Error) => {
    console.error(error.message);
    process.exitCode = 2;
  },
);
