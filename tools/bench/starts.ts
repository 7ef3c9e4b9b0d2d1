import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { Bundle } from "./bundles.ts";
import { median, quantile } from "./statistics.ts";

/** How long a process takes from its start until its handler can be called. */
export interface StartTimes {
  readonly name: string;
  readonly starts: number;
  readonly p50: number;
  /** Half of the starts lie between these. */
  readonly p25: number;
  readonly p75: number;
  readonly cpuP50: number;
  /** Of which for the import of the handler alone. */
  readonly importCpuP50: number;
  /** Of the medians, to the baseline's. */
  readonly ratio: number;
  readonly importCpuRatio: number;
  readonly isBaseline: boolean;
}

interface Start {
  readonly ms: number;
  readonly cpuMs: number;
  readonly importCpuMs: number;
}

const warmUps = 2;

/** Says, once the handler is there, how much of the processor's time that has taken. */
const runner = `
const ms = ({ user, system }) => (user + system) / 1000;
const before = process.cpuUsage();
const { handler } = await import(process.argv[1]);
const cpu = [process.cpuUsage(), process.cpuUsage(before)];
if (typeof handler !== "function") throw new Error("no handler");
process.stdout.write(cpu.map(ms).join(" "));
`;

/** Starts the bundles' processes in turns, each alone, so that whatever disturbs one disturbs all. */
export async function benchStarts(
  pairs: readonly { readonly bundle: Bundle; readonly baseline: Bundle }[],
  rounds = 30,
): Promise<StartTimes[]> {
  const directory = await mkdtemp(join(tmpdir(), "leasehold-bench-"));
  try {
    const bundles = [...new Set(pairs.flatMap(({ baseline, bundle }) => [baseline, bundle]))];
    const samples = new Map<Bundle, Start[]>();
    for (const bundle of bundles) await writeFile(join(directory, `${bundle.name}.mjs`), bundle.code);
    for (let round = -warmUps; round < rounds; round += 1) {
      const turn = Math.abs(round) % bundles.length;
      for (const bundle of [...bundles.slice(turn), ...bundles.slice(0, turn)]) {
        const start = await startOnce(join(directory, `${bundle.name}.mjs`));
        if (round >= 0) samples.set(bundle, [...(samples.get(bundle) ?? []), start]);
      }
    }
    const importsOf = (bundle: Bundle): number[] =>
      (samples.get(bundle) ?? []).map(({ importCpuMs }) => importCpuMs);
    const timesOf = (bundle: Bundle): number[] => (samples.get(bundle) ?? []).map(({ ms }) => ms);
    return pairs.map(({ bundle, baseline }) => {
      const times = timesOf(bundle);
      return {
        name: bundle.name,
        starts: times.length,
        p50: median(times),
        p25: quantile(times, 0.25),
        p75: quantile(times, 0.75),
        cpuP50: median((samples.get(bundle) ?? []).map(({ cpuMs }) => cpuMs)),
        importCpuP50: median(importsOf(bundle)),
        ratio: median(times) / median(timesOf(baseline)),
        importCpuRatio: median(importsOf(bundle)) / median(importsOf(baseline)),
        isBaseline: bundle === baseline,
      };
    });
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function startOnce(path: string): Promise<Start> {
  const args = ["--input-type=module", "--eval", runner, pathToFileURL(path).href];
  const env = { PATH: process.env.PATH, AWS_REGION: "us-east-1" };
  const startedAt = performance.now();
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  let start: Start | undefined;
  child.stdout.once("data", (cpu: Buffer) => {
    const [cpuMs = Number.NaN, importCpuMs = Number.NaN] = cpu.toString().split(" ").map(Number);
    start = { ms: performance.now() - startedAt, cpuMs, importCpuMs };
  });
  await exited;
  if (start === undefined) throw new Error(`the bundle ${path} did not start`);
  return start;
}
