// @module-tag long
import { once } from "node:events";
import { QueryCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, expect, inject, onTestFinished, test } from "vitest";
import { type JobRun, JobRuns } from "../../packages/jobs/src/index.ts";
import { eventually } from "../support/patience.ts";
import { messageFrom, startScript } from "../support/processes.ts";
import { makeTable } from "../support/table.ts";
import type { WorkerConfig } from "./fixtures/job-runs-worker.ts";

const engine = inject("engine");
const table = await makeTable(engine);
const leaseDurationMs = 5_000;

afterAll(() => table.close());

function startWorker(config: Pick<WorkerConfig, "job" | "owner" | "slots" | "hangsIn">) {
  const { clientConfig } = engine;
  const worker = startScript(
    new URL("./fixtures/job-runs-worker.ts", import.meta.url),
    { ...config, clientConfig, tableName: table.tableName, leaseDurationMs } satisfies WorkerConfig,
    { ipc: true },
  );
  onTestFinished(() => {
    worker.kill("SIGKILL");
  });
  return worker;
}

test("a killed worker's slot is retried by others that get every slot delivered, and each slot takes effect once", async () => {
  const job = table.newKey();
  const now = Math.floor(Date.now() / 60_000) * 60_000;
  const slots = Array.from({ length: 12 }, (_, index) => new Date(now - (12 - index) * 60_000).toISOString());
  const [, , hangsIn = ""] = slots;
  const runs = new JobRuns(table.client({ clockSkewMs: 200, leaseDurationMs }), job);

  const doomed = startWorker({ job, owner: "doomed", slots, hangsIn });
  expect(await messageFrom(doomed)).toEqual({ hangs: hangsIn });
  doomed.kill("SIGKILL");
  await once(doomed, "exit");
  expect(await runs.get(hangsIn)).toMatchObject({ attempt: 1, owner: "doomed", progress: { by: "doomed" } });
  await eventually(async () => expect(await runs.get(hangsIn)).toMatchObject({ state: "lost" }));

  const workers = ["a", "b", "c"].map((owner) => startWorker({ job, owner, slots }));
  await Promise.all(workers.map((worker) => messageFrom(worker)));

  const history: JobRun[] = [];
  for await (const run of runs.runs()) history.push(run);
  expect(history.map((run) => [run.slot, run.state])).toEqual(slots.map((slot) => [slot, "succeeded"]));
  expect(history.filter((run) => run.attempt > 1)).toMatchObject([
    { slot: hangsIn, attempt: 2, lostAttempts: 1 },
  ]);
  const { Items = [] } = await table.dynamodb.send(
    new QueryCommand({
      TableName: table.tableName,
      KeyConditionExpression: "#pk = :effects",
      ExpressionAttributeNames: { "#pk": "pk" },
      ExpressionAttributeValues: { ":effects": { S: `${job}/effects` } },
    }),
  );
  expect(Items.map((item) => [item.sk?.S, item.count?.N])).toEqual(slots.map((slot) => [slot, "1"]));
});
