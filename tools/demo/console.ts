import { PassThrough } from "node:stream";
import { runCommandLine } from "@leasehold/cli";
import type { Screen } from "./screen.ts";

/** Where the demonstration's leases are. */
export interface LeasePlace {
  readonly endpoint: string;
  readonly tableName: string;
}

/** Serves `leasehold console` on the demonstration's own table, until the signal aborts. */
export async function offerConsole(
  screen: Screen,
  { endpoint, tableName }: LeasePlace,
  signal: AbortSignal,
): Promise<void> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  stdout.once("data", (address) => {
    screen.gap();
    screen.note(`Look at it: ${String(address).trim()}   (Ctrl-C ends)`);
  });
  let said = "";
  stderr.on("data", (chunk) => {
    said += chunk;
  });
  const args = ["console", "--table", tableName, "--endpoint", endpoint, "--write"];
  const code = await runCommandLine(args, {
    stdin: process.stdin,
    stdout,
    stderr,
    env: {},
    signals: { signal, redirect: () => () => {} },
  });
  if (code !== 0) screen.note(said.trim());
}
