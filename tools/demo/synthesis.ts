import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** How much of the output an error quotes. */
const keptLines = 40;

/** How a demonstration is synthesized. */
export interface SynthesisOptions {
  /** By how much its pace is slowed down. @default 1 */
  readonly stretch?: number;
  /** Called for each function whose bundle is being made, with the path of its construct. @default - none */
  readonly onBundling?: (path: string) => void;
}

/**
 * Synthesizes infra/app.ts into a folder, as `cdk synth` does, at the pace of a demonstration. Takes some seconds.
 *
 * Rejects with the last output if the app cannot be synthesized. When the signal aborts it ends, with all that it has
 * started, and rejects when nothing writes into the folder any more.
 */
export async function synthesize(
  outdir: string,
  signal: AbortSignal,
  { stretch = 1, onBundling }: SynthesisOptions = {},
): Promise<void> {
  const { context } = JSON.parse(await readFile(`${root}cdk.json`, "utf8")) as { context: object };
  signal.throwIfAborted();
  const pace = { "leasehold:pace": "demonstration", "leasehold:stretch": stretch };
  const args = ["--conditions=leasehold-source", "--import", "tsx", "infra/app.ts"];
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, CDK_OUTDIR: outdir, CDK_CONTEXT_JSON: JSON.stringify({ ...context, ...pace }) },
    stdio: ["ignore", "pipe", "pipe"],
    // A group of its own, which takes the bundlers along when it is killed.
    detached: true,
  });
  const kill = (): void => killGroup(child.pid);
  process.on("exit", kill);
  signal.addEventListener("abort", kill);
  const output: string[] = [];
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on("line", (line) => {
      output.push(line);
      const [, path] = /^Bundling asset (\S+)\/Code\/Stage/.exec(line) ?? [];
      if (path !== undefined) onBundling?.(path);
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  signal.removeEventListener("abort", kill);
  process.off("exit", kill);
  signal.throwIfAborted();
  if (code === 0) return;
  const text = output.slice(-keptLines).join("\n");
  throw new Error(`the app could not be synthesized (exit code ${code}):\n${text}`);
}

function killGroup(leader: number | undefined): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, "SIGKILL");
  } catch {
    // Nothing of the group is left.
  }
}
