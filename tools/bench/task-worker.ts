/** A worker in a process of its own: does tasks as fast as it gets them, and tells at the end what that has taken. */
import { once } from "node:events";
import { DynamoDBClient, type DynamoDBClientConfig } from "@aws-sdk/client-dynamodb";
import { LeaseClient } from "@leasehold/client";
import { TaskSet } from "@leasehold/jobs";
import { countRequests } from "./counted.ts";

/** What a worker is started with. */
export interface TaskWorkerConfig {
  readonly clientConfig: DynamoDBClientConfig;
  readonly tableName: string;
  readonly set: string;
}

/** What a worker tells at the end. */
export interface TaskWorkerReport {
  /** The ids of the tasks whose work it has run. */
  readonly begun: readonly string[];
  readonly succeeded: number;
  readonly sent: Readonly<Record<string, number>>;
  /** When it had ended its last task, by the machine's wall clock. */
  readonly lastEndedAt: number;
}

const { clientConfig, tableName, set } = JSON.parse(process.argv[2] ?? "{}") as TaskWorkerConfig;
const dynamodb = new DynamoDBClient(clientConfig);
const counter = countRequests(dynamodb);
const tasks = new TaskSet(new LeaseClient({ tableName, dynamodb }), set);
process.send?.("ready");
await once(process, "message");

const begun: string[] = [];
let succeeded = 0;
let lastEndedAt = 0;
for await (const task of tasks.work()) {
  begun.push(task.id);
  await task.succeed();
  succeeded += 1;
  lastEndedAt = Date.now();
}
const report: TaskWorkerReport = { begun, succeeded, sent: Object.fromEntries(counter.sent), lastEndedAt };
process.send?.(report, () => process.disconnect());
dynamodb.destroy();
