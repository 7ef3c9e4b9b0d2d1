import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Synthesizes infra/app.ts into a folder, as `cdk synth` does, at the pace of a demonstration. Takes some seconds. */
export async function synthesize(outdir: string, signal: AbortSignal): Promise<void> {
  const { context } = JSON.parse(await readFile(`${root}cdk.json`, "utf8")) as { context: object };
  const child = spawn(
    process.execPath,
    ["--conditions=leasehold-source", "--import", "tsx", "infra/app.ts"],
    {
      cwd: root,
      env: {
        ...process.env,
        CDK_OUTDIR: outdir,
        CDK_CONTEXT_JSON: JSON.stringify({ ...context, "leasehold:pace": "demonstration" }),
      },
      stdio: ["ignore", "pipe", "pipe"],
      signal,
    },
  );
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`the app could not be synthesized (exit code ${code}):\n${output}`);
}
