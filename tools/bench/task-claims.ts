import type { DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { TaskSet } from "@leasehold/jobs";
import { messageFrom, startScript } from "../../test/support/processes.ts";
import type { Target } from "../../test/support/proxy.ts";
import type { TestTable } from "../../test/support/table.ts";
import { listed } from "./counted.ts";
import type { TaskWorkerConfig, TaskWorkerReport } from "./task-worker.ts";

/** What it takes many workers to do a set of tasks. */
export interface TaskClaimCost {
  readonly tasks: number;
  readonly workers: number;
  /** How many tasks' work was run, how many of these are different, and how many have succeeded. */
  readonly begun: number;
  readonly different: number;
  readonly succeeded: number;
  /** Of the workers alone, from their start until they find the set drained. */
  readonly requestsPerTask: number;
  /** Such as `1090 UpdateItem, 1000 TransactWriteItems`. */
  readonly sent: string;
  /** From the start signal to the end of the last task. */
  readonly ms: number;
  /** How many tasks the least and the most busy worker had. */
  readonly fewest: number;
  readonly most: number;
}

const taskCount = 1_000;
const workerCount = 8;

/** Has 8 processes do 1,000 tasks without work, which is when they meet most. */
export async function benchTaskClaims(engine: Target, leases: TestTable): Promise<TaskClaimCost> {
  const set = leases.newKey();
  const tasks = new TaskSet(leases.client(), set);
  await tasks.add(Array.from({ length: taskCount }, (_, index) => ({ id: `task-${index}` })));
  const config: TaskWorkerConfig = {
    clientConfig: engine.clientConfig as DynamoDBClientConfig,
    tableName: leases.tableName,
    set,
  };
  const script = new URL("./task-worker.ts", import.meta.url);
  const workers = Array.from({ length: workerCount }, () => startScript(script, config, { ipc: true }));
  try {
    await Promise.all(workers.map((worker) => messageFrom(worker)));
    const startedAt = Date.now();
    const reporting = Promise.all(workers.map((worker) => messageFrom<TaskWorkerReport>(worker)));
    for (const worker of workers) worker.send("go");
    const reports = await reporting;

    const begun = reports.flatMap((report) => report.begun);
    const sent = new Map<string, number>();
    for (const [operation, count] of reports.flatMap((report) => Object.entries(report.sent))) {
      sent.set(operation, (sent.get(operation) ?? 0) + count);
    }
    const shares = reports.map((report) => report.succeeded);
    return {
      tasks: taskCount,
      workers: workerCount,
      begun: begun.length,
      different: new Set(begun).size,
      succeeded: (await tasks.counts()).succeeded,
      requestsPerTask: [...sent.values()].reduce((sum, count) => sum + count, 0) / taskCount,
      sent: listed(sent),
      ms: Math.max(...reports.map(({ lastEndedAt }) => lastEndedAt)) - startedAt,
      fewest: Math.min(...shares),
      most: Math.max(...shares),
    };
  } finally {
    for (const worker of workers) worker.kill("SIGKILL");
  }
}
