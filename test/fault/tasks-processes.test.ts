// @module-tag long
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { afterAll, expect, inject, onTestFinished, test } from "vitest";
import { type TaskRecord, TaskSet } from "../../packages/jobs/src/index.ts";
import { startScript } from "../support/processes.ts";
import { makeTable } from "../support/table.ts";
import type { TaskWorkerConfig, TaskWorkerMessage } from "./fixtures/task-worker.ts";

const engine = inject("engine");
const table = await makeTable(engine);
afterAll(() => table.close());

/** A worker process, with what it has told. */
function startWorker(
  set: string,
  owner: string,
  hangsAt?: number,
): { child: ChildProcess; begun: string[]; succeeded: string[] } {
  const { tableName } = table;
  const { clientConfig } = engine;
  const config = {
    clientConfig,
    tableName,
    set,
    owner,
    leaseDurationMs: 5_000,
    workMs: 10,
    ...(hangsAt === undefined ? {} : { hangsAt }),
  };
  const child = startScript(
    new URL("./fixtures/task-worker.ts", import.meta.url),
    config satisfies TaskWorkerConfig,
    { ipc: true },
  );
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  const worker = { child, begun: [] as string[], succeeded: [] as string[] };
  child.on("message", (message: TaskWorkerMessage) => {
    if (message.begun !== undefined) worker.begun.push(message.begun);
    if (message.succeeded !== undefined) worker.succeeded.push(message.succeeded);
  });
  return worker;
}

test("200 tasks over 4 processes, one of which is killed with a task in its hands, succeed once each", async () => {
  const set = table.newKey();
  const tasks = new TaskSet(table.client(), set);
  await tasks.add(Array.from({ length: 200 }, (_, index) => ({ id: `${index}` })));

  const victim = startWorker(set, "the victim", 5);
  const others = ["b", "c", "d"].map((owner) => startWorker(set, owner));
  const exits = [victim, ...others].map(({ child }) => once(child, "exit"));
  while (victim.begun.length < 5) await once(victim.child, "message");
  victim.child.kill("SIGKILL");
  await Promise.all(exits);

  expect(await tasks.counts()).toEqual({
    waiting: 0,
    running: 0,
    succeeded: 200,
    failed: 0,
    parked: 0,
    cancelled: 0,
  });
  const told = [victim, ...others].flatMap(({ succeeded }) => succeeded);
  expect(told).toHaveLength(200);
  expect(new Set(told).size).toBe(200);
  expect(others.every(({ succeeded }) => succeeded.length > 10)).toBe(true);
  const repeated: TaskRecord[] = [];
  for await (const task of tasks.list()) if (task.attempts > 1) repeated.push(task);
  // What the victim had in its hands was done by another, and nothing else was begun twice.
  expect(repeated).toMatchObject([{ id: victim.begun[4], attempts: 2 }]);
  expect(["b", "c", "d"]).toContain(repeated[0]?.owner);
});
