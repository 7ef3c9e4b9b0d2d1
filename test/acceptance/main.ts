/**
 * Checks a deployment: that the contracts hold on its lease table, that requests are as many as the documentation says,
 * and that a singleton job and a leased workflow of it run one at a time.
 *
 * Without arguments it deploys the app on this machine, and checks that. See `usage` in arguments.ts.
 *
 * Works under keys of its own, and removes what it made, whatever ends it. Exits with 0 if all checks hold and nothing is
 * left, with 1 if not, and with 128 and its number after a signal.
 */
import { constants } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { heading, note, table } from "../../tools/bench/report.ts";
import { readArguments } from "./arguments.ts";
import { type Check, describe, seconds } from "./check.ts";
import { checkContracts } from "./contracts.ts";
import { type Deployment, findDeployment } from "./deployment.ts";
import { Executions } from "./executions.ts";
import { checkJob } from "./job.ts";
import { keepToKeySpace, leftItems, sweep } from "./key-space.ts";
import { localStackName, startLocalDeployment } from "./local-deployment.ts";
import { problemOf } from "./problems.ts";
import { checkRealTime } from "./real-time.ts";
import { checkRequests } from "./requests.ts";
import { checkWorkflow } from "./workflow.ts";

/** What has not been removed by then is named, and left. */
const longestCleanupMs = 120_000;
const endingSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Runs all checks, prints them, and gives the exit code. */
async function acceptance(args: readonly string[]): Promise<number> {
  const ending = new AbortController();
  const { signal } = ending;
  for (const name of endingSignals) {
    process.on(name, () => {
      // A second signal ends it at once, without the clean-up.
      if (signal.aborted) process.exit(128 + constants.signals[name]);
      console.log(`\nEnded by ${name}: removing what was made (once more to leave it).`);
      ending.abort(new Interruption(128 + constants.signals[name]));
    });
  }
  await using resources = new AsyncDisposableStack();
  try {
    const deployment = await deploymentOf(args, resources, signal);
    return await checkAll(deployment, signal);
  } catch (error) {
    return explain(error);
  }
}

/** A signal has asked for the end. */
class Interruption extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super("interrupted");
    this.exitCode = exitCode;
  }
}

async function deploymentOf(
  args: readonly string[],
  resources: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Deployment> {
  const { stackName } = readArguments(args, process.env);
  if (stackName === undefined) {
    console.log("Deploying the app on this machine…");
    Object.assign(process.env, await startLocalDeployment(resources, signal));
  }
  const deployment = await findDeployment(stackName ?? localStackName, signal);
  const where = stackName === undefined ? "on this machine" : `in ${deployment.region}`;
  console.log(`Checking the stack ${deployment.stackName} ${where}, and its table ${deployment.tableName}.`);
  return deployment;
}

async function checkAll(deployment: Deployment, signal: AbortSignal): Promise<number> {
  const executions = new Executions(deployment);
  const checks: Check[] = [];
  let end: unknown;
  const section = async (title: string, perform: () => Promise<Check[]>): Promise<void> => {
    const begun = performance.now();
    console.log(`\n${title}…`);
    const found = await perform();
    checks.push(...found);
    const failed = found.filter(({ holds }) => !holds).length;
    console.log(`  ${found.length - failed} of ${found.length} hold, ${seconds(performance.now() - begun)}`);
  };
  const progress = (line: string): void => console.log(`  ${line}`);
  try {
    await section("Requests", () => checkRequests(deployment, signal));
    await section("In real time", () => checkRealTime(deployment, signal));
    await section("A singleton job", () => checkJob(deployment, signal));
    await section("A leased workflow", () => checkWorkflow(deployment, executions, signal));
    await section("Contracts", () => checkContracts(deployment, progress, signal));
  } catch (error) {
    end = signal.aborted ? signal.reason : error;
  }
  const isClean = await cleanUp(deployment, executions);
  report(checks);
  if (end !== undefined) return explain(end);
  return isClean && checks.every(({ holds }) => holds) ? 0 : 1;
}

/** Removes what was made, says so, and gives whether nothing is left. */
async function cleanUp({ tableName }: Deployment, executions: Executions): Promise<boolean> {
  const dynamodb = new DynamoDBClient({});
  keepToKeySpace(dynamodb);
  const clear = async (): Promise<boolean> => {
    const { stopped, left } = await executions.clear();
    let items = await sweep(dynamodb, tableName);
    // A write that was under way at an interruption may land behind the first sweep.
    items += await sweep(dynamodb, tableName);
    const leftBehind = [...left, ...(await leftItems(dynamodb, tableName))];
    console.log(
      `\nRemoved ${items} items, and ended ${stopped} executions; ${executions.started} of the workflow's ended ` +
        "executions stay in Step Functions' history for 90 days.",
    );
    if (leftBehind.length === 0) console.log("Nothing is left.");
    else console.log(`Left behind:\n${leftBehind.map((name) => `  ${name}`).join("\n")}`);
    return leftBehind.length === 0;
  };
  const giveUp = async (): Promise<boolean> => {
    await delay(longestCleanupMs, undefined, { ref: false });
    console.log("\nThe clean-up did not end in time: run acceptance again, which removes the rest.");
    return false;
  };
  try {
    return await Promise.race([clear(), giveUp()]);
  } catch (error) {
    console.log(`\nThe clean-up failed: ${describe(error)}\nRun acceptance again, which removes the rest.`);
    return false;
  } finally {
    executions.close();
    dynamodb.destroy();
  }
}

function report(checks: readonly Check[]): void {
  if (checks.length === 0) return;
  heading("Checks");
  table(
    ["", "check", "promised", "measured"],
    checks.map(({ name, promised, measured, holds }) => [holds ? "ok" : "FAILED", name, promised, measured]),
  );
  for (const { name, details = [] } of checks) {
    if (details.length > 0) note(`\n${name}\n${details.map((line) => `  ${line}`).join("\n")}`);
  }
  const failed = checks.filter(({ holds }) => !holds).length;
  console.log(
    failed === 0 ? `\nAll ${checks.length} checks hold.` : `\n${failed} of ${checks.length} checks failed.`,
  );
}

function explain(error: unknown): number {
  if (error instanceof Interruption) return error.exitCode;
  const problem = problemOf(error, "checking the deployment");
  console.error(problem === undefined ? error : `\n${problem.code}: ${problem.message}`);
  return 1;
}

const code = await acceptance(process.argv.slice(2));
// A pipe takes 64 KB at once: an exit before it has taken the rest would cut the table off.
await new Promise((resolve) => process.stdout.write("", resolve));
process.exit(code);
