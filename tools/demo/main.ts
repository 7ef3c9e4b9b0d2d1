/**
 * The app of this repository, here: synthesized, and run on this machine with nothing to set up.
 *
 * Its five systems work at the same time, each with its planned incidents. Shows what happens, and ends with an
 * audit. On a terminal it then offers the console on its own table, until Ctrl-C. Leaves no process and no folder behind, however it ends.
 *
 * Exits with 0 if all checks hold, with 1 if one failed or the app could not be started, with 75 if this machine is
 * too slow for the plan, and with 128 and its number after a signal.
 */

import { PassThrough } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { type DemonstrationOptions, Ending, exitCodes, interruption, readOptions } from "./command-line.ts";
import type { Demonstrated } from "./demonstration.ts";
import { Screen } from "./screen.ts";
import { NotStaged } from "./tempo.ts";
import { tooSlow } from "./verdict.ts";

/** What has not ended by then is killed with this process. */
const longestCleanupMs = 10_000;

async function main(): Promise<number> {
  const interrupted = interruption();
  const ending = new AbortController();
  const resources = new AsyncDisposableStack();
  let screen = new Screen(process.stdout, false);
  let code: number;
  try {
    const options = readOptions(process.argv.slice(2));
    screen = new Screen(process.stdout, options.all);
    const performed = perform(resources, screen, options, ending.signal);
    const { code: verdict, place } = await Promise.race([performed, interrupted]);
    code = verdict;
    if (options.console) {
      // Ignored: the person asks for the end, and the verdict is told.
      await Promise.race([offerConsole(screen, place, ending.signal), interrupted.catch(() => undefined)]);
    }
  } catch (error) {
    screen.close();
    code = explain(screen, error);
  }
  ending.abort();
  await Promise.race([resources.disposeAsync(), delay(longestCleanupMs)]);
  return code;
}

async function perform(
  resources: AsyncDisposableStack,
  screen: Screen,
  options: DemonstrationOptions,
  signal: AbortSignal,
): Promise<Demonstrated> {
  if (process.platform === "win32") throw new Ending("Windows has no SIGSTOP: use WSL.", exitCodes.failed);
  screen.title("Leasehold: five systems that share one lease table, and what can go wrong in each\n");
  const step = screen.step("Loading");
  // It takes a second, in which something should be on the screen already.
  const { demonstrate } = await import("./demonstration.ts");
  step.done("");
  return demonstrate(resources, screen, options, signal);
}

/** Serves `leasehold console` on the demonstration's own table, until the signal aborts. */
async function offerConsole(
  screen: Screen,
  { endpoint, tableName }: Demonstrated["place"],
  signal: AbortSignal,
): Promise<void> {
  // It takes a moment to load, and not everybody looks.
  const { runCommandLine } = await import("@leasehold/cli");
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

function explain(screen: Screen, error: unknown): number {
  if (error instanceof NotStaged) {
    screen.verdict(false, `\n${error.message}\n${tooSlow()}`);
    return exitCodes.tooSlow;
  }
  const isExplained = error instanceof Ending;
  screen.verdict(
    false,
    `\n${isExplained ? error.message : String(error instanceof Error ? error.stack : error)}`,
  );
  return isExplained ? error.exitCode : exitCodes.failed;
}

const code = await main();
// What was interrupted may still be under way.
process.exit(code);
