/**
 * What tools by others say of this project, where this machine has Python. The first time it needs the network, for them.
 *
 *     npm run evidence -- second-opinions
 *     npm run evidence -- second-opinions moto
 *
 * Ends with 1 where a part finds something, or does not end in time. A part that cannot run here is skipped, and says why.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { constants, tmpdir } from "node:os";
import { join } from "node:path";

const parts = ["cfn-lint", "moto"];
/** Never on an idle machine: each takes two or three. */
const mostMinutes = 20;
/** For its last words, from SIGTERM to SIGKILL. */
const graceMs = 5_000;

const asked = process.argv.length > 2 ? process.argv.slice(2) : parts;
const unknown = asked.find((name) => !parts.includes(name));
if (unknown !== undefined) throw new Error(`there is no part ${unknown}; allowed: ${parts.join(", ")}`);

const interrupted = new AbortController();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  // It comes twice where a terminal sends it to all, and npm passes it on.
  process.on(signal, () => {
    process.exitCode = 128 + constants.signals[signal];
    interrupted.abort();
  });
}
for (const name of asked) {
  const hasPassed = await passes(name);
  if (interrupted.signal.aborted) break;
  if (!hasPassed) process.exitCode = 1;
}

/** Runs a part in a group of processes and a temporary folder of its own, of which nothing is left. */
async function passes(name: string): Promise<boolean> {
  const since = performance.now();
  const folder = await mkdtemp(join(tmpdir(), `leasehold-${name}-`));
  const script = join(import.meta.dirname, `${name}.ts`);
  const part = spawn(process.execPath, ["--import", "tsx", "--conditions=leasehold-source", script], {
    cwd: join(import.meta.dirname, "../.."),
    env: { ...process.env, TMPDIR: folder },
    stdio: ["ignore", "inherit", "inherit"],
    detached: true,
  });
  const kill = (signal: NodeJS.Signals): void => {
    try {
      if (part.pid !== undefined) process.kill(-part.pid, signal);
    } catch {
      // Ignored: nothing of the group is left.
    }
  };
  const end = AbortSignal.any([interrupted.signal, AbortSignal.timeout(mostMinutes * 60_000)]);
  end.addEventListener("abort", () => {
    kill("SIGTERM");
    setTimeout(kill, graceMs, "SIGKILL").unref();
  });
  try {
    const [code] = (await once(part, "exit")) as [number | null];
    const seconds = ((performance.now() - since) / 1_000).toFixed(0);
    if (interrupted.signal.aborted) console.log(`${name}: interrupted after ${seconds} s`);
    else if (end.aborted) console.log(`${name}: FAILED: it has not ended within ${mostMinutes} minutes`);
    else console.log(`${name}: ${code === 0 ? "ended" : "FAILED"} after ${seconds} s`);
    return code === 0 && !end.aborted;
  } finally {
    kill("SIGKILL");
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
