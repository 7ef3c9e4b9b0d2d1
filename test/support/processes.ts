import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildSync } from "esbuild";

const root = fileURLToPath(new URL("../..", import.meta.url));
const bundles = new Map<string, string>();

/** Runs a TypeScript file in a process of its own, as the tests run: from the sources, under the same Node. */
export function startScript(script: URL, config: object, options: { readonly ipc: boolean }): ChildProcess {
  const stdio = ["ignore", "inherit", "inherit", ...(options.ipc ? (["ipc"] as const) : [])] as const;
  return spawn(process.execPath, [bundleOf(script), JSON.stringify(config)], {
    cwd: root,
    stdio: [...stdio],
  });
}

/** The script in one file, which starts in a fifth of the time. It lies where it finds the SDK. */
function bundleOf(script: URL): string {
  const known = bundles.get(script.href);
  if (known !== undefined) return known;
  const { outputFiles = [] } = buildSync({
    entryPoints: [fileURLToPath(script)],
    absWorkingDir: root,
    bundle: true,
    write: false,
    platform: "node",
    target: "node22",
    format: "esm",
    conditions: ["leasehold-source"],
    external: ["@aws-sdk/*"],
    // Packages in CommonJS require Node's modules.
    banner: {
      js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
    },
    logLevel: "error",
  });
  const contents = outputFiles[0]?.contents ?? new Uint8Array();
  const folder = join(root, "node_modules/.cache/leasehold-scripts");
  const file = join(folder, `${createHash("sha256").update(contents).digest("hex").slice(0, 12)}.mjs`);
  if (!existsSync(file)) {
    mkdirSync(folder, { recursive: true });
    const part = `${file}.${process.pid}`;
    writeFileSync(part, contents);
    renameSync(part, file);
  }
  bundles.set(script.href, file);
  return file;
}

/** The next message of a process; rejects when it ends without one. */
export async function messageFrom<Message>(child: ChildProcess): Promise<Message> {
  const settled = new AbortController();
  const { signal } = settled;
  try {
    return await Promise.race([
      once(child, "message", { signal }).then(([message]) => message as Message),
      once(child, "exit", { signal }).then(([code, by]) => {
        throw new Error(`the process ended with ${code ?? by} in place of a message`);
      }),
    ]);
  } finally {
    settled.abort();
  }
}
