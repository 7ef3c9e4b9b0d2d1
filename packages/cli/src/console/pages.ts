// Which page is at which address, and what it reads.

import type { LeaseClient } from "@leasehold/client";
import { LeaseOperator } from "@leasehold/client/operator";
import { type JobRun, JobRuns, type TaskRecord, TaskSet, type TaskState } from "@leasehold/jobs";
import type { Connection } from "../connection.ts";
import { primitivesOf } from "../view/key-rows.ts";
import { serviceNow } from "../view/service-time.ts";
import { auditPage } from "./pages/audit.ts";
import { type JobStrip, jobsPage, runPage } from "./pages/jobs.ts";
import { keyPage } from "./pages/key.ts";
import { nowPage } from "./pages/now.ts";
import { tablePage } from "./pages/table.ts";
import { setPage, tasksPage } from "./pages/tasks.ts";
import type { Page, PageRequest } from "./server.ts";
import type { TableReader } from "./table-reader.ts";

/** The pages, in the order of the navigation. */
export const navigation = [
  { path: "/", name: "Locks" },
  { path: "/jobs", name: "Jobs" },
  { path: "/tasks", name: "Tasks" },
  { path: "/table", name: "Table" },
  { path: "/audit", name: "Audit" },
] as const;

/** What pages read from. */
export interface PageContext {
  readonly reader: TableReader;
  readonly isReadOnly: boolean;
  readonly connection: Connection;
}

/** Each job or set costs a request or more at each look. */
const mostNames = 30;
const runsInStrip = 60;
const mostTasksRead = 1_000;

type MakePage = (request: PageRequest, context: PageContext) => Promise<Page | undefined>;

const pages: Readonly<Record<string, MakePage>> = {
  "/": async ({ query }, { reader }) => nowPage(await reader.read(), query),
  "/audit": async (_, { reader }) => auditPage(await reader.read()),
  "/table": async (_, { connection, reader, isReadOnly }) => await tablePage(connection, reader, isReadOnly),
  "/key": async ({ query }, { connection: { client }, isReadOnly }) => {
    const key = query.get("key");
    if (!key) return undefined;
    // Reading needs nobody's name.
    const details = await new LeaseOperator(client, { by: "console" }).describe(key);
    return keyPage(details, [], isReadOnly);
  },
  "/jobs": async (_, { connection: { client }, reader }) => {
    const jobs = await namesOf(reader, "job");
    const strips = await Promise.all(jobs.slice(0, mostNames).map((job) => stripOf(client, job)));
    return jobsPage(strips, Math.max(0, jobs.length - mostNames));
  },
  "/jobs/run": async ({ query }, { connection: { client }, isReadOnly }) => {
    const [job, slot] = [query.get("job"), query.get("slot")];
    if (!job || !slot) return undefined;
    return runPage(job, slot, await new JobRuns(client, job).get(slot), isReadOnly);
  },
  "/tasks": async (_, { connection: { client }, reader }) => {
    const sets = await namesOf(reader, "tasks");
    const counted = sets
      .slice(0, mostNames)
      .map(async (set) => ({ set, counts: await new TaskSet(client, set).counts() }));
    return tasksPage(await Promise.all(counted), Math.max(0, sets.length - mostNames));
  },
  "/tasks/set": async ({ query }, { connection: { client }, isReadOnly }) => {
    const set = query.get("set");
    if (!set) return undefined;
    const state = (query.get("state") ?? undefined) as TaskState | undefined;
    const tasks: TaskRecord[] = [];
    for await (const task of new TaskSet(client, set).list(state === undefined ? {} : { state })) {
      tasks.push(task);
      if (tasks.length >= mostTasksRead) break;
    }
    return setPage(set, state, tasks, { now: serviceNow(client), isReadOnly });
  },
};

/** Makes the page at an address; undefined where there is none. */
export async function makePage(request: PageRequest, context: PageContext): Promise<Page | undefined> {
  return Object.hasOwn(pages, request.path) ? await pages[request.path]?.(request, context) : undefined;
}

async function namesOf(reader: TableReader, primitive: "job" | "tasks"): Promise<readonly string[]> {
  const { keys } = await reader.read();
  return keys.filter((key) => primitivesOf(key).includes(primitive)).map(({ key }) => key);
}

async function stripOf(client: LeaseClient, job: string): Promise<JobStrip> {
  const runs: JobRun[] = [];
  for await (const run of new JobRuns(client, job).runs({ descending: true, limit: runsInStrip }))
    runs.push(run);
  return { job, runs: runs.reverse(), missed: [] };
}
