import { setTimeout as delay } from "node:timers/promises";
import { DynamoDBClient } from "@aws-sdk/client-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { acceptanceWorkflowKey } from "../../functions/acceptance/schema.ts";
import { type Check, checked, seconds } from "./check.ts";
import type { Deployment } from "./deployment.ts";
import type { ExecutionState, Executions } from "./executions.ts";

/** The state of infra/acceptance.ts that is the workflow's work, and how long it takes. */
const work = { state: "Hold", ms: 3_000 };
/** A run takes some 5 seconds; one that waits, as long again, and the stream's delay. */
const patienceMs = 60_000;
/** A keeper looks at each third of its 6 seconds; what it has lost is over after a lease. */
const keeperMs = 15_000;

/** Runs the leased workflow: two at once, and one that is stopped in the middle of its work. Some 30 seconds. */
export async function checkWorkflow(
  deployment: Deployment,
  executions: Executions,
  signal: AbortSignal,
): Promise<Check[]> {
  const dynamodb = new DynamoDBClient({});
  const leases = new LeaseClient({ tableName: deployment.tableName, dynamodb });
  try {
    return [
      await checked(
        "two executions, at once",
        "both succeed, one after the other",
        () => oneAfterTheOther(executions, signal),
        signal,
      ),
      await checked("their keepers", "end by themselves", () => keepersEnd(executions, 2, signal), signal),
      await checked(
        "an execution that is stopped in its work",
        `its keeper lets the lock go within ${seconds(keeperMs)}`,
        () => stopped(executions, leases, signal),
        signal,
      ),
    ];
  } finally {
    dynamodb.destroy();
  }
}

async function oneAfterTheOther(executions: Executions, signal: AbortSignal): Promise<Measured> {
  const arns = await Promise.all([executions.start(), executions.start()]);
  const states = await Promise.all(arns.map((arn) => executions.ended(arn, patienceMs, signal)));
  const entered = await Promise.all(arns.map((arn) => executions.entered(arn)));
  const begun = entered.map((all) => all.find(({ name }) => name === work.state)?.at.getTime() ?? Number.NaN);
  const apartMs = Math.abs((begun[0] ?? 0) - (begun[1] ?? 0));
  const counts = entered.map(({ length }) => length).sort((a, b) => a - b);
  const measured = `${ends(states)}, ${seconds(apartMs)} apart, ${counts.join(" and ")} states`;
  return { measured, holds: states.every(succeeded) && apartMs >= work.ms };
}

async function keepersEnd(executions: Executions, atLeast: number, signal: AbortSignal): Promise<Measured> {
  const deadline = performance.now() + keeperMs;
  for (;;) {
    const keepers = await executions.keepers();
    const areDone = keepers.length >= atLeast && keepers.every(({ status }) => status !== "RUNNING");
    if (!areDone && performance.now() < deadline) {
      await delay(500, undefined, { signal });
      continue;
    }
    const counts = await Promise.all(keepers.map(async ({ arn }) => (await executions.entered(arn)).length));
    const measured = `${ends(keepers)}, ${counts.sort((a, b) => a - b).join(" and ")} states`;
    return { measured, holds: areDone && keepers.every(succeeded) };
  }
}

async function stopped(executions: Executions, leases: LeaseClient, signal: AbortSignal): Promise<Measured> {
  const arn = await executions.start();
  if (!(await executions.reaches(arn, work.state, patienceMs, signal))) {
    return { measured: `never at work: ${ends([await executions.state(arn)])}`, holds: false };
  }
  await executions.stop(arn);
  const begun = performance.now();
  const { status } = await executions.ended(arn, patienceMs, signal);
  for (;;) {
    const holder = await leases.inspect(acceptanceWorkflowKey);
    const tookMs = performance.now() - begun;
    if (holder === undefined) {
      return { measured: `${status}, free after ${seconds(tookMs)}`, holds: status === "ABORTED" };
    }
    if (tookMs > keeperMs) return { measured: `${status}, and held by ${holder.owner}`, holds: false };
    await delay(250, undefined, { signal });
  }
}

type Measured = { readonly measured: string; readonly holds: boolean };

function succeeded({ status }: ExecutionState): boolean {
  return status === "SUCCEEDED";
}

/** Such as `2 SUCCEEDED`, or `1 FAILED (LeaseLostError: …)`. */
function ends(states: readonly ExecutionState[]): string {
  const counts = new Map<string, number>();
  for (const { status, error, cause } of states) {
    const end = error === undefined ? status : `${status} (${error}: ${cause})`;
    counts.set(end, (counts.get(end) ?? 0) + 1);
  }
  return [...counts].map(([end, count]) => `${count} ${end}`).join(", ") || "none";
}
