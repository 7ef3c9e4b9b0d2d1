import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { environmentNames } from "@leasehold/client/environment";
import { acceptanceKeyPrefix } from "../../functions/acceptance/schema.ts";
import { contractPrefixVariable } from "../contract/new-key.ts";
import type { Check } from "./check.ts";
import type { Deployment } from "./deployment.ts";

const program = fileURLToPath(new URL("./contracts/run.ts", import.meta.url));
const keptOutput = 2_000;

/**
 * Runs every contract of test/contract on the deployed lease table, a check for each.
 *
 * The tests' own time is their clocks', which stand still while a request is under way: DynamoDB compares what it is
 * given with what it has, and never with a time of its own. So the contracts hold on any network, however slow.
 *
 * Settles when no test is at work any more: with the signal's reason if that aborts, which kills the tests.
 */
export async function checkContracts(
  { tableName }: Deployment,
  progress: (line: string) => void,
  signal: AbortSignal,
): Promise<Check[]> {
  signal.throwIfAborted();
  const checks: Check[] = [];
  // A group of its own: a terminal sends its Ctrl-C to this process alone, which decides what becomes of the tests.
  const child = fork(program, {
    execArgv: ["--conditions=leasehold-source", "--import", "tsx"],
    env: {
      ...process.env,
      [environmentNames.tableName]: tableName,
      [contractPrefixVariable]: acceptanceKeyPrefix,
    },
    detached: true,
    silent: true,
  });
  child.on("message", (check: Check) => {
    checks.push(check);
    progress(`${check.name}: ${check.measured}`);
  });
  const kill = (): void => void child.kill("SIGKILL");
  signal.addEventListener("abort", kill);
  const output = await end(child);
  signal.removeEventListener("abort", kill);
  signal.throwIfAborted();
  if (child.exitCode !== 0) throw new Error(`the contracts have ended early:\n${output}`);
  return checks.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Waits for the end of a process, and gives the last that it printed. */
async function end(child: ChildProcess): Promise<string> {
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk) => {
      output = `${output}${chunk}`.slice(-keptOutput);
    });
  }
  await new Promise((resolve) => child.once("close", resolve));
  return output;
}
