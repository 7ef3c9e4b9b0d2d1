// @module-tag long
import type { ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { afterAll, expect, inject, type TestContext, test } from "vitest";
import type { WorkReport } from "../../functions/claim-tasks/worker.ts";
import {
  type TaskInput,
  type TaskRecord,
  TaskSet,
  type TaskSetOptions,
} from "../../packages/jobs/src/index.ts";
import { messageFrom, startScript } from "../support/processes.ts";
import { type Matcher, op, startProxy } from "../support/proxy.ts";
import { errorIn, type HeldRequest, hold } from "../support/proxy-behaviours.ts";
import { makeTable } from "../support/table.ts";
import type { ClaimWorkerConfig } from "./fixtures/claim-worker.ts";

const engine = inject("engine");
const table = await makeTable(engine);
const leaseDurationMs = 3_000;

afterAll(() => table.close());

interface Worker {
  readonly child: ChildProcess;
  /** What each of its rounds came to; undefined if it dies. */
  readonly reports: Promise<readonly WorkReport[] | undefined>;
}

/** A set of tasks, and a way to it, that no other test uses: these tests mostly wait, and do so side by side. */
async function makeSet({ onTestFinished }: TestContext, options?: TaskSetOptions) {
  const proxy = await startProxy(engine);
  onTestFinished(() => proxy.close());
  const set = table.newKey();
  const startWorker = (owner: string, diesOver?: string): Worker => {
    const config: ClaimWorkerConfig = {
      clientConfig: proxy.clientConfig,
      tableName: table.tableName,
      set,
      owner,
      leaseDurationMs,
      ...(diesOver === undefined ? {} : { diesOver }),
    };
    const child = startScript(new URL("./fixtures/claim-worker.ts", import.meta.url), config, { ipc: true });
    onTestFinished(() => {
      child.kill("SIGKILL");
    });
    return { child, reports: messageFrom<readonly WorkReport[]>(child).catch(() => undefined) };
  };
  return { proxy, tasks: new TaskSet(table.client(), set, options), startWorker };
}

function sum(reports: readonly WorkReport[] | undefined, count: "succeeded" | "lost" | "parked"): number {
  return (reports ?? []).reduce((total, report) => total + report[count], 0);
}

function document(id: string, isDamaged = false): TaskInput {
  const sha256 = createHash("sha256").update(id).digest("hex");
  return { id, payload: { text: isDamaged ? `not ${id}` : id, sha256 } };
}

async function listed(tasks: TaskSet): Promise<TaskRecord[]> {
  const all: TaskRecord[] = [];
  for await (const task of tasks.list()) all.push(task);
  return all;
}

interface Moment {
  readonly at: string;
  readonly request: Matcher;
  /** Attempts in the end, if the request lands after another worker's work, or before the first one is struck. */
  readonly attempts: { readonly after: number; readonly before: number };
}

const moments: readonly Moment[] = [
  { at: "its look for work", request: op("Query"), attempts: { after: 1, before: 1 } },
  { at: "its claim", request: op("UpdateItem"), attempts: { after: 1, before: 2 } },
  { at: "its ending", request: op("TransactWriteItems"), attempts: { after: 2, before: 1 } },
];

const strokes = moments.flatMap((moment) =>
  (["killed", "frozen"] as const).flatMap((mishap) =>
    (["before", "after"] as const).map((lands) => ({
      ...moment,
      mishap,
      lands,
      count: moment.attempts[lands],
    })),
  ),
);

test.concurrent.for(strokes)(
  "a worker is $mishap at $at, and the request lands $lands that: the task ends once, after $count of its attempts",
  async ({ request, mishap, lands, count }, context) => {
    const { proxy, tasks, startWorker } = await makeSet(context);
    await tasks.add([document("a")]);
    const held: HeldRequest = hold();
    proxy.next(request, held);
    const first = startWorker("first");
    await proxy.arrival(request);
    first.child.kill("SIGSTOP");
    if (lands === "before") await held.letGo();
    if (mishap === "killed") first.child.kill("SIGKILL");

    const second = await startWorker("second").reports;
    const ended = await listed(tasks);
    expect(ended).toMatchObject([{ id: "a", state: "succeeded", attempts: count }]);
    expect(ended[0]?.remark).toContain("the SHA-256 is ");

    await held.letGo();
    if (mishap === "frozen") first.child.kill("SIGCONT");
    const reports = await first.reports;
    expect(await listed(tasks)).toEqual(ended);
    // Each end is reported by one at most, and by the one that brought it about if it can still say so.
    const told = [reports, second].map((report) => sum(report, "succeeded"));
    const isOfFirst = ended[0]?.owner === "first";
    expect(told).toEqual(isOfFirst ? [mishap === "frozen" ? 1 : 0, 0] : [0, 1]);
    // A claim whose answer comes when its time is over was never begun.
    const hasLost = mishap === "frozen" && lands === "after" && count === 2;
    expect(sum(reports, "lost")).toBe(hasLost ? 1 : 0);
  },
);

test.concurrent("a task that kills its workers is parked after its last attempt, with a remark; what else the dead had is done by others", async (context) => {
  const { tasks, startWorker } = await makeSet(context, { maxAttempts: 2 });
  await tasks.add([
    document("poison"),
    document("damaged", true),
    ...["a", "b", "c", "d"].map((id) => document(id)),
  ]);
  const workers = ["first", "second", "third"].map((owner) => startWorker(owner, "poison"));
  // Whoever is left dies over it too, or finds it with its attempts used up.
  const reports = await Promise.all(workers.map((worker) => worker.reports));
  expect(reports.filter((report) => report === undefined)).toHaveLength(2);
  // One more for the damaged document.
  expect(reports.reduce((total, report) => total + sum(report, "parked"), 0)).toBe(1);
  const ended = Object.fromEntries((await listed(tasks)).map((task) => [task.id, task]));
  expect(ended.poison).toMatchObject({ state: "parked", attempts: 2 });
  expect(ended.poison?.remark).toMatch(/worker/);
  expect(ended.damaged).toMatchObject({ state: "failed", attempts: 2 });
  expect(ended.damaged?.remark).toContain("the document's SHA-256 is ");
  for (const id of ["a", "b", "c", "d"]) expect(ended[id]).toMatchObject({ state: "succeeded", attempts: 1 });
});

test.concurrent("of workers that are killed and frozen with their endings under way, none ends a task that another has ended", async (context) => {
  const { proxy, tasks, startWorker } = await makeSet(context);
  const ids = Array.from({ length: 40 }, (_, index) => `${index}`);
  await tasks.add(ids.map((id) => document(id)));
  const names = ["killed", "frozen"] as const;
  const victims = await Promise.all(
    names.map(async (owner) => {
      const ending: Matcher = ({ operation, body }) =>
        operation === "TransactWriteItems" && JSON.stringify(body).includes(`{"S":"${owner}"}`);
      const held = hold();
      proxy.next(ending, held);
      const worker = startWorker(owner);
      await proxy.arrival(ending);
      worker.child.kill(owner === "killed" ? "SIGKILL" : "SIGSTOP");
      return { worker, held };
    }),
  );
  const others = ["c", "d"].map((owner) => startWorker(owner));
  const reports = await Promise.all(others.map((worker) => worker.reports));
  const ended = await listed(tasks);
  expect(ended.map(({ state }) => state)).toEqual(Array(40).fill("succeeded"));
  expect(ended.filter(({ attempts }) => attempts === 2).map(({ owner }) => owner)).toEqual([
    expect.stringMatching(/^[cd]$/),
    expect.stringMatching(/^[cd]$/),
  ]);

  for (const { held } of victims) expect(errorIn(await held.letGo())).toBe("TransactionCanceledException");
  victims[1]?.worker.child.kill("SIGCONT");
  expect(sum(await victims[1]?.worker.reports, "lost")).toBe(1);
  expect(await listed(tasks)).toEqual(ended);
  expect(reports.reduce((total, report) => total + sum(report, "succeeded"), 0)).toBe(
    ended.filter(({ owner }) => owner === "c" || owner === "d").length,
  );
});
