/** What a function that takes a lock brings in its bundle, and what its start takes, in processes of their own. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempDisposable, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { bundled } from "../../../test/support/bundled.ts";
import { inTurn, median } from "../turns.ts";
import type { BundleCost } from "./results.ts";

/** The contenders that have a handler of their own in `handlers`. */
const ids = ["floor", "leasehold", "leasehold-light", "lock-client"] as const;

/** What a bundle needs in which a CommonJS package requires modules of Node. */
const requireBanner = `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`;

interface Start {
  readonly ms: number;
  readonly importCpuMs: number;
}

const warmUps = 2;

/** Says, once the handler is there, how much of the processor's time its import has taken. */
const runner = `
const before = process.cpuUsage();
const { handler } = await import(process.argv[1]);
const { user, system } = process.cpuUsage(before);
if (typeof handler !== "function") throw new Error("no handler");
process.stdout.write(String((user + system) / 1000));
`;

/** Bundles the handlers, and starts each so many times: in turns, so that whatever disturbs one disturbs all. */
export async function measureBundles(rounds: number): Promise<BundleCost[]> {
  await using folder = await mkdtempDisposable(join(tmpdir(), "leasehold-bench-"));
  const bundles = await Promise.all(ids.map((id) => bundle(id, folder.path)));
  for (let round = -warmUps; round < rounds; round += 1) {
    for (const { path, starts } of inTurn(bundles, round)) {
      const start = await startOnce(path);
      if (round >= 0) starts.push(start);
    }
  }
  return bundles.map(({ id, gzipBytes, starts }) => ({
    id,
    gzipBytes,
    importCpuMs: median(starts.map(({ importCpuMs }) => importCpuMs)),
    startMs: median(starts.map(({ ms }) => ms)),
  }));
}

async function bundle(id: string, folder: string) {
  const { code } = await bundled(
    `export { handler } from "../../tools/bench/peers/handlers/${id}.ts";`,
    id === "lock-client" ? { banner: requireBanner } : {},
  );
  const path = join(folder, `${id}.mjs`);
  await writeFile(path, code);
  const starts: Start[] = [];
  return { id, path, gzipBytes: gzipSync(code, { level: 9 }).length, starts };
}

async function startOnce(path: string): Promise<Start> {
  const args = ["--input-type=module", "--eval", runner, pathToFileURL(path).href];
  const env = { PATH: process.env.PATH, AWS_REGION: "us-east-1" };
  const startedAt = performance.now();
  const child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "inherit"] });
  const exited = once(child, "exit");
  let start: Start | undefined;
  child.stdout.once("data", (importCpuMs: Buffer) => {
    start = { ms: performance.now() - startedAt, importCpuMs: Number(importCpuMs.toString()) };
  });
  await exited;
  if (start === undefined) throw new Error(`the bundle ${path} did not start`);
  return start;
}
