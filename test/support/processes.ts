import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Runs a TypeScript file in a process of its own, as the tests run: from the sources, under the same Node. */
export function startScript(script: URL, config: object, options: { readonly ipc: boolean }): ChildProcess {
  const args = [
    "--import",
    "tsx",
    "--conditions=leasehold-source",
    fileURLToPath(script),
    JSON.stringify(config),
  ];
  const stdio = ["ignore", "inherit", "inherit", ...(options.ipc ? (["ipc"] as const) : [])] as const;
  return spawn(process.execPath, args, { cwd: root, stdio: [...stdio] });
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
